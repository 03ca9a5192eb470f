"""PTX's matrix products: registers per operand, and how elements are packed into them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpu.simulator.types import INT32, Scalar

_FLOAT32, _FLOAT64 = Scalar("float32"), Scalar("float64")


@dataclass(frozen=True)
class MatrixInstruction:
    """An `mma.sync` instruction.

    Parameters
    ----------
    a, b, c : int
        Registers per lane of each operand; the result has the same number as `c`.
    elements_per_register : int
        Elements per register of `a` or `b`.
    unpack_a, unpack_b : str
        The shim's functions that extract one element; "" if a register is the element.
    has_half_pairs : bool
        Whether a register of `c` holds two half-precision numbers.
    """

    accumulator_type: Scalar
    a: int
    b: int
    c: int
    elements_per_register: int
    unpack_a: str
    unpack_b: str
    has_half_pairs: bool = False

    @property
    def row_parts(self) -> int:
        """The number of rows of A of which a lane holds elements; registers, and pairs of results, alternate."""
        return 2 if self.a > self.b else 1


@dataclass(frozen=True)
class WarpgroupInstruction:
    """A `wgmma.mma_async` instruction: four warps multiply 64 rows, 16 per warp, by columns in shared memory.

    A lane holds the same elements of A's rows, of every 8 columns and of the result as in an `mma.sync` of 16 rows.

    Parameters
    ----------
    elements_per_word : int
        Elements per 4 bytes.
    unpack : str
        The shim's function that extracts one element.
    allows_transpose : bool
        Whether a tile may also be stored transposed.
    """

    columns: int
    elements_per_word: int
    unpack: str
    allows_transpose: bool


# By element type: the name of the unpack function, the depth of a register, and the allowed accumulator types.
_ELEMENTS = {
    "f16": ("half_at", 8, ("f32", "f16")),
    "bf16": ("bf16_at", 8, ("f32",)),
    "tf32": ("tf32_at", 4, ("f32",)),
    "s8": ("s8_at", 16, ("s32",)),
    "u8": ("u8_at", 16, ("s32",)),
    "f64": ("", 4, ("f64",)),
}
_ACCUMULATOR_TYPES = {"f32": _FLOAT32, "f16": _FLOAT32, "s32": INT32, "f64": _FLOAT64}


def parse_matrix_product(words: tuple[str, ...]) -> MatrixInstruction | None:
    """Parse the words after `mma`; None for an instruction that the simulator does not support."""
    if len(words) != 9 or words[:2] != ("sync", "aligned") or words[3:5] != ("row", "col"):
        return None
    shape, (type_d, type_a, type_b, type_c) = words[2], words[5:]
    if type_a not in _ELEMENTS or type_d != type_c or type_d not in _ELEMENTS[type_a][2]:
        return None
    unpack, depth, _ = _ELEMENTS[type_a]
    if type_a != type_b and {type_a, type_b} != {"s8", "u8"}:
        return None
    if type_a == "f64":
        return MatrixInstruction(_FLOAT64, 1, 1, 2, 1, "", "") if shape == "m8n8k4" else None
    if shape not in (f"m16n8k{depth}", f"m16n8k{2 * depth}"):
        return None
    registers = 2 if shape == f"m16n8k{2 * depth}" else 1
    halves = type_c == "f16"
    counts = (2 * registers, registers, 2 if halves else 4)
    return MatrixInstruction(_ACCUMULATOR_TYPES[type_c], *counts, depth // 4, unpack, _ELEMENTS[type_b][0], halves)


_MAXIMUM_COLUMNS = 256


def parse_warpgroup_product(words: tuple[str, ...]) -> WarpgroupInstruction | None:
    """Parse the words after `wgmma`; None for an instruction that the simulator does not support."""
    if len(words) != 7 or words[:3] != ("mma_async", "sync", "aligned"):
        return None
    shape, (type_d, type_a, type_b) = words[3], words[4:]
    if type_d != "f32" or type_a != type_b or type_a not in ("f16", "bf16", "tf32"):
        return None
    unpack, depth, _ = _ELEMENTS[type_a]
    match = re.fullmatch(r"m64n(\d+)k(\d+)", shape)
    if match is None or int(match[2]) != 2 * depth or int(match[1]) not in range(8, _MAXIMUM_COLUMNS + 1, 8):
        return None
    return WarpgroupInstruction(int(match[1]), depth // 4, unpack, type_a != "tf32")
