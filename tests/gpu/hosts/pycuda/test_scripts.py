"""PyCUDA scripts on the simulator: PyCUDA's own Python files, unchanged, give right results, and mistakes are told."""

from __future__ import annotations

from tests.gpu.hosts.time_limits import run_with_limits

HEAD = """\
import sys
import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
import pycuda.gpuarray as gpuarray
from pycuda.compiler import SourceModule

"""


def test_a_vector_addition_gets_its_arguments_and_keeps_its_output(script):
    """And takes little more than its simulation: from start to end less than 1.5 s of a processor that is not busy."""
    ended = script(
        HEAD
        + '''
import time

module = SourceModule("""
__global__ void add(float *c, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
""")
n = int(sys.argv[1])
a, b = np.random.default_rng(0).random((2, n), np.float32)
c = np.empty_like(a)
module.get_function("add")(cuda.Out(c), cuda.In(a), cuda.In(b), np.int32(n), block=(128, 1, 1), grid=(-(-n // 128), 1))
print(sys.argv[1:], bool((c == a + b).all()))
print(time.process_time())
sys.exit(3)
''',
        arguments=("1000", "--check"),
    )
    said, seconds = ended.stdout.splitlines()
    assert (ended.code, said) == (3, "['1000', '--check'] True")
    assert float(seconds) < 3
    assert ended.stderr.startswith("lockstep: 1 launch on the simulator")


def test_constants_globals_and_two_dimensions(script):
    ended = script(
        HEAD
        + '''
module = SourceModule("""
__constant__ float weights[4];
__device__ int launches;
__global__ void weigh(float *image, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    image[y * width + x] *= weights[(x + y) % 4];
    if (x == 0 && y == 0) launches += 1;
}
""")
image = np.arange(32 * 16, dtype=np.float32).reshape(16, 32)
weights = np.array([1, 2, 3, 4], np.float32)
address, size = module.get_global("weights")
assert size == 16
cuda.memcpy_htod(address, weights)
weigh = module.get_function("weigh")
assert weigh.shared_size_bytes == 0 and weigh.const_size_bytes == 16
weigh.prepare("Pi")
memory = cuda.to_device(image)
for _ in range(2):
    weigh.prepared_call((4, 2), (8, 8, 1), memory, 32)
y, x = np.mgrid[:16, :32]
assert (cuda.from_device_like(memory, image) == image * weights[(x + y) % 4] ** 2).all()
count = np.zeros(1, np.int32)
cuda.memcpy_dtoh(count, module.get_global("launches")[0])
assert count[0] == 2
'''
    )
    assert ended.code == 0, ended.stderr


def test_arrays_kernels_of_elements_reductions_and_scans(script):
    ended = script(
        HEAD
        + """
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import InclusiveScanKernel
import pycuda.cumath as cumath

x, y = np.random.default_rng(1).random((2, 3000), np.float32)
a, b = gpuarray.to_gpu(x), gpuarray.to_gpu(y)
assert np.allclose((2 * a + b / 3 - 1).get(), 2 * x + y / 3 - 1, atol=1e-6)
assert np.allclose(cumath.exp(a).get(), np.exp(x))
assert np.allclose(a[10:20].get(), x[10:20])
z = gpuarray.empty_like(a)
ElementwiseKernel("float *z, float *x, float *y, float s", "z[i] = x[i] > y[i] ? x[i] : s * y[i]", "pick")(z, a, b, 5)
assert np.allclose(z.get(), np.where(x > y, x, 5 * y))
dot = ReductionKernel(np.float32, neutral="0", reduce_expr="a+b", map_expr="x[i]*y[i]", arguments="float *x, float *y")
assert np.isclose(dot(a, b).get(), np.dot(x.astype(float), y))
assert np.isclose(gpuarray.sum(a).get(), x.sum(dtype=float))
c = (a + 1j * b).astype(np.complex64)
assert np.allclose((c * c).get(), (x + 1j * y) ** 2)
whole = gpuarray.to_gpu(np.arange(2000, dtype=np.int32))
InclusiveScanKernel(np.int32, "a+b")(whole)
assert (whole.get() == np.cumsum(np.arange(2000))).all()
"""
    )
    assert ended.code == 0, ended.stderr


