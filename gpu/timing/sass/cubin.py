"""The file that the driver's assembler writes, an ELF: each kernel's machine code, and which lines it is of."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.timing.sass import line_table
from gpu.timing.sass.instructions import SIZE, decoded
from gpu.timing.sass.line_table import LineRow

_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATIONS = {".rela": struct.Struct("<QQq"), ".rel": struct.Struct("<QQ")}


@dataclass(frozen=True)
class MachineInstruction:
    """An instruction that a GPU runs.

    Parameters
    ----------
    opcode : str
        Such as "LDG"; "?" where it is not known.
    guarded : bool
        Whether it runs under a predicate.
    target : int
        Where a branch leads: the number of an instruction of the kernel; -1 where there is none, or it is not known.
    line : int
        Of the kernel's file; of what was inlined from another, where it was called. 0 where none is known.
    text_line : int
        Of the PTX. 0 where none is known.
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


def read(image: bytes, file: str, capability: str) -> dict[str, list[MachineInstruction]]:
    """Return each kernel's instructions, in order; what pads it at its end is left out.

    Parameters
    ----------
    image : bytes
        What `ptxas -lineinfo` wrote.
    file : str
        The kernel file's name, as the compiler knows it.
    capability : str
        What it was made for, such as "9.0".
    """
    major, minor = map(int, capability.split("."))
    sections = _sections(image)
    source = _rows(sections, ".debug_line")
    text = _rows(sections, ".nv_debug_line_sass")
    found = {}
    for section in sections:
        if not section.name.startswith(".text."):
            continue
        kernel = section.name.removeprefix(".text.")
        of_file, of_text = _Lines(source, kernel, file), _Lines(text, kernel, None)
        made = []
        for number, place in enumerate(range(0, len(section.data) - SIZE + 1, SIZE)):
            opcode, guarded, target = decoded(section.data[place : place + SIZE], number, (major, minor))
            made.append(MachineInstruction(opcode, guarded, target, of_file.of(place), of_text.of(place)))
        found[kernel] = _without_padding(made)
    return found


def _without_padding(made: list[MachineInstruction]) -> list[MachineInstruction]:
    """Leave out what stands behind the last way out: a branch to itself, and nothing."""
    end = len(made)
    while end and made[end - 1].opcode == "NOP":
        end -= 1
    if end and made[end - 1].opcode == "BRA" and made[end - 1].target == end - 1:
        end -= 1
    return made[:end]


def _sections(image: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [_HEADER.unpack_from(image, start + size * number) for number in range(count)]
    table = headers[names][4]
    found = []
    for name, _, _, _, offset, length, _, info, _, _ in headers:
        first = table + name
        text = image[first : image.index(b"\0", first)].decode("utf-8", "replace")
        found.append(_Section(text, image[offset : offset + length], info))
    return found


def _rows(sections: Sequence[_Section], name: str) -> list[LineRow]:
    table = next((each.data for each in sections if each.name == name), b"")
    symbols = next((each.data for each in sections if each.name == ".symtab"), b"")
    functions = {}
    for kind, form in _RELOCATIONS.items():
        relocations = next((each.data for each in sections if each.name == kind + name), b"")
        for offset, info, *_ in form.iter_unpack(relocations):
            section = _SYMBOL.unpack_from(symbols, (info >> 32) * _SYMBOL.size)[3]
            if section < len(sections):
                functions[offset] = sections[section].name.removeprefix(".text.")
    return line_table.read(table, functions)


class _Lines:
    """The lines of one kernel's machine code, by its bytes' places."""

    def __init__(self, rows: Sequence[LineRow], kernel: str, file: str | None) -> None:
        found: dict[int, int] = defaultdict(int)
        for row in rows:
            if row.function != kernel:
                continue
            address, place = row.address, row
            while file is not None and place.file.rpartition("/")[2] != file and 0 < place.caller <= len(rows):
                place = rows[place.caller - 1]
            found[address] = place.line if file is None or place.file.rpartition("/")[2] == file else 0
        self._places = sorted(found)
        self._lines = [found[place] for place in self._places]

    def of(self, place: int) -> int:
        behind = bisect_right(self._places, place)
        return self._lines[behind - 1] if behind else 0
