"""Products of tiles by tensor cores: which words of a tile each lane loads and stores, and how large a product is.

Which lane has which element CUDA leaves open; it is taken to be as `mma.sync` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy.typing as npt

from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel
from gpu.warp import WARP

Array = npt.NDArray[Any]

PLACE = "tileplace"
"""Our own instruction: where each lane's word of a tile is, from the tile's place and how far its rows are apart."""

_SIZES = {"f64": 8, "f32": 4, "s32": 4, "tf32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1}


class Shape(NamedTuple):
    """A product of M x K by K x N elements."""

    m: int
    n: int
    k: int

    @property
    def multiply_adds(self) -> int:
        return self.m * self.n * self.k


def shape_of(instruction: PtxInstruction) -> Shape | None:
    """Return the shape that an instruction names."""
    for word in instruction.words:
        found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
        if found is not None:
            return Shape(*map(int, found.groups()))
    return None


def element_of(instruction: PtxInstruction) -> str:
    """Return the type of the elements that are multiplied, loaded or stored."""
    types = [word for word in instruction.words if word in _SIZES]
    return types[1] if len(types) > 1 else types[0]


def by_lanes(kernel: PtxKernel) -> PtxKernel:
    """Return a kernel in which each lane loads and stores its words of a tile by itself."""
    if not any(_moves_tile(each) for block in kernel.blocks for each in block.instructions):
        return kernel
    made: list[BasicBlock] = []
    count = 0
    for block in kernel.blocks:
        instructions: list[PtxInstruction] = []
        for each in block.instructions:
            new = list(_words(each, count)) if _moves_tile(each) else [each]
            count += len(new)
            instructions += new
        made.append(replace(block, instructions=instructions))
    return replace(kernel, blocks=made)


def _moves_tile(instruction: PtxInstruction) -> bool:
    return instruction.opcode == "wmma" and instruction.words[0] in ("load", "store")


def _words(instruction: PtxInstruction, count: int) -> Iterator[PtxInstruction]:
    """Yield where each lane's words are, and its accesses to them: two neighbors of a sum are one."""
    words = instruction.words
    stores, what = words[0] == "store", words[1]
    place, names = instruction.operands[:2] if stores else instruction.operands[1::-1]
    registers = [name.strip() for name in names.strip("{} ").split(",")]
    shape, element = shape_of(instruction), element_of(instruction)
    assert shape is not None
    space = next((word for word in words if word in ("global", "shared")), "")
    layout = next(word for word in words if word in ("row", "col"))
    size = _SIZES[element]
    stride = instruction.operands[2] if len(instruction.operands) > 2 else ""
    held = 1 if what in "cd" else max(1, 4 // size)
    different = registers[: _elements(shape, what) // held]
    at_once = 2 if what in "cd" and layout == "row" and len(different) % 2 == 0 and size == 4 else 1
    for first in range(0, len(different), at_once):
        address = f"%rd9{count + first:06d}"
        own = PtxInstruction(
            PLACE, (what, layout, f"m{shape.m}n{shape.n}k{shape.k}", element, str(first * held)),
            (address, place, stride), instruction.guard, instruction.negated, instruction.line,
        )  # fmt: skip
        group = different[first : first + at_once]
        several = (f"v{at_once}",) if at_once > 1 else ()
        access = (*((space,) if space else ()), *several, "b64" if size == 8 else "b32")
        values = "{" + ", ".join(group) + "}" if at_once > 1 else group[0]
        operands = (f"[{address}]", values) if stores else (values, f"[{address}]")
        yield own
        yield replace(
            instruction, opcode="st" if stores else "ld", words=access, operands=operands,
            text_line=0 if first else instruction.text_line,
        )  # fmt: skip


def _elements(shape: Shape, what: str) -> int:
    """Return how many different elements of a tile a lane has."""
    sizes = {"a": shape.m * shape.k, "b": shape.n * shape.k, "c": shape.m * shape.n, "d": shape.m * shape.n}
    return sizes[what] // WARP


def offsets(words: tuple[str, ...], stride: Array, lane: Array) -> Array:
    """Return how many bytes behind its tile's begin the word of each lane is that a PLACE asks for."""
    what, layout, _, element, number = words
    shape = shape_of(PtxInstruction(PLACE, words, ()))
    assert shape is not None
    i, packed = int(number), max(1, 4 // _SIZES[element])
    if what in "cd":
        tile = i // 4
        turned = shape.m == 8 and shape.n == 32
        rows = 16 * (tile if shape.m == 32 or turned else 0) + 8 * (i // 2 % 2) + lane // 4
        columns = 8 * (tile if shape.m == 16 else 0) + 2 * (lane % 4) + i % 2
        row, column = (columns, rows) if turned else (rows, columns)
    else:
        is_long = shape.m > 8 if what == "a" else shape.m == 8 and shape.n == 32
        height = 16 if is_long else 8
        in_tile = height * shape.k // WARP
        within = i % in_tile
        along = height * (i // in_tile) + (8 * (within // packed % 2) if is_long else 0) + lane // 4
        deep = packed * (lane % 4) + within % packed + 4 * packed * (within // packed // (2 if is_long else 1))
        row, column = (along, deep) if what == "a" else (deep, along)
    elements = row * stride + column if layout == "row" else column * stride + row
    found: Array = elements * _SIZES[element]
    return found