def test_pointers_in_structs_and_in_arrays_are_followed(script):
    ended = script(
        HEAD
        + '''
module = SourceModule("""
struct Part { int length; float *values; };
__global__ void double_parts(Part *parts) {
    Part part = parts[blockIdx.x];
    for (int i = threadIdx.x; i < part.length; i += blockDim.x) part.values[i] *= 2;
}
__global__ void add_all(float **rows, float *sum, int count) {
    float total = 0;
    for (int row = 0; row < count; ++row) total += rows[row][threadIdx.x];
    sum[threadIdx.x] = total;
}
__global__ void by_value(Part part) { part.values[threadIdx.x] += 1; }
""")
first, second = cuda.to_device(np.arange(8, dtype=np.float32)), cuda.to_device(np.ones(5, np.float32))
layout = np.dtype([("length", np.int32), ("values", np.uint64)], align=True)
parts = np.array([(8, int(first)), (5, int(second))], layout)
module.get_function("double_parts")(cuda.In(parts), block=(4, 1, 1), grid=(2, 1))
rows = np.array([int(first), int(second), int(first) + 4], np.uint64)
total = np.zeros(5, np.float32)
module.get_function("add_all")(cuda.In(rows), cuda.Out(total), np.int32(3), block=(5, 1, 1))
assert (total == 2 * np.arange(5) + 2 + 2 * np.arange(1, 6)).all(), total
module.get_function("by_value")(parts[1], block=(5, 1, 1))
assert (cuda.from_device(second, 5, np.float32) == 3).all()
'''
    )
    assert ended.code == 0, ended.stderr


def test_streams_events_pools_and_memory_of_the_host(script):
    ended = script(
        HEAD
        + """
from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

module = SourceModule("__global__ void negate(float *x) { x[threadIdx.x] = -x[threadIdx.x]; }")
negate = module.get_function("negate")
stream, begun, ended = cuda.Stream(), cuda.Event(), cuda.Event()
pinned = cuda.pagelocked_empty((4, 8), np.float32, order="F")
pinned[:] = np.arange(32).reshape(4, 8)
memory = cuda.mem_alloc(pinned.nbytes)
begun.record(stream)
cuda.memcpy_htod_async(memory, pinned, stream)
negate(memory, block=(32, 1, 1), stream=stream)
cuda.memcpy_dtoh_async(pinned, memory, stream)
ended.record(stream).synchronize()
assert (pinned == -np.arange(32).reshape(4, 8)).all()
assert ended.time_since(begun) > 0
managed = cuda.managed_zeros(32, np.float32)
managed += 7
negate(managed, block=(32, 1, 1))
assert (managed == -7).all()
mapped = cuda.pagelocked_zeros(32, np.float32, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
mapped += 1
negate(np.intp(mapped.base.get_device_pointer()), block=(32, 1, 1))
assert (mapped == -1).all()
pool = DeviceMemoryPool()
block = pool.allocate(1000)
assert (pool.active_blocks, pool.active_bytes, pool.held_blocks) == (1, 1000, 0)
block.free()
assert (pool.active_blocks, pool.held_blocks) == (0, 1)
assert gpuarray.zeros(10, np.float32, allocator=pool.allocate).get().sum() == 0
assert PageLockedMemoryPool().allocate((3, 4), np.int16).shape == (3, 4)
free, total = cuda.mem_get_info()
assert 0 < free < total
"""
    )
    assert ended.code == 0, ended.stderr


RACE = (
    HEAD
    + '''
module = SourceModule("""
__global__ void total(const float *x, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) *sum += x[i];
}
""")
x, sum = gpuarray.to_gpu(np.ones(100, np.float32)), gpuarray.to_gpu(np.zeros(1, np.float32))
module.get_function("total")(x, sum, np.int32(100), block=(32, 1, 1), grid=(4, 1))
'''
)


