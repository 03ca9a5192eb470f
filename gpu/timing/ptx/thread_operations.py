"""Arithmetic operations of threads, counted as profilers count machine instructions: a multiply-add is two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.timing.ptx.library_functions import LIBRARY_FUNCTION, get_function_cost
from gpu.timing.ptx.program import PtxInstruction

Array = npt.NDArray[Any]

_SIMPLE = ("add", "sub", "mul")
_MULTIPLY_ADDS = ("fma", "mad")
_SCALED = ("sin", "cos", "div")
"""Approximate instructions that become a product and a special function."""
# Operations of the machine code for instructions that become several, as ptxas generates it for capability 8.6.
_SEQUENCES = {("div", "f32"): 10.0, ("sqrt", "f32"): 6.0, ("rcp", "f32"): 5.0, ("div", "f64"): 15.0,
              ("sqrt", "f64"): 13.0, ("rcp", "f64"): 10.0}  # fmt: skip
_FLOAT32_OF_DIVISION = 2.0
"""Float32 operations of a float64 division, which tests its result with one multiply-add."""

_SHARED_LOOP_ROUNDS = 0.71
"""A warp's rounds until its lanes have added to a word that it shares with its block's other warps, relative to the
block's threads on the word. gpuFLOPBench, on an RTX 3080: 94 sums of a thread if 256 share a word, 44 if 128."""


class ThreadOperations(NamedTuple):
    """Float32 and float64 operations of one thread."""

    float32: float
    float64: float


def count_thread_operations(instructions: Sequence[PtxInstruction]) -> ThreadOperations:
    """Return the operations of a thread that executes some instructions; comparisons and conversions do not count."""
    counts = {"f32": 0.0, "f64": 0.0}
    for instruction in instructions:
        if instruction.type in counts:
            counts[instruction.type] += _count_operations(instruction)
        if (instruction.opcode, instruction.type) == ("div", "f64"):
            counts["f32"] += _FLOAT32_OF_DIVISION
    return ThreadOperations(counts["f32"], counts["f64"])


def count_shared_loop_operations(type: str, lanes: Array, rounds: Array, block_rounds: Array) -> ThreadOperations:
    """Return the operations of atomic operations in shared memory that are loops, which repeat the sum in each round.

    Parameters
    ----------
    type : str
        The operands' type, such as "f32".
    lanes, rounds, block_rounds : int array
        For each warp its active lanes, its lanes on one word, and the threads of its block on one of its words.
    """
    contention = np.maximum(1.0, _SHARED_LOOP_ROUNDS * block_rounds / np.maximum(rounds, 1))
    sums = float((lanes * (rounds + 1) / 2 * contention).sum())
    return ThreadOperations(sums * (type == "f32"), sums * (type == "f64"))


def has_thread_operations(instruction: PtxInstruction) -> bool:
    """Return whether an instruction counts as an operation."""
    return any(count_thread_operations([instruction]))


def _count_operations(instruction: PtxInstruction) -> float:
    opcode = instruction.opcode
    if opcode in _SIMPLE:
        return 1.0
    if opcode == LIBRARY_FUNCTION:
        return get_function_cost(instruction.modifiers).operations
    if opcode in _MULTIPLY_ADDS:
        return 2.0
    if "approx" in instruction.modifiers:
        return 1.0 if opcode in _SCALED else 0.0
    return _SEQUENCES.get((opcode, instruction.type), 0.0)
