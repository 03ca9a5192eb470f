"""Mathematical functions as instructions of the timing model's own, for PTX that NVIDIA's compiler did not generate.

On a GPU they are functions of NVIDIA's library, of which each is a sequence of instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gpu.simulator.ir.forms import Function
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.types import Scalar

LIBRARY_FUNCTION = "libfunc"
"""The opcode; its modifiers are the function's name and the operands' type."""


class FunctionCost(NamedTuple):
    """The instructions of a call by one warp.

    Parameters
    ----------
    slots : float
        Machine instructions.
    pipe_instructions : float
        Those on the pipe that limits the function: for float32 the special functions, for float64 the float64 pipe.
    latency : float
        Cycles until the result is available.
    operations : float
        Operations of one thread, as profilers count them: sums and products, of which a multiply-add has two.
    blocked : float
        Cycles until the warp can issue its next instruction, as the usual path has a branch; 0 if it has none.
    """

    slots: float
    pipe_instructions: float
    latency: float
    operations: float
    blocked: float


# Counts of nvcc 13.0's instructions for capability 8.6, on the paths that 32 random arguments in the function's usual
# range take; latencies as the timing model computes them for a chain of calls, for float64 on an H200. Of float64 pow
# only the operations are counted; its other figures, and all of float64 lgamma and of both forms of frexp, are guesses.
_FLOAT32: dict[str, tuple[float, float, float, float]] = {
    "cbrt": (16, 2, 69, 9), "exp": (8, 1, 38, 10), "exp2": (4, 1, 12, 0), "exp10": (8, 1, 38, 10),
    "expm1": (29, 1, 71, 22), "log": (26, 0.5, 74, 27), "log2": (28, 0.5, 82, 29), "log10": (27, 0.5, 78, 28),
    "log1p": (26, 0.5, 93, 27), "sin": (26, 1, 79, 18), "cos": (27, 1, 84, 19), "tan": (24, 2, 103, 21),
    "asin": (25, 1, 89, 23), "acos": (26, 1, 97, 25), "atan": (18, 1, 67, 20), "sinh": (25, 2, 84, 20),
    "cosh": (15, 2, 75, 10), "tanh": (15, 2, 55, 15), "erf": (28, 1, 66, 16), "erfc": (48, 3, 120, 54),
    "erfinv": (16, 1, 73, 21), "erfcinv": (19, 1, 89, 22), "erfcx": (52, 3, 210, 49), "normcdf": (63, 3, 160, 67),
    "normcdfinv": (21, 1, 94, 25), "j0": (28, 0, 99, 35), "j1": (30, 0, 100, 31), "y0": (40, 0, 172, 23),
    "y1": (112, 1.5, 357, 35), "cyl_bessel_i0": (18, 0, 63, 21), "cyl_bessel_i1": (19, 0, 63, 21),
    "lgamma": (86, 1.5, 343, 20), "tgamma": (115, 4, 259, 69), "asinh": (38, 2.5, 141, 34),
    "acosh": (39, 1.5, 128, 37), "atanh": (35, 1.5, 115, 30), "pow": (63, 2, 244, 58), "fmod": (26, 1, 88, 3),
    "atan2": (34, 1, 121, 31), "hypot": (23, 1, 82, 12), "ldexp": (4, 0, 7, 4), "__lockstep_mantissa": (6, 0, 20, 1),
    "__lockstep_exponent": (6, 0, 20, 1),
}  # fmt: skip
_FLOAT64: dict[str, tuple[float, float, float, float]] = {
    "cbrt": (41, 14, 318, 16), "exp": (25, 15, 140, 29), "exp2": (24, 16, 148, 28), "exp10": (27, 17, 157, 32),
    "expm1": (41, 19, 191, 34), "log": (62, 29, 313, 45), "log2": (64, 31, 314, 48), "log10": (64, 31, 314, 48),
    "log1p": (99, 45, 595, 28), "sin": (34, 16, 199, 26), "cos": (35, 16, 202, 26), "tan": (46, 31, 371, 46),
    "asin": (64, 44, 288, 34), "acos": (62, 45, 345, 35), "atan": (34, 29, 319, 47), "sinh": (80, 32, 412, 41),
    "cosh": (37, 20, 292, 38), "tanh": (58, 35, 440, 33), "erf": (55, 43, 358, 78), "erfc": (92, 62, 455, 112),
    "erfinv": (69, 50, 520, 91), "erfcinv": (69, 52, 517, 90), "erfcx": (95, 63, 616, 96),
    "normcdf": (108, 74, 524, 125), "normcdfinv": (73, 56, 532, 95), "j0": (26, 20, 179, 35), "j1": (52, 39, 323, 32),
    "y0": (172, 119, 1017, 51), "y1": (187, 115, 1046, 56), "cyl_bessel_i0": (28, 18, 167, 35),
    "cyl_bessel_i1": (29, 19, 167, 35), "lgamma": (100, 50, 600, 85), "tgamma": (66, 24, 328, 56),
    "asinh": (126, 59, 791, 66), "acosh": (90, 42, 421, 64), "atanh": (120, 48, 724, 61), "pow": (170, 99, 700, 127),
    "fmod": (74, 5, 311, 2), "atan2": (60, 28, 354, 57), "hypot": (39, 14, 121, 15), "ldexp": (4, 4, 23, 4),
    "__lockstep_mantissa": (8, 0, 25, 1), "__lockstep_exponent": (8, 0, 25, 1),
}  # fmt: skip
_COSTS = {"f32": _FLOAT32, "f64": _FLOAT64}
_BLOCKED_FLOAT32: dict[str, float] = {
    "sin": 61, "cos": 67, "tan": 70, "asinh": 40, "acosh": 34, "atanh": 36, "log1p": 33, "j0": 103, "j1": 106,
    "y0": 124, "y1": 293, "cyl_bessel_i0": 76, "cyl_bessel_i1": 76, "lgamma": 140, "tgamma": 204, "erfinv": 29,
    "erfcinv": 101, "erfcx": 162, "normcdfinv": 104, "pow": 261, "fmod": 53, "atan2": 101, "hypot": 83,
}  # fmt: skip
"""By function with a branch on its usual path, in nvcc 13.0's code, the cycles that each further call of a warp takes
on an H200 if the calls do not depend on each other."""
_NOT_BLOCKED_FLOAT64 = frozenset(
    ("cbrt", "erf", "exp", "exp2", "exp10", "hypot", "ldexp", "__lockstep_mantissa", "__lockstep_exponent")
)
"""Functions of float64 whose calls overlap on an H200; calls of all others follow one another."""


def find_library_name(name: str) -> str:
    """Return the name in this module of a CUDA function, such as "exp" for expf; "" for one that is no such function.

    `__expf` and its like are instructions, not functions.
    """
    return next((each for each in (name, name.removesuffix("f")) if each in _FLOAT32), "")


def get_function_cost(words: tuple[str, ...]) -> FunctionCost:
    """Return the cost of an instruction with these modifiers: the function's name and its type."""
    name, type = words[:2]
    slots, pipe_instructions, latency, operations = _COSTS[type][name]
    if type == "f32":
        return FunctionCost(slots, pipe_instructions, latency, operations, _BLOCKED_FLOAT32.get(name, 0.0))
    return FunctionCost(slots, pipe_instructions, latency, operations, 0.0 if name in _NOT_BLOCKED_FLOAT64 else latency)


def get_function(words: tuple[str, ...]) -> Function:
    """Return the NumPy function of an instruction with these modifiers."""
    return INTRINSICS[words[0]].get_function(Scalar("float32" if words[1] == "f32" else "float64"))


OPERAND_TYPES: Mapping[str, tuple[str | None, ...]] = {"ldexp": (None, "s32")}
"""The types of a function's operands if they are not all of the function's type."""
