"""Modules of CuPy scripts: devices, streams, memory, textures, random numbers, forwarded functions and cupyx."""

from __future__ import annotations

import pytest


def test_devices_streams_events_and_properties(script):
    ended = script(
        """
device = cp.cuda.Device()
assert device.id == 0 and device.compute_capability == "90" and cp.cuda.runtime.getDeviceCount() == 1
assert device.attributes["MultiProcessorCount"] == 16 and device.attributes["WarpSize"] == 32
properties = cp.cuda.runtime.getDeviceProperties(0)
assert properties["maxThreadsPerBlock"] == 1024 and properties["maxThreadsDim"] == (1024, 1024, 64)
assert len(properties["uuid"]) == 16
start, end = cp.cuda.Event(), cp.cuda.Event()
with device, cp.cuda.Stream(non_blocking=True) as stream:
    assert cp.cuda.get_current_stream() == stream != cp.cuda.Stream.null
    start.record()
    cp.ones(5)
    end.record(stream)
stream.synchronize(), end.synchronize(), cp.cuda.Device(0).synchronize(), cp.cuda.runtime.deviceSynchronize()
assert cp.cuda.get_elapsed_time(start, end) > 0 and cp.cuda.get_current_stream() == cp.cuda.Stream.null
try:
    cp.cuda.get_elapsed_time(start, cp.cuda.Event())
except cp.cuda.runtime.CUDARuntimeError as error:
    print(error)
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout == "cudaErrorInvalidResourceHandle: invalid resource handle\n"


def test_other_packages_find_cupy_and_its_versions(script):
    """As sigpy, Kernel Tuner and thinc look for it."""
    ended = script(
        """
import importlib.util
import cupy.cublas, cupyx
for name in ("cupy", "cupyx", "cupy.cuda", "cupyx.scipy.ndimage"):
    assert importlib.util.find_spec(name).name == name, name
info = dict(line.split(":", 1) for line in str(cupyx.get_runtime_info()).splitlines())
info = {name.strip(): value.strip() for name, value in info.items()}
assert info["CuPy Version"] == cp.__version__ and info["Device 0 Compute Capability"] == "90"
assert info["Device 0 Name"] == cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
assert abs(float(cupy.cublas.nrm2(cp.array([3.0, 4.0]))) - 5) < 1e-12
assert cupyx.scipy.sparse.csr_matrix(cp.eye(3)).nnz == 3  # not imported by its name
"""
    )
    assert ended.code == 0, ended.stderr


def test_arrays_are_exchanged_through_dlpack(script):
    """Device arrays share their memory, as on a GPU; arrays of the host are copied."""
    ended = script(
        """
a = cp.arange(5, dtype=cp.float32)
b = cp.from_dlpack(a)
assert type(b) is cp.ndarray and b.data.ptr == a.data.ptr
b += 1
assert a.tolist() == [1, 2, 3, 4, 5]
host = np.arange(3)
c = cp.from_dlpack(host)
assert type(c) is cp.ndarray and c.tolist() == [0, 1, 2]
assert np.from_dlpack(a).tolist() == a.tolist()
assert cp.fromDlpack(a.toDlpack()).data.ptr == a.data.ptr and np.from_dlpack(a.toDlpack()).tolist() == a.tolist()
"""
    )
    assert ended.code == 0, ended.stderr


def test_memory_is_copied_between_host_and_device(script):
    ended = script(
        """
host = np.arange(10, dtype=np.int32)
memory = cp.cuda.alloc(40)
memory.copy_from_host(host.ctypes.data, 40)
a = cp.ndarray((10,), cp.int32, memory)
assert (a.get() == host).all() and a.data.ptr == memory.ptr
(memory + 8).memset(0, 4)
assert a.get().tolist() == [0, 1, 0, *range(3, 10)]
back = np.zeros(10, np.int32)
cp.cuda.runtime.memcpy(back.ctypes.data, a.data.ptr, 40, cp.cuda.runtime.memcpyDeviceToHost)
assert (back == a.get()).all()
address = cp.cuda.runtime.malloc(16)
cp.cuda.runtime.memset(address, 1, 16)
owned = cp.ndarray((4,), cp.int32, cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(address, 16, None), 0))
assert owned.tolist() == [0x01010101] * 4
cp.cuda.runtime.free(address)
pool = cp.get_default_memory_pool()
before = pool.used_bytes()
kept = [cp.asarray(host), cp.zeros(100), cp.empty(100) + 1]
assert pool.used_bytes() - before == 512 + 2 * 1024
del kept
assert pool.used_bytes() == before
windows = cp.lib.stride_tricks.as_strided(a, (9, 2), (4, 4))
assert windows.data.ptr == a.data.ptr and windows[:, 1].tolist() == a[1:].tolist()
before = pool.used_bytes()
big = cp.zeros(1000)
cp.get_default_memory_pool().free_all_blocks()
a.set(np.arange(10, dtype=np.int32)[::-1].copy())
assert a[0] == 9 and cp.asnumpy(a[:2]).tolist() == [9, 8]

