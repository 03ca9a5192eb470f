"""Parse the line tables of cubin files (DWARF version 2), which map machine instructions to source lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN, _NEGATE, _BLOCK, _ADD_PC, _FIXED_PC = range(1, 10)
_END, _SET_ADDRESS, _INLINED = 1, 2, 0x90
"""Extended opcodes; the last is NVIDIA's: the row from which the following code was inlined, and its function."""


@dataclass(frozen=True)
class LineRow:
    """The source line of the machine code from an address on.

    `caller` is the number, from 1, of the row at which the code was inlined; 0 if it was not inlined.
    """

    function: str
    address: int
    file: str
    line: int
    caller: int = 0


class _ByteReader:
    def __init__(self, data: bytes, offset: int, end: int) -> None:
        self.data, self.position, self.end = data, offset, end

    def read_integer(self, size: int) -> int:
        self.position += size
        return int.from_bytes(self.data[self.position - size : self.position], "little")

    def read_text(self) -> str:
        end = self.data.index(b"\0", self.position)
        text = self.data[self.position : end].decode("utf-8", "replace")
        self.position = end + 1
        return text

    def read_leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.read_integer(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value


def parse_line_table(table: bytes, functions: Mapping[int, str]) -> list[LineRow]:
    """Parse the rows of a table, in order.

    Parameters
    ----------
    table : bytes
    functions : mapping of int to str
        For the offset of each relocated address in the table, the function to which it is relative.
    """
    rows: list[LineRow] = []
    start = 0
    while start + 4 <= len(table):
        size = int.from_bytes(table[start : start + 4], "little")
        _read_unit(_ByteReader(table, start + 4, start + 4 + size), functions, rows)
        start += 4 + size
    return rows


def _read_unit(data: _ByteReader, functions: Mapping[int, str], rows: list[LineRow]) -> None:
    first = len(rows)
    data.read_integer(2)
    header = data.read_integer(4)
    program = data.position + header
    data.read_integer(2)
    line_base, line_range, opcode_base = data.read_integer(1), data.read_integer(1), data.read_integer(1)
    line_base -= 256 if line_base > 127 else 0
    lengths = [data.read_integer(1) for _ in range(opcode_base - 1)]
    while data.read_text():
        pass
    files = [""]
    while name := data.read_text():
        files.append(name)
        for _ in range(3):
            data.read_leb()
    data.position = program
    function, address, file, line, caller = "", 0, 1, 1, 0

    def append_row() -> None:
        rows.append(LineRow(function, address, files[file] if file < len(files) else "", line, caller))

    while data.position < data.end:
        code = data.read_integer(1)
        if code >= opcode_base:
            code -= opcode_base
            address += code // line_range
            line += line_base + code % line_range
            append_row()
        elif code == 0:
            size = data.read_leb()
            instruction_end, extended_opcode = data.position + size, data.read_integer(1)
            if extended_opcode == _SET_ADDRESS:
                function = functions.get(data.position, function)
                address = data.read_integer(size - 1)
            elif extended_opcode == _INLINED:
                caller_row = data.read_leb()
                caller = first + caller_row if caller_row else 0  # row numbers are relative to the function's first row
            elif extended_opcode == _END:
                function, address, file, line, caller = "", 0, 1, 1, 0
                first = len(rows)
            data.position = instruction_end
        elif code == _COPY:
            append_row()
        elif code == _ADVANCE_PC:
            address += data.read_leb()
        elif code == _ADVANCE_LINE:
            line += data.read_leb(signed=True)
        elif code == _SET_FILE:
            file = data.read_leb()
        elif code == _ADD_PC:
            address += (255 - opcode_base) // line_range
        elif code == _FIXED_PC:
            address += data.read_integer(2)
        elif code not in (_NEGATE, _BLOCK):
            for _ in range(lengths[code - 1]):
                data.read_leb()
