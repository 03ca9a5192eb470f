"""Cases of the benchmark of several devices: inputs generated on the devices, and checks of the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.engines.base import Array
from gpu.patterns import find_pattern
from gpu.run import verification
from tools.cluster_bench.resident_engine import PartProperties

WINDOW = 64
"""Elements of either end of a part of a result that are compared exactly."""

_MAX_CHUNK_ELEMENTS = 2**30
"""Most elements of a chunk: kernels use 32-bit indices, which can exceed the last element a little."""

_MAX_CHUNK_KEYS = 2**29
_TIME_STEPS = 4
_MASK = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class GeneratedInput:
    """An input that workers generate on their devices, row by row; `generate_elements` returns the same values.

    Parameters
    ----------
    bits : int
        Bits of a pseudorandom number that are an element.
    salt : int
        Index of the first element in the sequence of pseudorandom numbers.
    """

    rows: int
    row_shape: tuple[int, ...]
    dtype: str
    bits: int
    salt: int = 0

    @property
    def row_elements(self) -> int:
        """Elements per row."""
        return math.prod(self.row_shape)


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """Known properties of a result.

    Parameters
    ----------
    parts : tuple of PartProperties
        Parts of a result that stays on the devices, in order.
    arrays : mapping of str to array
        A result that is gathered.
    total : int
        Sum of the input's elements as unsigned integers.
    """

    parts: tuple[PartProperties, ...]
    arrays: Mapping[str, Array]
    total: int

    @property
    def content_hash(self) -> tuple[int, ...]:
        """A hash of the result that does not depend on its division into parts."""
        start = total = placed = 0
        for part in self.parts:
            total, placed = total + part.total, placed + part.weighted_total + start * part.total
            start += part.count
        return start, total & _MASK, placed & _MASK


@dataclass(frozen=True, kw_only=True)
class ClusterCase:
    """A task for one worker and for all.

    Parameters
    ----------
    name, work : str
        Name for `--size`, and title in the table.
    params : mapping
    divided_inputs, second_inputs : mapping of str to GeneratedInput
        Inputs generated on the devices: those that the pattern's program divides into chunks, and its second inputs.
    blank_inputs : mapping of str to (tuple of int, str)
        Inputs that only have a shape, because their values are never read: the shape of a row, and the type.
    host_inputs : mapping of str to array
        Inputs generated in this process and read by workers.
    common_inputs : mapping of str to array
        Inputs that every chunk has.
    min_chunks : int
        The fewest chunks.
    steps : int
        Time steps; 0 for patterns without time.
    resident_outputs, gathered_outputs : tuple of str
        Outputs that stay on the devices, and outputs that are gathered.
    is_correct : callable
        Returns whether a result is correct, as far as its known properties show.
    """

    name: str
    work: str
    pattern: str
    variant: str
    params: Mapping[str, Any]
    divided_inputs: Mapping[str, GeneratedInput] = field(default_factory=dict)
    second_inputs: Mapping[str, GeneratedInput] = field(default_factory=dict)
    blank_inputs: Mapping[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    host_inputs: Mapping[str, Array] = field(default_factory=dict)
    common_inputs: Mapping[str, Array] = field(default_factory=dict)
    min_chunks: int = 1
    steps: int = 0
    resident_outputs: tuple[str, ...] = ()
    gathered_outputs: tuple[str, ...] = ()
    is_correct: Callable[[CaseResult], bool]

    @property
    def rows(self) -> int:
        """Rows to divide."""
        return next((divided_input.rows for divided_input in self.divided_inputs.values()), 0) or len(
            next(iter(self.host_inputs.values()))
        )


def generate_elements(source: GeneratedInput, indices: Array) -> Array:
    """Return elements of an input by their indices, as the devices generate them."""
    bits = (indices + source.salt).astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits = (bits ^ bits >> np.uint32(shift)) * np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    return (bits >> np.uint32(32 - source.bits)).astype(np.uint32).view(np.int32).astype(source.dtype)


def format_size(size: int) -> str:
    """Return a number as text, a large power of two as such."""
    power = size.bit_length() - 1
    return f"2^{power}" if size == 2**power and power > 13 else str(size)


def reduction(n: int) -> ClusterCase:
    """Return the case of the sum of n elements."""

    def is_correct(result: CaseResult) -> bool:
        return int(result.arrays["result"][0]) == _wrap_int32(result.total)

    return ClusterCase(
        name="reduction",
        work=f"reduction (sum), {format_size(n)} int32",
        pattern="reduction",
        variant="peak",
        params={"dtype": "int32"},
        divided_inputs={"values": GeneratedInput(rows=n, row_shape=(), dtype="int32", bits=32)},
        min_chunks=-(-n // _MAX_CHUNK_ELEMENTS),
        gathered_outputs=("result",),
        is_correct=is_correct,
    )


def scan(n: int) -> ClusterCase:
    """Return the case of the scan of n elements."""
    generated = GeneratedInput(rows=n, row_shape=(), dtype="int32", bits=32)

    def is_correct(result: CaseResult) -> bool:
        end, before = 0, np.zeros(1, np.int32)
        for part in result.parts:
            first, last = end, end + part.count
            end = last
            # Neighboring results differ by one element of the input, also across the border of two parts.
            for seen, start in ((np.append(before, part.head), first), (part.tail, last - part.tail.size + 1)):
                steps = np.diff(seen.view(np.uint32)).view(np.int32)
                if not np.array_equal(steps, generate_elements(generated, np.arange(start, start + steps.size))):
                    return False
            before = part.tail[-1:]
        return int(before[0]) == _wrap_int32(result.total)

    return ClusterCase(
        name="scan",
        work=f"scan (inclusive sum), {format_size(n)} int32",
        pattern="scan",
        variant="look-back",
        params={"dtype": "int32"},
        divided_inputs={"values": generated},
        min_chunks=-(-n // _MAX_CHUNK_ELEMENTS),
        resident_outputs=("result",),
        is_correct=is_correct,
    )


def sort(n: int) -> ClusterCase:
    """Return the case of sorting n keys."""

    def is_correct(result: CaseResult) -> bool:
        ends = [(part.head[0], part.tail[-1]) for part in result.parts if part.count]
        between = all(before[1] <= after[0] for before, after in pairwise(ends))
        count, total, _ = result.content_hash
        same = (count, total) == (n, result.total & _MASK)
        return same and between and not any(part.descents for part in result.parts)

    return ClusterCase(
        name="sort",
        work=f"sort, {format_size(n)} int32 keys",
        pattern="sort",
        variant="peak",
        params={"dtype": "int32"},
        divided_inputs={"values": GeneratedInput(rows=n, row_shape=(), dtype="int32", bits=32)},
        min_chunks=-(-n // _MAX_CHUNK_KEYS),
        resident_outputs=("keys",),
        is_correct=is_correct,
    )


def histogram(n: int) -> ClusterCase:
    """Return the case of the histogram of about n pixels."""
    height, width = _image_shape(n)

    def is_correct(result: CaseResult) -> bool:
        counts = result.arrays["counts"][0].astype(np.int64)
        return (int(counts.sum()), int(counts @ np.arange(256))) == (height * width, result.total)

    return ClusterCase(
        name="histogram",
        work=f"histogram, 256 bins, {format_size(height * width)} uint8",
        pattern="histogram",
        variant="peak",
        params={"bins": 256},
        divided_inputs={"image": GeneratedInput(rows=height, row_shape=(width,), dtype="uint8", bits=8)},
        common_inputs={"maxval": np.array(255, np.uint8)},
        min_chunks=-(-height * width // _MAX_CHUNK_ELEMENTS),
        gathered_outputs=("counts",),
        is_correct=is_correct,
    )


def convolution(n: int) -> ClusterCase:
    """Return the case of the convolution of about n pixels."""
    height, width = _image_shape(n)
    generated = GeneratedInput(rows=height, row_shape=(width,), dtype="float32", bits=8)
    pattern = find_pattern("convolution")
    params = pattern.check({"filter": "gaussian", "size": 5})
    assert pattern.distributed is not None
    reach = pattern.distributed.halo(params)

    def reference_row(row: int, first: int, last: int) -> Array:
        """Return columns of a row of the reference result."""
        rows = slice(max(row - reach, 0), min(row + reach + 1, height))
        columns = slice(max(first - reach, 0), min(last + reach, width))
        places = np.arange(rows.start, rows.stop)[:, np.newaxis] * width + np.arange(columns.start, columns.stop)
        image = {"image": generate_elements(generated, places), "maxval": np.array(255)}
        reference: Array = pattern.reference(image, params)
        return reference[row - rows.start, first - columns.start : last - columns.start]

    def is_correct(result: CaseResult) -> bool:
        tolerance, row = 255 * 1e-5, 0
        for part in result.parts:
            count, end = min(WINDOW, width), row + part.count // width
            head, tail = reference_row(row, 0, count), reference_row(end - 1, width - count, width)
            errors = part.head[:count] - head, part.tail[-count:] - tail
            if not np.abs(errors).max() <= tolerance:
                return False
            row = end
        return row == height

    return ClusterCase(
        name="convolution",
        work=f"convolution 5 x 5, {height} x {width} float32",
        pattern="convolution",
        variant="peak",
        params={"filter": "gaussian", "size": 5},
        divided_inputs={"image": generated},
        common_inputs={"maxval": np.array(255)},
        min_chunks=-(-height * width // _MAX_CHUNK_ELEMENTS),
        resident_outputs=("result",),
        is_correct=is_correct,
    )


def matmul(side: int) -> ClusterCase:
    """Return the case of the product of square matrices with `side` rows."""
    # The elements are integers so small that every sum of products is exact in any order.
    a, b = (
        GeneratedInput(rows=side, row_shape=(side,), dtype="float32", bits=3, salt=salt)
        for salt in (0, 3 * side * side)
    )

    def reference_row(row: int, columns: Array) -> Array:
        left = generate_elements(a, row * side + np.arange(side)).astype(np.float64)
        rights = generate_elements(b, np.arange(side)[:, np.newaxis] * side + columns)
        return left @ rights.astype(np.float64)

    def is_correct(result: CaseResult) -> bool:
        row = 0
        for part in result.parts:
            count, end = min(WINDOW, side), row + part.count // side
            first, last = reference_row(row, np.arange(count)), reference_row(end - 1, np.arange(side - count, side))
            if not (np.array_equal(part.head[:count], first) and np.array_equal(part.tail[-count:], last)):
                return False
            row = end
        return row == side

    return ClusterCase(
        name="matmul",
        work=f"matmul, {side} x {side} float32",
        pattern="matmul",
        variant="peak",
        params={},
        divided_inputs={"values": a},
        second_inputs={"b": b},
        blank_inputs={"c": ((side,), "float32")},
        resident_outputs=("result",),
        is_correct=is_correct,
    )


def nbody(bodies: int, seed: int = 1) -> ClusterCase:
    """Return the case of time steps of a number of bodies."""
    pattern = find_pattern("nbody")
    params = pattern.check({"preset": "plummer", "bodies": bodies, "steps": _TIME_STEPS})
    inputs = pattern.prepare_inputs({}, params, seed)

    def is_correct(result: CaseResult) -> bool:
        variant = pattern.variant("split")
        computed, reference = verification.prepare_comparison(pattern, variant, inputs, params, result.arrays)
        return verification.compare_results(computed, reference, pattern.tolerance(inputs, params))[1]

    return ClusterCase(
        name="nbody",
        work=f"n-body, {format_size(bodies)} bodies, {_TIME_STEPS} steps: all forces {_TIME_STEPS + 1} times",
        pattern="nbody",
        variant="split",
        params={"preset": "plummer", "bodies": bodies, "steps": _TIME_STEPS},
        steps=_TIME_STEPS,
        host_inputs=inputs,
        gathered_outputs=("accelerations", "bodies"),
        is_correct=is_correct,
    )


CASES: Mapping[str, Callable[[int], ClusterCase]] = {
    case.__name__: case for case in (nbody, matmul, sort, scan, reduction, histogram, convolution)
}
"""By name: a function of a size that returns the case."""


def are_results_equal(results: Sequence[CaseResult]) -> bool:
    """Return whether results are equal, bit for bit where they consist of integers."""
    with_parts = [result for result in results if result.parts]
    return len({each.content_hash for each in with_parts}) <= 1


def _wrap_int32(total: int) -> int:
    return (total + 2**31) % 2**32 - 2**31


def _image_shape(n: int) -> tuple[int, int]:
    """Return height and width of an image of n pixels, or a few less."""
    width = 2 ** ((n.bit_length() - 1) // 2)
    return n // width, width
