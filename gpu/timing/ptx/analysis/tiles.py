"""Tensor core tiles: the words of a tile that each lane loads and stores, and the size of a product.

CUDA does not specify the mapping of WMMA elements to lanes; the mapping of `mma.sync` is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

Array = npt.NDArray[Any]

TILE_ADDRESS = "tileplace"
"""An internal instruction that computes the address of each lane's word, from a tile's address and row stride."""

_SIZES = {"f64": 8, "f32": 4, "s32": 4, "tf32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1}


class ProductShape(NamedTuple):
    """The shape of a product of M x K by K x N elements."""

    m: int
    n: int
    k: int

    @property
    def multiply_adds(self) -> int:
        return self.m * self.n * self.k


def shape_of(instruction: PtxInstruction) -> ProductShape | None:
    """Return the tile shape in an instruction's modifiers, or None."""
    for word in instruction.modifiers:
        match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", word)
        if match is not None:
            return ProductShape(*map(int, match.groups()))
    return None


def element_of(instruction: PtxInstruction) -> str:
    """Return the type of the elements to multiply, load or store."""
    types = [word for word in instruction.modifiers if word in _SIZES]
    return types[1] if len(types) > 1 else types[0]


def expand_tile_accesses(kernel: PtxKernel) -> PtxKernel:
    """Expand tile loads and stores of a kernel into per-lane accesses."""
    if not any(map(_moves_tile, kernel.instructions)):
        return kernel
    blocks: list[BasicBlock] = []
    count = 0
    for block in kernel.blocks:
        instructions: list[PtxInstruction] = []
        for instruction in block.instructions:
            expanded = list(_expand_tile_access(instruction, count)) if _moves_tile(instruction) else [instruction]
            count += len(expanded)
            instructions += expanded
        blocks.append(replace(block, instructions=instructions))
    return replace(kernel, blocks=blocks)


def _moves_tile(instruction: PtxInstruction) -> bool:
    return instruction.opcode == "wmma" and instruction.modifiers[0] in ("load", "store")


def _expand_tile_access(instruction: PtxInstruction, count: int) -> Iterator[PtxInstruction]:
    """Yield the address computations and accesses of a lane's words; two neighboring words of a sum are one access."""
    words = instruction.modifiers
    stores, operand_kind = words[0] == "store", words[1]
    tile_address, names = instruction.operands[:2] if stores else instruction.operands[1::-1]
    registers = [name.strip() for name in names.strip("{} ").split(",")]
    shape, element = shape_of(instruction), element_of(instruction)
    assert shape is not None
    space = next((word for word in words if word in ("global", "shared")), "")
    layout = next(word for word in words if word in ("row", "col"))
    size = _SIZES[element]
    stride = instruction.operands[2] if len(instruction.operands) > 2 else ""
    elements_per_word = 1 if operand_kind in "cd" else max(1, 4 // size)
    distinct = registers[: _count_lane_elements(shape, operand_kind) // elements_per_word]
    words_per_access = 2 if operand_kind in "cd" and layout == "row" and len(distinct) % 2 == 0 and size == 4 else 1
    for first in range(0, len(distinct), words_per_access):
        address = f"%rd9{count + first:06d}"
        place_instruction = PtxInstruction(
            TILE_ADDRESS,
            (operand_kind, layout, f"m{shape.m}n{shape.n}k{shape.k}", element, str(first * elements_per_word)),
            (address, tile_address, stride), instruction.guard, instruction.negated, instruction.line,
        )  # fmt: skip
        group = distinct[first : first + words_per_access]
        vector = (f"v{words_per_access}",) if words_per_access > 1 else ()
        access = (*((space,) if space else ()), *vector, "b64" if size == 8 else "b32")
        values = "{" + ", ".join(group) + "}" if words_per_access > 1 else group[0]
        operands = (f"[{address}]", values) if stores else (values, f"[{address}]")
        yield place_instruction
        yield replace(
            instruction, opcode="st" if stores else "ld", modifiers=access, operands=operands,
            text_line=0 if first else instruction.text_line,
        )  # fmt: skip


def _count_lane_elements(shape: ProductShape, operand_kind: str) -> int:
    """Return the number of distinct elements of a tile per lane."""
    sizes = {"a": shape.m * shape.k, "b": shape.n * shape.k, "c": shape.m * shape.n, "d": shape.m * shape.n}
    return sizes[operand_kind] // WARP


def compute_tile_offsets(words: tuple[str, ...], stride: Array, lane: Array) -> Array:
    """Return the byte offset of each lane's word from the start of its tile, for a PLACE instruction."""
    operand_kind, layout, _, element, number = words
    shape = shape_of(PtxInstruction(TILE_ADDRESS, words, ()))
    assert shape is not None
    i, packed = int(number), max(1, 4 // _SIZES[element])
    if operand_kind in "cd":
        tile = i // 4
        is_transposed = shape.m == 8 and shape.n == 32
        rows = 16 * (tile if shape.m == 32 or is_transposed else 0) + 8 * (i // 2 % 2) + lane // 4
        columns = 8 * (tile if shape.m == 16 else 0) + 2 * (lane % 4) + i % 2
        row, column = (columns, rows) if is_transposed else (rows, columns)
    else:
        is_long = shape.m > 8 if operand_kind == "a" else shape.m == 8 and shape.n == 32
        height = 16 if is_long else 8
        in_tile = height * shape.k // WARP
        offset = i % in_tile
        along = height * (i // in_tile) + (8 * (offset // packed % 2) if is_long else 0) + lane // 4
        deep = packed * (lane % 4) + offset % packed + 4 * packed * (offset // packed // (2 if is_long else 1))
        row, column = (along, deep) if operand_kind == "a" else (deep, along)
    elements = row * stride + column if layout == "row" else column * stride + row
    byte_offsets: Array = elements * _SIZES[element]
    return byte_offsets
