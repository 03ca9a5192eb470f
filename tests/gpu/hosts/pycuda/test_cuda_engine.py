"""The engine for GPUs, on what stands in for PyCUDA's driver: what of it needs no speed is tried without a GPU.

`pytest --driver simulator -m "gpu and not hardware" tests/gpu` runs all other tests of that engine this way.
"""

from __future__ import annotations


def test_the_cuda_engine_builds_runs_and_complains(script):
    ended = script(
        '''
import numpy as np
from gpu.engines.cuda.engine import CudaEngine
from gpu.base.errors import CompileError, KernelError, LaunchError

engine = CudaEngine()
assert engine.device.name.startswith("Lockstep"), engine.device
engine.sources["own.cu"] = """
__constant__ float weight[4];
extern "C" __global__ void weigh(float *out, const float *in, int n) {
    extern __shared__ float kept[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kept[threadIdx.x] = in[i] * weight[i % 4] * FACTOR;
    __syncthreads();
    if (i < n) out[i] = kept[threadIdx.x];
}
extern "C" __global__ void astray(float *out) { out[threadIdx.x] = 1; }
"""
module = engine.build("own.cu", {"FACTOR": 3})
module.set_constant("weight", np.array([1, 2, 3, 4], np.float32))
values = np.arange(10, dtype=np.float32)
given, out = engine.upload(values), engine.allocate((10,), np.float32)
assert np.isnan(engine.download(out)).all()
engine.launch(module.kernel("weigh"), (2, 1, 1), (8, 1, 1), out, given, np.int32(10), shared_bytes=32)
assert (engine.download(out) == 3 * values * (1 + np.arange(10) % 4)).all()
engine.fill(out, 7)
assert (engine.download(out, 3) == 7).all()
times = engine.take_times()
assert times.launches == 2 and times.kernel > 0 and times.upload > 0 and times.download > 0, times
assert engine.launch_ms() > 0
for call, error, words in (
    (lambda: module.kernel("none"), KernelError, "has no kernel 'none'"),
    (lambda: module.set_constant("none", values), KernelError, "no __constant__ variable"),
    (lambda: module.set_constant("weight", values), KernelError, "40 do not fit"),
    (lambda: engine.build("own.cu"), CompileError, "use of undeclared identifier 'FACTOR'"),
    (lambda: engine.allocate((1 << 40,), np.float32), LaunchError, "not enough memory on the GPU for an array"),
    (lambda: engine.launch(module.kernel("weigh"), (1, 1, 1), (2000, 1, 1), out, given, np.int32(1)),
     LaunchError, "a block of 2000 threads"),
    (lambda: engine.launch(module.kernel("astray"), (1, 1, 1), (32, 1, 1), out), LaunchError, "illegal memory access"),
):
    try:
        call()
    except error as found:
        assert words in found.message, found.message
    else:
        raise AssertionError(words)
engine.free(out)
engine.close()
print("done")
'''
    )
    assert (ended.code, ended.stdout) == (0, "done\n"), ended.stderr


def test_arrays_kept_for_repetitions_leave_if_memory_runs_out(script):
    ended = script(
        """
import numpy as np
import pycuda.driver as cuda
from gpu.engines.cuda.engine import CudaEngine

engine = CudaEngine()
values = np.arange(2**18, dtype=np.float32)
allocate, failures = engine._memory.allocate, []

def fail_first(size):
    if failures:
        raise failures.pop()
    return allocate(size)

engine._memory.allocate = fail_first
with engine.reuse_transfers() as begin_run:
    engine.upload(values)
    assert engine.take_times().upload > 0
    for kept, fails_at in ((True, False), (True, False), (False, True), (False, False)):
        begin_run()
        if fails_at:
            failures.append(cuda.MemoryError("out of memory"))
        copied = engine.upload(values)
        assert (engine.take_times().upload == 0) is kept, (kept, fails_at)
        assert (engine.download(copied, values.size - 1) == values[:-1]).all()
        engine.take_times()
engine.close()
print("done")
"""
    )
    assert (ended.code, ended.stdout) == (0, "done\n"), ended.stderr
