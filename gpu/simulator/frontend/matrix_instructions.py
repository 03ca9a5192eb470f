"""PTX's products of tiles: how many registers an instruction has for what, and what is in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpu.simulator.types import INT32, Scalar

_FLOAT32, _FLOAT64 = Scalar("float32"), Scalar("float64")


@dataclass(frozen=True)
class MatrixInstruction:
    """An `mma.sync`.

    Parameters
    ----------
    sum : Scalar
        What products are added up in.
    a, b, c : int
        How many registers a lane has of each operand, and of the result as of `c`.
    packed : int
        How many elements a register of `a` or `b` holds.
    unpack_a, unpack_b : str
        The shim's functions that give one of them; "" where a register is the element.
    halves : bool
        Whether a register of `c` holds two halves.
    """

    sum: Scalar
    a: int
    b: int
    c: int
    packed: int
    unpack_a: str
    unpack_b: str
    halves: bool = False

    @property
    def row_parts(self) -> int:
        """Of how many rows a lane holds elements of A: registers take turns, and so do pairs of results."""
        return 2 if self.a > self.b else 1


@dataclass(frozen=True)
class WarpgroupInstruction:
    """A `wgmma.mma_async`: four warps multiply 64 rows, which are 16 for each, by columns in shared memory.

    Of A's rows and of every 8 columns a lane has what it has in an `mma.sync` of 16 rows, and so of the result.

    Parameters
    ----------
    columns : int
    packed : int
        How many elements are in 4 bytes.
    unpack : str
        The shim's function that gives one of them.
    turns : bool
        Whether a tile may also lie with its rows and columns exchanged.
    """

    columns: int
    packed: int
    unpack: str
    turns: bool


# By the type of an element: what its function is called, the depth of a register, and what sums may be.
_ELEMENTS = {
    "f16": ("half_at", 8, ("f32", "f16")),
    "bf16": ("bf16_at", 8, ("f32",)),
    "tf32": ("tf32_at", 4, ("f32",)),
    "s8": ("s8_at", 16, ("s32",)),
    "u8": ("u8_at", 16, ("s32",)),
    "f64": ("", 4, ("f64",)),
}
_SUMS = {"f32": _FLOAT32, "f16": _FLOAT32, "s32": INT32, "f64": _FLOAT64}


def product(words: tuple[str, ...]) -> MatrixInstruction | None:
    """Return what the words after `mma` say; None for what the simulator does not have."""
    if len(words) != 9 or words[:2] != ("sync", "aligned") or words[3:5] != ("row", "col"):
        return None
    shape, (of_d, of_a, of_b, of_c) = words[2], words[5:]
    if of_a not in _ELEMENTS or of_d != of_c or of_d not in _ELEMENTS[of_a][2]:
        return None
    unpack, depth, _ = _ELEMENTS[of_a]
    if of_a != of_b and {of_a, of_b} != {"s8", "u8"}:
        return None
    if of_a == "f64":
        return MatrixInstruction(_FLOAT64, 1, 1, 2, 1, "", "") if shape == "m8n8k4" else None
    if shape not in (f"m16n8k{depth}", f"m16n8k{2 * depth}"):
        return None
    registers = 2 if shape == f"m16n8k{2 * depth}" else 1
    halves = of_c == "f16"
    counts = (2 * registers, registers, 2 if halves else 4)
    return MatrixInstruction(_SUMS[of_c], *counts, depth // 4, unpack, _ELEMENTS[of_b][0], halves)


_MOST_COLUMNS = 256


def warpgroup_product(words: tuple[str, ...]) -> WarpgroupInstruction | None:
    """Return what the words after `wgmma` say; None for what the simulator does not have."""
    if len(words) != 7 or words[:3] != ("mma_async", "sync", "aligned"):
        return None
    shape, (of_d, of_a, of_b) = words[3], words[4:]
    if of_d != "f32" or of_a != of_b or of_a not in ("f16", "bf16", "tf32"):
        return None
    unpack, depth, _ = _ELEMENTS[of_a]
    found = re.fullmatch(r"m64n(\d+)k(\d+)", shape)
    if found is None or int(found[2]) != 2 * depth or int(found[1]) not in range(8, _MOST_COLUMNS + 1, 8):
        return None
    return WarpgroupInstruction(int(found[1]), depth // 4, unpack, of_a != "tf32")
