"""What a figure costs: seconds of a processor, and memory beside the input.

The limits are several times what a fast processor takes, so that a slow one with other work keeps them.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from gpu.engines.modeling_engine import ModelingEngine
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_pattern
from gpu.timing.gpus import find_gpu
from tests import needs
from tools.model_bench import foreign_kernels


@pytest.mark.parametrize(
    ("pattern", "variant", "given", "most"),
    [
        # One warp runs a quarter of a million instructions in sixteen thousand rounds, alike.
        ("reduction", "one-thread", {"n": 1 << 16, "dtype": "float32"}, 5),
        # Rows of all lengths: each of a million threads is counted.
        ("spmv", "fitted", {"n": 1 << 16, "matrix": "power-law", "entries": 16}, 5),
        # Searches all over the keys, in launches that are modeled one by one: of each a part of the grid is counted.
        ("sort", "merge", {"n": 1 << 22}, 5),
        # Thousands of lanes, each of which adds up what eight thousand bodies do to it.
        pytest.param(
            "nbody", "registers", {"bodies": 1 << 13, "block": "1024", "steps": 0}, 5, marks=pytest.mark.sweep
        ),
    ],
)
def test_the_longest_variants_take_seconds(pattern, variant, given, most) -> None:
    declared = find_pattern(pattern)
    params = declared.check(given)
    inputs = declared.prepare_inputs({}, params, 7)
    chosen = declared.variant(variant)
    small = declared.check(given | {"bodies" if "bodies" in given else "n": 1 << 10})
    model_pattern(chosen, declared.prepare_inputs({}, small, 7), small, "h200")  # compiled, and what it imports
    begin = time.process_time()
    model_pattern(chosen, inputs, params, "h200")
    assert time.process_time() - begin < most


def test_of_a_large_grid_whose_rounds_nobody_foresees_a_part_is_counted() -> None:
    """Mandelbrot's set on 16 million points: all of them, up to hundreds of rounds each, took 38 seconds."""
    case = [each for each in foreign_kernels.all_cases() if each.kernel == "mandelbrot"][-1]
    engine = ModelingEngine(find_gpu("h200"))
    engine.sources.update(foreign_kernels.read_sources())
    arguments = case.make_arguments(np.random.default_rng(7))
    begin = time.process_time()
    case.launch(engine, arguments)
    assert time.process_time() - begin < 5
    engine.close()


_PEAK = """
import resource, sys
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_pattern

declared = find_pattern("compaction")
params = declared.check({"n": 1 << 26, "dtype": "float32"})
inputs = declared.prepare_inputs({}, params, 7)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model_pattern(declared.variant("three-kernels"), inputs, params, "h200")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@needs.linux
def test_arrays_are_modeled_beside_nothing_but_themselves() -> None:
    """Input, its copy, what comes between, the result and its copy would be six arrays of 256 MB."""
    found = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True, timeout=120)
    assert int(found.stdout) < 256 << 10


def test_a_launch_leaves_the_hosts_array_as_it_was() -> None:
    engine = ModelingEngine(find_gpu("h200"))
    engine.sources["mine.cu"] = """
extern "C" __global__ void twice(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}
"""
    values = np.arange(1000, dtype=np.int32)
    one, other = engine.upload(values), engine.upload(values)
    kernel = engine.build("mine.cu").kernel("twice")
    for _ in range(2):
        engine.launch(kernel, (4, 1, 1), (256, 1, 1), one, np.int32(1000))
    assert engine.download(one).tolist() == [4 * i for i in range(1000)]
    engine.fill(other, 0)
    assert not engine.download(other).any()
    last = engine.upload(values)
    engine.launch(kernel, (4, 1, 1), (256, 1, 1), last, np.int32(1000))
    assert np.shares_memory(last.data, values), "a launch that is not executed needs no copy"
    engine.free(last)
    engine.launch(kernel, (4, 1, 1), (256, 1, 1), one, np.int32(1000))  # executes the launch before it
    assert values.tolist() == list(range(1000))
    engine.close()
