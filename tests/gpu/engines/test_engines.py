"""What both engines promise in the same words, and what only the simulator can be asked here."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import CompileError, EngineUnavailableError, KernelError, LaunchError
from gpu.base.paths import KERNELS
from gpu.engines.base import Engine, inline_headers
from gpu.engines.null import NullEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload

SCALE = """
__constant__ float FACTOR[2];
extern "C" __global__ void scale(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * FACTOR[1] + OFFSET;
}
"""


def run_scale(engine: Engine, source: str, offset: int = 3) -> np.ndarray:
    engine.sources = {"scale.cu": source}
    try:
        module = engine.build("scale.cu", {"OFFSET": offset})
        kernel = module.kernel("scale")
        module.set_constant("FACTOR", np.array([0, 2], np.float32))
        given = engine.upload(np.arange(100, dtype=np.float32))
        out = engine.allocate((100,), np.float32)
        engine.launch(kernel, (4, 1, 1), (32, 1, 1), given, out, np.int32(100))
        result = engine.download(out)
        engine.free(given, out)
        return result
    finally:
        engine.sources = {}


def test_text_that_replaces_a_file_constants_and_macros(engine: Engine) -> None:
    np.testing.assert_array_equal(run_scale(engine, SCALE), np.arange(100) * 2 + 3)
    np.testing.assert_array_equal(run_scale(engine, SCALE, offset=5), np.arange(100) * 2 + 5)
    np.testing.assert_array_equal(run_scale(engine, SCALE.replace("+ OFFSET", "- OFFSET")), np.arange(100) * 2 - 3)


def test_a_compile_error_names_our_line(engine: Engine) -> None:
    with pytest.raises(CompileError) as caught:
        run_scale(engine, SCALE.replace("in[i] *", "inn[i] *"))
    assert caught.value.position is not None
    assert (caught.value.position.file, caught.value.position.line) == ("scale.cu", 5)
    assert "inn" in caught.value.message
    assert "inn" in caught.value.detail
    np.testing.assert_array_equal(run_scale(engine, SCALE), np.arange(100) * 2 + 3)


def test_a_compile_error_behind_an_included_header_names_our_line(engine: Engine) -> None:
    kernel = "__global__ void k(VALUE *data) { data[0] = COMBINE(data[0], IDENTITY) + nobody; }"
    engine.sources = {"scale.cu": f'#include "operators.cuh"\n\n{kernel}\n'}
    try:
        with pytest.raises(CompileError, match="nobody") as caught:
            engine.build("scale.cu")
    finally:
        engine.sources = {}
    assert (caught.value.position.file, caught.value.position.line) == ("scale.cu", 3)


def test_a_whole_text_has_its_headers_written_out() -> None:
    text = '#include "none.cuh"\n#include "operators.cuh"\n#include <cstdio>\nint last;'
    lines = inline_headers("own.cu", text).split("\n")
    assert lines[:3] == ['#line 1 "own.cu"', '#include "none.cuh"', '#line 1 "operators.cuh"']
    assert lines[-3:] == ['#line 3 "own.cu"', "#include <cstdio>", "int last;"]
    header = (KERNELS / "operators.cuh").read_text("utf-8").split("\n")
    follows = header.index('#include "values.cuh"') + 1
    inner = lines.index('#line 1 "values.cuh"')
    [after] = [place for place, line in enumerate(lines) if re.fullmatch(r'#line [^1]\d* "operators.cuh"', line)]
    assert lines[inner + 1 : after] == (KERNELS / "values.cuh").read_text("utf-8").split("\n")
    assert lines[after] == f'#line {follows + 1} "operators.cuh"'
    assert lines[after + 1 : -3] == header[follows:]


def test_names_that_do_not_exist(engine: Engine) -> None:
    with pytest.raises(KernelError, match=r"nothing\.cu"):
        engine.build("nothing.cu")
    module = engine.build("histogram.cu")
    with pytest.raises(KernelError, match="has no kernel 'nothing'"):
        module.kernel("nothing")
    with pytest.raises(KernelError, match="'nothing'"):
        module.set_constant("nothing", np.zeros(1, np.float32))
    with pytest.raises(KernelError, match=r"FILTER holds 36 bytes; 40 do not fit"):
        engine.build("convolution.cu", {"RADIUS": 1}).set_constant("FILTER", np.zeros(10, np.float32))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.float32, np.float64])
def test_fill_and_empty_arrays(engine: Engine, dtype: type) -> None:
    for shape in [(7, 3), (0,)]:
        buffer = engine.allocate(shape, dtype)
        engine.fill(buffer, 9)
        np.testing.assert_array_equal(engine.download(buffer), np.full(shape, 9, dtype))
        engine.free(buffer)


def test_arrays_of_the_simulator_begin_where_those_of_cuda_do() -> None:
    engine, values = SimulatorEngine(), np.arange(6, dtype=np.float64).reshape(2, 3)
    buffers = [engine.allocate((size,), np.uint8) for size in (1, 100, 5000)]
    buffers += [engine.upload(each) for each in (values, values.T, values[:, 1], values[:0], np.array(7.0))]
    assert [buffer.data.ctypes.data % 256 for buffer in buffers if buffer.data.size] == [0] * 7
    np.testing.assert_array_equal(engine.download(buffers[4]), values.T)
    np.testing.assert_array_equal(engine.download(buffers[5]), values[:, 1])
    assert engine.download(buffers[7]) == 7.0


def test_times_are_taken_once(engine: Engine) -> None:
    run_scale(engine, SCALE)
    times = engine.take_times()
    assert min(times.upload, times.kernel, times.download) > 0
    assert engine.take_times().kernel == 0


def test_an_array_that_does_not_fit_is_refused(engine: Engine) -> None:
    with pytest.raises(LaunchError, match=r"not enough memory"):
        engine.allocate((2**50,), np.uint8)


def test_progress_comes_while_a_launch_runs() -> None:
    engine = SimulatorEngine("lockstep")
    told: list[float] = []
    engine.on_progress = told.append
    pixels = engine.upload(np.zeros(2**16, np.uint8))
    counts = engine.allocate((256,), np.uint32)
    engine.fill(counts, 0)
    kernel = engine.build("histogram.cu").kernel("histogram_interleaved")
    engine.launch(kernel, (512, 1, 1), (256, 1, 1), pixels, counts, np.int32(2**16), np.int32(256))
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == 1


def test_an_engine_that_is_not_there_says_so() -> None:
    with pytest.raises(EngineUnavailableError, match="There is no engine 'opencl'"):
        engines.create_engine("opencl")


def test_the_null_engine_runs_every_host_program() -> None:
    from gpu.patterns import all_patterns

    image = {"image": np.ones((5, 7), np.uint8), "maxval": np.array(255)}
    for pattern in all_patterns().values():
        for variant in pattern.variants:
            given = pattern.step_params if variant.is_single_thread else {}  # at first it would have too much to do
            inputs = pattern.prepare_inputs(image if pattern.is_image_pattern else {}, pattern.check(given), 0)
            outcome = run_pattern(
                NullEngine(), Workload(pattern, variant, inputs, given), lambda progress: None, with_reference=False
            )
            assert not outcome.outputs[pattern.result].any()