class Holder:
    __cuda_array_interface__ = a[2:5].__cuda_array_interface__

shared = cp.asarray(Holder())
shared[...] = 0
assert a.get().tolist() == [9, 8, 0, 0, 0, 4, 3, 2, 1, 0] and shared.data.ptr == a.data.ptr + 8
for wrong in ("cp.cuda.runtime.free(address)", "cp.cuda.runtime.memset(a.data.ptr, 0, 41)"):
    try:
        exec(wrong)
    except RuntimeError as error:
        print(type(error).__name__, str(error).partition(" - ")[0])
        assert error.status == 1 and cp.cuda.get_device_id() == 0
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "CUDARuntimeError cudaErrorInvalidValue: invalid argument",
        "CUDADriverError CUDA_ERROR_INVALID_VALUE: invalid argument",
    ]


def test_pools_limits_allocators_and_hooks(script):
    ended = script(
        """
from cupy.cuda import memory_hooks, runtime
pool = cp.get_default_memory_pool()
pool.set_limit(size=1 << 20)
kept = cp.ones(1000)
for wrong in ("cp.empty(1 << 18)", "cp.zeros(1 << 18)", "kept + cp.zeros((200, 1))"):
    try:
        exec(wrong)
    except cp.cuda.memory.OutOfMemoryError as error:
        print(error)
pool.set_limit(fraction=0.5)
assert pool.get_limit() == cp.cuda.Device().mem_info[1] // 2
pool.set_limit(size=0)
sizes = []

def allocate(size):
    sizes.append(size)
    return cp.cuda.malloc_managed(size)

own = cp.cuda.MemoryPool(allocate)
with cp.cuda.using_allocator(own.malloc):
    x = cp.empty(10)
    assert sizes == [80] and own.used_bytes() == 512 and isinstance(x.data.mem, cp.cuda.Memory)
cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)
assert cp.ones(3).sum() == 3
cp.cuda.set_allocator(pool.malloc)

class Recorder(cp.cuda.MemoryHook):
    name = "Recorder"
    def malloc_preprocess(self, **values):
        print("pre", values)
    def malloc_postprocess(self, **values):
        assert values["mem_ptr"] == 0 or values.pop("pmem_id")
        print("post", values["size"])
    def free_postprocess(self, **values):
        print("freed", values["mem_size"])

with Recorder():
    y = cp.empty(3)
    del y
with memory_hooks.LineProfileHook() as hook:
    z = cp.empty(200)
hook.print_report()
address = runtime.hostAlloc(8, runtime.hostAllocMapped)
runtime.freeHost(address)
assert runtime.pointerGetAttributes(z.data.ptr).type == runtime.memoryTypeDevice == 2
runtime.deviceSetLimit(runtime.cudaLimitMallocHeapSize, 1 << 20)
assert runtime.deviceGetLimit(runtime.cudaLimitMallocHeapSize) == 1 << 20
"""
    )
    assert ended.code == 0, ended.stderr
    lines = ended.stdout.splitlines()
    used = "allocated so far: 8,192 bytes, limit set to: 1,048,576 bytes"
    assert lines[:2] == [f"Out of memory allocating 2,097,152 bytes ({used})."] * 2
    assert lines[2].startswith("Out of memory allocating 1,600,000 bytes")
    assert lines[3:6] == ["pre {'device_id': 0, 'size': 24, 'mem_size': 512}", "post 24", "freed 512"]
    assert lines[6] == "cupy.cuda.memory_hooks.line_profile.LineProfileHook"
    assert "script.py:" in lines[7]
    assert lines[7].endswith(":<module> (2.00KB, 2.00KB)")