def test_a_race_is_found_where_it_is_looked_for(script):
    assert script(RACE).code == 0
    ended = script(RACE, "--check", report=True)
    assert ended.code == 1
    (launch,) = ended.report["launches"]
    assert [each["kind"] for each in launch["findings"]] == ["race"]
    assert (launch["kernel"], launch["place"], launch["grid"]) == ("total", "script.py:16", [4, 1, 1])
    line = launch["findings"][0]["lines"][0]
    assert "*sum += x[i]" in ended.report["sources"][launch["source"]].splitlines()[line - 1]
    assert launch["counters"]["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] > 0
    assert "total, launched at script.py:16:" in ended.stderr
    assert "if (i < n) *sum += x[i];" in ended.stderr


def test_a_schedule_changes_what_a_race_gives_and_a_bad_one_is_refused(script):
    text = RACE + "print(int(sum.get()[0]))\n"
    given = {script(text, "--schedule", schedule).stdout for schedule in ("round-robin", "shuffle:1", "lanes:3")}
    assert len(given) > 1
    ended = script(text, "--schedule", "sometimes")
    assert ended.code == 2
    assert "'sometimes' is not a schedule" in ended.stderr


def test_memory_without_values_is_a_finding_until_somebody_wrote_it(script):
    ended = script(
        HEAD
        + """
module = SourceModule("__global__ void copy(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }")
copy = module.get_function("copy")
a, b, c = (cuda.mem_alloc(128) for _ in range(3))
copy(b, a, block=(32, 1, 1))
copy(c, b, block=(32, 1, 1))
""",
        "--check",
        report=True,
    )
    found = [[each["kind"] for each in launch["findings"]] for launch in ended.report["launches"]]
    assert found == [["uninitialized"], []]


def test_a_part_of_memory_without_values_is_a_finding_unless_the_script_may_have_written_it(script):
    ended = script(
        HEAD
        + """
module = SourceModule("__global__ void copy(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }")
copy = module.get_function("copy")
a, b, c, d = (cuda.mem_alloc(128) for _ in range(4))
cuda.memset_d8(a, 0, 127)
copy(b, a, block=(32, 1, 1))
np.asarray(memoryview(c.as_buffer(128)).cast("B"))[:] = 0
cuda.memset_d8(c, 0, 1)
copy(b, c, block=(32, 1, 1))
cuda.memset_d32(d, 0, 31)
cuda.memcpy_dtod(c, d, 128)
copy(b, c, block=(32, 1, 1))
cuda.memcpy_dtod(a, d, 128)
copy(b, a, block=(32, 1, 1))
""",
        "--check",
        report=True,
    )
    found = [[each["kind"] for each in launch["findings"]] for launch in ended.report["launches"]]
    assert found == [["uninitialized"], [], [], ["uninitialized"]]


def test_an_access_out_of_bounds_is_a_launch_error_that_says_where(script):
    ended = script(
        HEAD
        + '''
module = SourceModule("""
__global__ void fill(int *a) {
    a[threadIdx.x] = 1;
}
""")
fill = module.get_function("fill")
try:
    fill(cuda.mem_alloc(16), block=(8, 1, 1))
except cuda.LaunchError as error:
    print(error)
freed = cuda.mem_alloc(16)
address = np.intp(int(freed))
freed.free()
try:
    fill(address, block=(1, 1, 1))
except cuda.LaunchError as error:
    print(error)
fill(cuda.mem_alloc(16), block=(2000, 1, 1))
'''
    )
    assert ended.code == 1
    first, second = ended.stdout.splitlines()
    assert "an illegal memory access was encountered" in first
    assert "thread (4,0,0) in block (0,0,0): element 4 of a, which has 4" in first
    assert "kernel.cu:4" in first
    assert "an illegal memory access was encountered" in second
    last = ended.stderr.splitlines()
    assert any("LogicError: cuLaunchKernel failed: invalid argument - fill: a block of 2000" in line for line in last)
    assert 'script.py", line 26' in ended.stderr
    assert "runpy" not in ended.stderr
    assert "launches.py" not in ended.stderr


def test_a_text_that_does_not_compile_is_pycudas_own_error(script):
    ended = script(
        HEAD
        + """
from pycuda.driver import CompileError
try:
    SourceModule("__global__ void k(int *a) { a[tix] = 1; }")
except CompileError as error:
    print(error)
module = SourceModule("__global__ void k(int *a) { *a = 1; }", no_extern_c=True)
for name in ("other", "k"):
    try:
        module.get_function(name)
    except cuda.LogicError as error:
        print(error)
module.get_function("_Z1kPi")(cuda.mem_alloc(4), block=(1, 1, 1))
"""
    )
    assert ended.code == 0, ended.stderr
    assert "[command: nvcc --cubin -arch sm_90" in ended.stdout
    assert "kernel.cu(2): error: use of undeclared identifier 'tix'" in ended.stdout
    assert "other: available: _Z1kPi" in ended.stdout
    assert 'k: without extern "C" its name is _Z1kPi' in ended.stdout


def test_every_launch_is_recorded(script, tmp_path):
    from gpu.recording.trace import Trace

    ended = script(RACE, "--trace", str(tmp_path / "steps"))
    assert ended.code == 0, ended.stderr
    (file,) = (tmp_path / "steps").iterdir()
    assert file.name == "0001-total.trace"
    trace = Trace.load(file)
    assert trace.kernel == "total"
    assert {array.name for array in trace.arrays} >= {"x", "sum"}


def test_kernels_launch_kernels(script):
    ended = script(
        HEAD
        + '''
from pycuda.compiler import DynamicSourceModule
module = DynamicSourceModule("""
__global__ void child(int *x) { x[threadIdx.x] += 1; }
__global__ void parent(int *x) { if (threadIdx.x == 0) child<<<1, 4>>>(x); }
""")
x = np.arange(4, dtype=np.int32)
module.get_function("parent")(cuda.InOut(x), block=(4, 1, 1))
assert (x == np.arange(1, 5)).all()
'''
    )
    assert ended.code == 0, ended.stderr


def test_a_script_or_a_module_that_is_not_there(script, tmp_path):
    ended = script("print('found')", "--check")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "found\n", "")
    assert script("", "absent.py").stderr == "lockstep: There is no script 'absent.py'.\n"
    (tmp_path / "mine.py").write_text("import sys; print(__name__, sys.argv[1:])")
    ended = script("", "-m", "mine", "-x")
    assert ended.code == 0
    assert ended.stdout.startswith("__main__ ['-x'")


