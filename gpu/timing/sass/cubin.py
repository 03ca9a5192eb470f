"""Read cubin files (ELF) of the driver's assembler: each kernel's machine code, and its source lines."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.timing.sass import line_table
from gpu.timing.sass.instructions import INSTRUCTION_BYTES, decode_instruction
from gpu.timing.sass.line_table import LineRow

_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATIONS = {".rela": struct.Struct("<QQq"), ".rel": struct.Struct("<QQ")}


@dataclass(frozen=True)
class MachineInstruction:
    """A machine instruction.

    Parameters
    ----------
    opcode : str
        The opcode, such as "LDG"; "?" if unknown.
    guarded : bool
        Whether it is predicated.
    target : int
        For a branch, the index of the target instruction in the kernel; -1 for none or an unknown one.
    line : int
        The line of the kernel's file; for code inlined from another file, the line of the call. 0 if unknown.
    text_line : int
        The line of the PTX. 0 if unknown.
    """

    opcode: str
    guarded: bool
    target: int
    line: int
    text_line: int


@dataclass(frozen=True)
class _Section:
    name: str
    data: bytes
    info: int


def read_cubin(image: bytes, file: str, capability: str) -> dict[str, list[MachineInstruction]]:
    """Return each kernel's instructions, in order, without padding at the end.

    Parameters
    ----------
    image : bytes
        The output of `ptxas -lineinfo`.
    file : str
        The kernel file's name, as in the compiler's debug information.
    capability : str
        The compute capability of the code, such as "9.0".
    """
    major, minor = map(int, capability.split("."))
    sections = _read_sections(image)
    source = _read_line_rows(sections, ".debug_line")
    text = _read_line_rows(sections, ".nv_debug_line_sass")
    instructions_by_kernel = {}
    for section in sections:
        if not section.name.startswith(".text."):
            continue
        kernel = section.name.removeprefix(".text.")
        file_lines, text_lines = _LineLookup(source, kernel, file), _LineLookup(text, kernel, None)
        instructions = []
        for number, offset in enumerate(range(0, len(section.data) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES)):
            opcode, guarded, target = decode_instruction(
                section.data[offset : offset + INSTRUCTION_BYTES], number, (major, minor)
            )
            instructions.append(
                MachineInstruction(opcode, guarded, target, file_lines.line_at(offset), text_lines.line_at(offset))
            )
        instructions_by_kernel[kernel] = _strip_padding(instructions)
    return instructions_by_kernel


def _strip_padding(instructions: list[MachineInstruction]) -> list[MachineInstruction]:
    """Remove padding after the last exit: a branch to itself, and NOPs."""
    end = len(instructions)
    while end and instructions[end - 1].opcode == "NOP":
        end -= 1
    if end and instructions[end - 1].opcode == "BRA" and instructions[end - 1].target == end - 1:
        end -= 1
    return instructions[:end]


def _read_sections(image: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [_HEADER.unpack_from(image, start + size * number) for number in range(count)]
    table = headers[names][4]
    result = []
    for name, _, _, _, offset, length, _, info, _, _ in headers:
        first = table + name
        text = image[first : image.index(b"\0", first)].decode("utf-8", "replace")
        result.append(_Section(text, image[offset : offset + length], info))
    return result


def _read_line_rows(sections: Sequence[_Section], name: str) -> list[LineRow]:
    table = next((each.data for each in sections if each.name == name), b"")
    symbols = next((each.data for each in sections if each.name == ".symtab"), b"")
    functions = {}
    for kind, form in _RELOCATIONS.items():
        relocations = next((each.data for each in sections if each.name == kind + name), b"")
        for offset, info, *_ in form.iter_unpack(relocations):
            section = _SYMBOL.unpack_from(symbols, (info >> 32) * _SYMBOL.size)[3]
            if section < len(sections):
                functions[offset] = sections[section].name.removeprefix(".text.")
    return line_table.parse_line_table(table, functions)


class _LineLookup:
    """The source lines of one kernel's machine code, by byte offset."""

    def __init__(self, rows: Sequence[LineRow], kernel: str, file: str | None) -> None:
        line_by_address: dict[int, int] = defaultdict(int)
        for row in rows:
            if row.function != kernel:
                continue
            address, frame_row = row.address, row
            while file is not None and frame_row.file.rpartition("/")[2] != file and 0 < frame_row.caller <= len(rows):
                frame_row = rows[frame_row.caller - 1]
            line_by_address[address] = (
                frame_row.line if file is None or frame_row.file.rpartition("/")[2] == file else 0
            )
        self._offsets = sorted(line_by_address)
        self._lines = [line_by_address[offset] for offset in self._offsets]

    def line_at(self, offset: int) -> int:
        following = bisect_right(self._offsets, offset)
        return self._lines[following - 1] if following else 0