def test_settings_of_errors(script):
    ended = script(
        """
import cupyx
assert cupyx.geterr()["linalg"] == "ignore"
with cupyx.errstate(linalg="raise"):
    assert cupyx.geterr()["linalg"] == "raise"
    try:
        cp.linalg.cholesky(-cp.eye(2))
    except np.linalg.LinAlgError as error:
        print(error)
assert cupyx.geterr()["linalg"] == "ignore"
for wrong, error in ((dict(divide="raise"), NotImplementedError), (dict(nonsense=None), TypeError)):
    try:
        cupyx.seterr(**wrong)
    except error:
        print(wrong)
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines()[1:] == ["{'divide': 'raise'}", "{'nonsense': None}"]


def test_forwarded_functions_return_device_arrays(script):
    ended = script(
        """
x = cp.arange(12.0).reshape(3, 4)
for value in (x.sum(), x.sum(axis=0), x[0, 0], x[1], x.T @ x, cp.linalg.norm(x), cp.fft.fft(x), abs(x), x.argmax(),
              cp.mgrid[:2, :3], cp.concatenate([x, x]), *cp.split(x, 3), cp.where(x > 3, x, 0), cp.random.rand(),
              cp.random.randint(0, 5, 3), cp.linalg.svd(x)[1], cp.allclose(x, x), x.astype(int), *x):
    assert type(value) is cp.ndarray, value
assert x.sum().shape == () and float(x.sum()) == 66 and f"{x.sum():.1f}" == "66.0"
y = x
y += 1
assert y is x and x[0, 0] == 1
assert np.sum(x) == 78 and type(np.sum(x)) is cp.ndarray
cp.copyto(x, 5)
x[x > 4] = cp.zeros(12)
assert x.sum() == 0 and cp.get_array_module(x) is cp and cp.get_array_module(x.get()) is np
cp.random.seed(3)
first = cp.random.rand(4, dtype=cp.float32)
cp.random.seed(3)
assert (first == cp.random.rand(4, dtype=cp.float32)).all() and first.dtype == cp.float32
import cupyx.scipy.special
assert type(cupyx.scipy.special.erf(x)) is cp.ndarray
import pickle
assert (pickle.loads(pickle.dumps(first)) == first).all()

@cp.fuse()
def square(a):
    return a * a

assert square(cp.array([3.0]))[0] == 9
assert x[:, cp.newaxis].shape == (3, 1, 4)
import cupyx
counts = cp.zeros(3)
cupyx.scatter_add(counts, cp.array([0, 2, 2]), 1)
assert counts.tolist() == [1, 0, 2]
from cupyx.profiler import benchmark
assert len(benchmark(square, (x,), n_repeat=3).cpu_times) == 3
cp.testing.assert_array_equal(counts, [1, 0, 2])
# Names that CuPy has and NumPy no longer
pairs = cp.array([[3, 1], [2, 5]])
assert cp.in1d(pairs, cp.array([1, 5])).tolist() == [False, True, False, True]
assert cp.msort(pairs).tolist() == [[2, 1], [3, 5]] and cp.trapz(cp.array([1.0, 2.0, 3.0])) == 4
assert cp.asfarray(pairs, "int32").dtype == cp.float64 and cp.asfarray([1], cp.float32).dtype == cp.float32
with cp.cuda.profile():
    assert cp.random.sample(3).shape == cp.random.ranf(3).shape == (3,)
try:
    cp.testing.assert_allclose(counts, np.zeros(3))
except AssertionError:
    print("differs")
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout == "differs\n"
    assert ended.stderr.count("lockstep: NumPy and SciPy computed") == 1
    assert "sum, matmul, linalg.norm, fft.fft, absolute" in ended.stderr


def test_textures_and_surfaces(script):
    ended = script(
        '''
from cupy.cuda import texture, runtime
kernel = cp.RawKernel(r"""
extern "C" __global__ void sample(cudaTextureObject_t t, cudaSurfaceObject_t s, float *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * 4 + x] = tex2D<float>(t, x + 1.0f, y + 0.5f);
    surf2Dwrite(2.0f * out[y * 4 + x], s, x * 4, y);
}
""", "sample")
values = cp.arange(12, dtype=cp.float32).reshape(3, 4)
channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
source = texture.CUDAarray(channel, 4, 3)
target = texture.CUDAarray(channel, 4, 3, flags=runtime.cudaArraySurfaceLoadStore)
source.copy_from(values)
settings = texture.TextureDescriptor((runtime.cudaAddressModeClamp,) * 2, runtime.cudaFilterModeLinear)
resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=source)
surface = texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=target))
out = cp.zeros((3, 4), cp.float32)
kernel((1,), (4, 3), (texture.TextureObject(resource, settings), surface, out))
expected = np.minimum(values.get() + 0.5, values.get()[:, -1:])
assert (out.get() == expected).all(), out
written = np.zeros((3, 4), np.float32)
target.copy_to(written)
assert (written == 2 * expected).all()
try:
    texture.SurfaceObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=source))
except runtime.CUDARuntimeError as error:
    print(error)
'''
    )
    assert ended.code == 0, ended.stderr
    assert "needs an array with cudaArraySurfaceLoadStore" in ended.stdout


def test_compilation_options_warnings_and_cuda_complex(script, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "own.cuh").write_text("#define OFFSET 4\n")
    ended = script(
        '''
import io
code = """#include <own.cuh>
#include <cuComplex.h>
typedef unsigned long long uint64_t;
extern "C" __global__ void add(cuComplex *z, uint64_t n) {
    int unused;
    if (threadIdx.x < n) z[threadIdx.x] = cuCaddf(z[threadIdx.x], make_cuComplex(OFFSET, 0));
}
"""
for translate in (False, True):
    kernel = cp.RawKernel(code, "add", options=("-I", "include"), translate_cucomplex=translate)
    log = io.StringIO()
    kernel.compile(log_stream=log)
    assert log.getvalue() == "kernel.cu(5): warning: unused variable 'unused'\\n", log.getvalue()
    z = cp.ones(3, cp.complex64)
    kernel((1,), (32,), (z, 3))
    assert z.tolist() == [5, 5, 5]
'''
    )
    assert ended.code == 0, ended.stderr


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import cupyx.scipy.nonsense", "Lockstep's CuPy does not have the module cupyx.scipy.nonsense."),
        ("from cupyx.jit import thrust", "cannot import name 'thrust' from 'cupyx.jit'"),
        ("cp.memmap", "Lockstep's CuPy does not have cupy.memmap."),
        ("cp.random.bytes_of", "Lockstep's CuPy does not have cupy.random.bytes_of."),
        ("cp.cuda.runtime.ipcGetMemHandle", "Lockstep's CuPy does not have cupy.cuda.runtime.ipcGetMemHandle."),
        ("cp.fuse(nonsense=1)", "unexpected keyword argument 'nonsense'"),
        ("cp.ones(3).set(np.ones(4))", "Shape mismatch"),
        ("cp.ones(3).set(cp.ones(3))", "Only numpy.ndarray can be set"),
        ("cp.ones(3).get(out=np.ones(4))", "Shape or dtype mismatch"),
        ("cp.concatenate(cp.ones(3), out=np.ones(3))", "Unsupported type <class 'numpy.ndarray'>"),
        ("cp.ones(3, dtype=object)", "Unsupported dtype object"),
    ],
)
def test_what_is_missing_is_one_sentence(script, statement, message):
    ended = script(statement)
    assert ended.code == 1
    assert message in ended.stderr.partition("Traceback")[2].strip().splitlines()[-1]