def test_a_script_without_end_is_ended_in_time_and_its_launches_are_told(script):
    text = """
    import numpy as np
    import pycuda.autoinit
    import pycuda.driver as cuda
    from pycuda.compiler import SourceModule
    module = SourceModule("__global__ void f(int *a) { a[0] += 1; while (a[1] == 0) a[0] += 1; }")
    a = np.array([0, 1], np.int32)
    module.get_function("f")(cuda.InOut(a), block=(1, 1, 1))
    print(a[0], flush=True)
    module.get_function("f")(cuda.InOut(a * 0), block=(1, 1, 1))
    """
    ended, limit = run_with_limits(lambda limit: script(text, "--max-seconds", limit), "1\n")
    assert (ended.code, ended.stdout) == (124, "1\n"), ended.stderr
    assert f"Stopped: it took longer than the {limit} s of --max-seconds.\nlockstep: 1 launch" in ended.stderr


def test_a_script_that_takes_all_memory_sees_pythons_own_error(script):
    ended = script(
        """
        import numpy as np
        kept = []
        try:
            while True:
                kept.append(np.ones(1 << 24))
        except MemoryError:
            print(0 < len(kept) < 10)
        """,
        "--max-memory",
        "1000",
    )
    assert (ended.code, ended.stdout) == (0, "True\n"), ended.stderr


def test_the_device_says_that_it_is_a_gpu_that_is_described(script):
    ended = script(
        HEAD
        + """
device, names = cuda.Context.get_device(), cuda.device_attribute
print(device.name().partition(" on ")[0], device.compute_capability())
for name in ("MULTIPROCESSOR_COUNT", "L2_CACHE_SIZE", "MAX_THREADS_PER_MULTIPROCESSOR", "COMPUTE_CAPABILITY_MINOR"):
    print(device.get_attribute(getattr(names, name)))
""",
        "--gpu",
        "t4",
    )
    said = ["Lockstep's simulator of an NVIDIA T4 (7, 5)", "40", "4194304", "1024", "5"]
    assert (ended.code, ended.stdout.splitlines()) == (0, said), ended.stderr
    refused = script(HEAD, "--gpu", "voodoo")
    assert refused.code == 2
    assert "There is no GPU description for 'voodoo'" in refused.stderr


def test_a_script_raises_the_limit_of_dynamic_shared_memory(script):
    ended = script(
        """
        import numpy as np
        import pycuda.autoinit
        import pycuda.driver as cuda
        from pycuda.compiler import SourceModule
        kernel = SourceModule('''__global__ void f(int *out, int n) {
            extern __shared__ int values[];
            values[n - 1] = 7;
            out[0] = values[n - 1];
        }''').get_function("f")
        limit = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        most, out = 227 * 1024, np.zeros(1, np.int32)
        for size in (most, most + 4, -1):
            try:
                kernel.set_attribute(limit, size)
                print(kernel.get_attribute(limit))
            except cuda.LogicError:
                print("refused")
        kernel(cuda.Out(out), np.int32(most // 4), block=(1, 1, 1), shared=most)
        print(out[0])
        """
    )
    assert (ended.code, ended.stdout) == (0, "232448\nrefused\nrefused\n7\n"), ended.stderr
