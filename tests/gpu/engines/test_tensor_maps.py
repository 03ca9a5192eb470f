"""Tensor maps as arguments of launches, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.engines import create_engine
from gpu.engines.base import Engine, TensorMap
from gpu.engines.checking_engine import CheckingEngine
from gpu.engines.null import NullEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.engines.tracing_engine import TracingEngine

SOURCE = r"""
#include <cuda.h>
extern "C" __global__ void boxed(const __grid_constant__ CUtensorMap map, unsigned int *out, int x, int y) {
    extern __shared__ __align__(1024) unsigned int box[];
    unsigned to = (unsigned)__cvta_generic_to_shared(box), bar = to + 1024;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred over;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], 0;\n"
                 "@over bra go_on;\n"
                 "bra again;\n"
                 "go_on: }" ::"r"(bar) : "memory");
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = box[i];
}
"""


def _copy_box(engine: Engine, values: np.ndarray, x: int, y: int) -> np.ndarray:
    """Return a box of 8 rows of a matrix, which is swizzled in shared memory."""
    engine.sources = {"boxed.cu": SOURCE}
    kernel = engine.build("boxed.cu").kernel("boxed")
    matrix, out = engine.upload(values), engine.allocate((256,), np.uint32)
    arguments = (TensorMap(matrix, 8), out, np.int32(x), np.int32(y))
    engine.launch(kernel, (1, 1, 1), (32, 1, 1), *arguments, shared_bytes=1024 + 8)
    parts = engine.download(out).reshape(8, 8, 4)
    return np.stack([row[np.arange(8) ^ line] for line, row in enumerate(parts)]).reshape(8, 32).view(values.dtype)


def _expected(values: np.ndarray, x: int, y: int) -> np.ndarray:
    padded = np.pad(values, 64)
    return padded[y + 64 : y + 72, x + 64 : x + 64 + 128 // values.itemsize]


BOXES = [(0, 0), (8, 3), (64, 15), (-8, -2)]


def _test_box(engine: Engine, x: int, y: int) -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (20, 120)).astype(np.float16)
    np.testing.assert_array_equal(_copy_box(engine, values, x, y), _expected(values, x, y))


@pytest.mark.parametrize(("x", "y"), BOXES)
def test_a_box_of_a_buffer(x: int, y: int) -> None:
    _test_box(SimulatorEngine(), x, y)


@pytest.mark.gpu
@pytest.mark.hardware
def test_a_box_of_a_buffer_on_a_gpu() -> None:
    engine = create_engine("cuda")
    if engine.device.no_warpgroups:
        pytest.skip(engine.device.no_warpgroups)
    for x, y in BOXES:
        _test_box(engine, x, y)
    engine.close()


def test_engines_with_observers_know_the_buffer() -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (8, 64)).astype(np.float16)
    checking, tracing = CheckingEngine(), TracingEngine()
    for engine in (checking, tracing):
        np.testing.assert_array_equal(_copy_box(engine, values, 0, 0), values)
    assert not checking.findings
    arrays = tracing.build_recording().launches[0].trace.arrays
    assert {array.name for array in arrays if array.space == "global"} == {"map", "out"}


def test_the_barrier_of_a_block_is_no_part_of_the_next_block_s_box() -> None:
    """A block's shared memory need not be a multiple of a box's rows."""
    engine = CheckingEngine()
    engine.sources = {"boxed.cu": SOURCE}
    kernel = engine.build("boxed.cu").kernel("boxed")
    matrix, out = engine.upload(np.ones((8, 64), np.float16)), engine.allocate((256,), np.uint32)
    arguments = (TensorMap(matrix, 8), out, np.int32(0), np.int32(0))
    engine.launch(kernel, (2, 1, 1), (32, 1, 1), *arguments, shared_bytes=1024 + 8)
    assert not [finding for finding in engine.findings if "shared memory" in finding.message]


def test_an_unwritten_buffer_is_reported_by_its_parameter() -> None:
    engine = CheckingEngine()
    engine.sources = {"boxed.cu": SOURCE}
    kernel = engine.build("boxed.cu").kernel("boxed")
    matrix, out = engine.allocate((8, 64), np.float16), engine.allocate((256,), np.uint32)
    arguments = (TensorMap(matrix, 8), out, np.int32(0), np.int32(0))
    engine.launch(kernel, (1, 1, 1), (32, 1, 1), *arguments, shared_bytes=1024 + 8)
    assert any("map" in finding.message and finding.kind == "uninitialized" for finding in engine.findings)


@pytest.mark.parametrize(("shape", "rows"), [((8, 60), 8), ((64,), 8), ((0, 64), 8), ((8, 64), 0), ((8, 64), 257)])
def test_what_a_tensor_map_cannot_describe(shape: tuple[int, ...], rows: int) -> None:
    buffer = NullEngine().allocate(shape, np.float16)
    with pytest.raises(LaunchError, match="rows of a multiple of 16 bytes and a box of 1 to 256 rows"):
        TensorMap(buffer, rows)


def test_a_tensor_map_is_no_pointer() -> None:
    engine = SimulatorEngine()
    engine.sources = {"f.cu": 'extern "C" __global__ void f(int *out) { *out = 1; }'}
    matrix = engine.upload(np.zeros((8, 64), np.float16))
    with pytest.raises(LaunchError, match="the argument out is"):
        engine.launch(engine.build("f.cu").kernel("f"), (1, 1, 1), (1, 1, 1), TensorMap(matrix, 8))
