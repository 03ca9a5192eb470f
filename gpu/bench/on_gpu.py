"""The GPU's benchmark: our variants, then in a process of their own the libraries that a user would take instead."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu import engines
from gpu.bench import gravity
from gpu.bench.ladder import Case, constant_image, measure, random_image
from gpu.bench.row import Row

_SIDE = 8192
_COUNTED = (1 << 15, 1 << 15)
_FILTER_SIZES = (3, 5, 9, 15, 31)
_LENGTHS = (2**24, 2**28)
_ARRAY_WORKS = {"reduction": "sum", "scan": "inclusive sum", "compaction": "greater than 0.5, keeping half"}
# Read each element once, and write what is kept: one, all, and half of them.
_BYTES_AN_ELEMENT = {"reduction": 4, "scan": 8, "compaction": 6}
_MATRIX_SIDES = {1024: (), 4096: (), 8192: ("vectors", "peak")}
"""Sides of matrices that are multiplied, and by which variants: all where none is named."""
_SOFTMAX_SHAPES = ((4096, 4096), (2**18, 256))

_SORTED = {2**20: (), 2**24: ("bitonic", "merge", "radix", "onesweep"), 2**28: ("radix", "onesweep")}
_SORTS = {"keys": "keys", "places": "keys with values"}


def convolution_work(size: int) -> str:
    """Name the convolution by a filter of that size."""
    return f"convolution {size} x {size}, {_SIDE} x {_SIDE} float32"


def histogram_work(content: str) -> str:
    """Name the histogram of an image of that content."""
    return f"histogram, 256 bins, 2^30 {content} uint8"


def array_work(pattern: str, length: int) -> str:
    """Name what a pattern of arrays does with so many elements."""
    return f"{pattern} ({_ARRAY_WORKS[pattern]}), 2^{length.bit_length() - 1} float32"


def matmul_work(side: int) -> str:
    """Name the product of square matrices of that side."""
    return f"matmul, {side} x {side} float32"


def softmax_work(rows: int, columns: int) -> str:
    """Name the softmax of so many rows of so many elements."""
    return f"softmax of rows, {rows} x {columns} float32"


def sort_work(result: str, length: int) -> str:
    """Name the sort of so many keys, without values or with."""
    return f"sort, 2^{length.bit_length() - 1} uint32 {_SORTS[result]}"


def cases() -> Iterator[Case]:
    """Yield what is measured. Every size is past the last cache, but for small matrices and bodies."""
    for size in _FILTER_SIZES:
        params = {"filter": "gaussian", "size": size, "border": "zero"}
        yield Case(convolution_work(size), "convolution", random_image(_SIDE, _SIDE), params)
    yield Case(histogram_work("uniform"), "histogram", random_image(*_COUNTED))
    yield Case(histogram_work("constant"), "histogram", constant_image(*_COUNTED))
    sums: dict[str, Any] = {"dtype": "float32", "operator": "sum"}
    kept: dict[str, Any] = {"dtype": "float32", "predicate": "greater", "threshold": 0.5}
    settings = {"reduction": sums, "scan": sums, "compaction": kept}
    for pattern, own in settings.items():
        for length in _LENGTHS:
            yield Case(array_work(pattern, length), pattern, params={"n": length, **own})
    for side, variants in _MATRIX_SIDES.items():
        yield Case(matmul_work(side), "matmul", params={"n": side}, variants=variants)
    for rows, columns in _SOFTMAX_SHAPES:
        yield Case(softmax_work(rows, columns), "softmax", params={"n": columns, "rows": rows})
    yield from gravity.cases()
    for result in _SORTS:
        for length, variants in _SORTED.items():
            params = {"n": length, "dtype": "uint32", "result": result}
            yield Case(sort_work(result, length), "sort", params=params, variants=variants, anew=True)


def run(seed: int, repetitions: int) -> Iterator[Row]:
    """Measure our variants, then the peers, and yield a row for each.

    Raises
    ------
    EngineUnavailableError
        Where there is no GPU that works.
    """
    engine = engines.create("cuda")
    try:
        for case in cases():
            yield from measure(engine, case, seed, repetitions)
    finally:
        engine.close()
    yield from _peers(seed, repetitions)
    yield from gravity.peers(seed, repetitions)


def device_name() -> str:
    """Return the GPU's name."""
    engine = engines.create("cuda")
    try:
        return engine.device.name
    finally:
        engine.close()


def _peers(seed: int, repetitions: int) -> Iterator[Row]:
    works = {
        "convolution": {size: convolution_work(size) for size in _FILTER_SIZES},
        "histogram": {content: histogram_work(content) for content in ("uniform", "constant")},
        **{pattern: {length: array_work(pattern, length) for length in _LENGTHS} for pattern in _ARRAY_WORKS},
        "sort": {result: {length: sort_work(result, length) for length in _SORTED} for result in _SORTS},
        "bytes_an_element": _BYTES_AN_ELEMENT,
        "matmul": {side: matmul_work(side) for side in _MATRIX_SIDES},
        "softmax": [[rows, columns, softmax_work(rows, columns)] for rows, columns in _SOFTMAX_SHAPES],
        "side": _SIDE,
        "count": _COUNTED[0] * _COUNTED[1],
        "seed": seed,
        "repetitions": repetitions,
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).with_name("peers.py")), json.dumps(works), folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            yield Row(**{**record, "times_ms": tuple(record["times_ms"])})
    if done.returncode:
        yield Row("peers", "all", ours=False, times_ms=(), amount=0, unit="", remark="the peers' process failed")
