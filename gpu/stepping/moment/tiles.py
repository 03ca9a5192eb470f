"""The mapping of tensor core tiles to lanes: which lane of a warp holds which element."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.recording.recording import Recording
from gpu.recording.trace import Trace

Array = npt.NDArray[Any]
Use = Literal["A", "B", "C"]

_MAXIMUM_LINES = 16
"""The most lines of one statement: the operands of an `asm` follow the instruction."""
_INSTRUCTION = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.(?:satfinite\.)?(?:\w+)\.(\w+)\.\w+\.(\w+)"
)
_WARPGROUP = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.\w+\.(\w+)")
_FRAGMENT = re.compile(r"wmma::fragment<nvcuda::wmma::(\w+), (\d+), (\d+), (\d+), ([\w: ]+)")
_OPERATION = re.compile(r"\b(mma_sync|load_matrix_sync|store_matrix_sync|fill_fragment)\s*\(([^;]*)")
_USES: dict[str, Use] = {"matrix_a": "A", "matrix_b": "B", "accumulator": "C"}
_PACKED = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "f64": 1}
_TYPES = {
    "__half": "f16",
    "__nv_bfloat16": "bf16",
    "nvcuda::wmma::precision::tf32": "tf32",
    "signed char": "s8",
    "unsigned char": "u8",
    "double": "f64",
}


@dataclass(frozen=True, eq=False)
class Tile:
    """An operand of a matrix product of tiles, or its result.

    Parameters
    ----------
    use : {"A", "B", "C"}
        The result has the layout of C.
    lanes : array of int, shape (rows, columns)
        The lane that holds each element.
    element_indices : array of int, shape (rows, columns)
        The index of the element in its lane: `x[i]` of a fragment; for `mma.sync` counted over the registers, low bits
        first.
    """

    use: Use
    lanes: Array
    element_indices: Array


@dataclass(frozen=True, eq=False)
class TileProduct:
    """The tiles of a statement: all three of a product, or the operands of another operation.

    Parameters
    ----------
    name : str
        A name such as "mma.sync m16n8k16, f16".
    documented : bool
        Whether NVIDIA documents the mapping; for WMMA fragments it does not, and the mapping is the simulator's.
    """

    name: str
    documented: bool
    tiles: tuple[Tile, ...]


def tiles_at(recording: Recording, moment: int) -> TileProduct | None:
    """Return the tiles of the statement executed just before a moment; None if it has none."""
    if not moment:
        return None
    launch, event = recording.locate_moment(moment - 1)
    position = launch.trace.events[event].position
    return _find_line_tiles(launch.trace, recording.text(position.file), position.line)


def has_tiles(recording: Recording) -> bool:
    """Return whether a kernel of a recording multiplies tiles."""
    texts = recording.texts.values()
    return any("mma_sync" in text or _INSTRUCTION.search(text) or _WARPGROUP.search(text) for text in texts)


@lru_cache(maxsize=256)
def _find_line_tiles(trace: Trace, text: str, line: int) -> TileProduct | None:
    lines = text.split("\n")[line - 1 : line - 1 + _MAXIMUM_LINES]
    statement = ""
    for source_line in lines:
        statement += source_line + "\n"
        if source_line.rstrip().endswith(";"):
            break
    if match := _INSTRUCTION.search(statement):
        m, n, k = (int(source_line) for source_line in match.groups()[:3])
        return TileProduct(
            f"mma.sync m{m}n{n}k{k}, {match[4]}", True, tuple(_build_mma_tiles(m, n, k, _PACKED[match[4]]))
        )
    if match := _WARPGROUP.search(statement):
        name = f"wgmma m64n{match[1]}k{match[2]}, {match[3]}: 16 rows of 64"
        return TileProduct(name, True, (_build_warpgroup_tile(int(match[1])),))
    if match := _OPERATION.search(statement):
        return _build_fragment_tiles(trace, match[1], re.findall(r"\b[a-zA-Z_]\w*", match[2]))
    return None


def _build_fragment_tiles(trace: Trace, operation: str, names: list[str]) -> TileProduct | None:
    """Return the tiles of the fragments that an operation uses."""
    declared = {
        statement.name: match
        for statement in trace.data.statements
        if statement.name and (match := _FRAGMENT.search(statement.type))
    }
    used = [declared[name] for name in names if name in declared]
    if not used:
        return None
    m, n, k = (int(each) for each in used[0].groups()[1:4])
    operand = next((each for each in used if each[1] != "accumulator"), None)
    kind = _TYPES.get((operand or used[0])[5].strip(), "")
    uses = {_USES[each[1]] for each in used[: 1 if operation != "mma_sync" else None]}
    tiles = [_build_fragment_tile(use, m, n, k, _PACKED.get(kind, 1)) for use in ("A", "B", "C") if use in uses]
    return TileProduct(f"wmma {m} x {n} x {k}" + (f", {kind}" if kind else ""), False, tuple(tiles))


def _build_mma_tiles(m: int, n: int, k: int, packed: int) -> Iterator[Tile]:
    """Yield the tiles of an `mma.sync`: PTX ISA, "Matrix fragments for mma.m16n8k16" and similar sections."""
    rows, columns = m // 8, 2 if m > 8 else 1
    yield _build_tile("A", m, k, m * k // WARP, lambda i, lane: (
        lane // 4 + 8 * (i // packed % rows), packed * (lane % 4) + i % packed + 4 * packed * (i // packed // rows)
    ))  # fmt: skip
    yield _build_tile("B", k, n, k * n // WARP, lambda i, lane: (
        packed * (lane % 4) + i % packed + 4 * packed * (i // packed), lane // 4
    ))  # fmt: skip
    yield _build_tile("C", m, n, 2 * columns, lambda i, lane: (lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2))


def _build_warpgroup_tile(columns: int) -> Tile:
    """Return the accumulator rows of one of the four warps, 16 of 64; both factors are in shared memory.

    PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async.
    """
    return _build_tile("C", 16, columns, columns // 2, lambda i, lane: (
        lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2
    ))  # fmt: skip


def _build_fragment_tile(use: Use, m: int, n: int, k: int, packed: int) -> Tile:
    """Return the tile of a fragment as the simulator's `mma.h` defines it: `mma.sync` tiles, side by side."""
    if use == "C":
        turned = (m, n) == (8, 32)
        down, across = m == 32 or turned, m == 16

        def locate_accumulator(i: int, lane: Array) -> tuple[Array, Array]:
            long = 16 * (i // 4 if down else 0) + 8 * (i // 2 % 2) + lane // 4
            short = 8 * (i // 4 if across else 0) + 2 * (lane % 4) + i % 2
            return (short, long) if turned else (long, short)

        return _build_tile(use, m, n, m * n // WARP, locate_accumulator)
    length = m if use == "A" else n
    is_long = m > 8 if use == "A" else (m, n) == (8, 32)
    side = 16 if is_long else 8
    in_tile, halves = side * k // WARP, 2 if is_long else 1

    def locate_factor(i: int, lane: Array) -> tuple[Array, Array]:
        offset = i % in_tile
        along = side * (i // in_tile) + 8 * (offset // packed % halves) + lane // 4
        deep = packed * (lane % 4) + offset % packed + 4 * packed * (offset // packed // halves)
        return (along, deep) if use == "A" else (deep, along)

    rows, columns = (m, k) if use == "A" else (k, n)
    return _build_tile(use, rows, columns, length * k // WARP, locate_factor)


def _build_tile(use: Use, rows: int, columns: int, count: int, locate: Any) -> Tile:
    """Return a tile from a function that maps an element's index and the lanes to rows and columns."""
    lanes, places = np.full((rows, columns), -1), np.full((rows, columns), -1)
    lane = np.arange(WARP)
    for i in range(count):
        location = locate(i, lane)
        lanes[location], places[location] = lane, i
    return Tile(use, lanes, places)
