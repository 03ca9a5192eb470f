"""Raw kernels of CuPy scripts: arguments, modules, attributes, findings and errors."""

from __future__ import annotations

import pytest

SCALE = '''
scale = cp.RawKernel(r"""
extern "C" __global__ void scale(const float *a, float *b, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = factor * a[i];
}
""", "scale")
'''


def test_a_kernel_gets_arrays_and_numbers(script):
    ended = script(
        SCALE
        + """
import sys
n = int(sys.argv[1])
a = cp.random.default_rng(0).random(n, dtype=cp.float32)
b = cp.empty_like(a)
scale((-(-n // 128),), (128,), (a, b, np.float32(3), n))
assert (b.get() == np.float32(3) * a.get()).all()
assert isinstance(b.get(), np.ndarray) and not isinstance(b.get(), cp.ndarray)
print(float(abs(b - 3 * a).max()))
sys.exit(3)
""",
        arguments=("1001", "--check"),
    )
    assert (ended.code, ended.stdout) == (3, "0.0\n"), ended.stderr
    names = "random.random, multiply, subtract, absolute, max"
    assert f"lockstep: NumPy and SciPy computed, without kernels and checks: {names}." in ended.stderr
    assert "lockstep: 1 launch on the simulator" in ended.stderr


def test_checked_launches_report_findings_with_their_lines(script):
    ended = script(
        """
shift = cp.RawKernel('extern "C" __global__ void shift(float *a) { a[threadIdx.x] = a[threadIdx.x + 1]; }', "shift")
shift((1,), (64,), (cp.ones(65, cp.float32),))
""",
        "--check",
        report=True,
    )
    assert ended.code == 1
    (launch,) = ended.report["launches"]
    assert (launch["kernel"], launch["place"], launch["grid"], launch["block"]) == (
        "shift",
        "script.py:6",
        [1, 1, 1],
        [64, 1, 1],
    )
    assert {finding["kind"] for finding in launch["findings"]} == {"race"}
    assert "shift, launched at script.py:6:" in ended.stderr


def test_an_uninitialized_array_is_reported(script):
    ended = script(
        SCALE + "scale((1,), (32,), (cp.empty(32, cp.float32), cp.zeros(32, cp.float32), np.float32(1), 32))\n",
        "--check",
    )
    assert ended.code == 1
    assert "uninitialized" in ended.stderr


def test_views_have_the_addresses_of_their_elements(script):
    ended = script(
        SCALE
        + """
a = cp.arange(24, dtype=cp.float32).reshape(4, 6)
rows = a[1:3]
assert rows.data.ptr - a.data.ptr == 24 and rows.data.mem.ptr == a.data.ptr
assert cp.ravel(rows).data.ptr == rows.data.ptr
assert rows.T.copy().data.ptr not in (a.data.ptr, rows.data.ptr)
scale((1,), (12,), (rows, rows, np.float32(10), 12))
expected = np.arange(24, dtype=np.float32).reshape(4, 6)
expected[1:3] *= 10
assert (a.get() == expected).all()
interface = a.T.__cuda_array_interface__
assert interface["shape"] == (6, 4) and interface["strides"] == (4, 24) and interface["data"] == (a.data.ptr, False)
assert a.__cuda_array_interface__["strides"] is None
assert cp.empty((3, 0)).data.ptr == 0
"""
    )
    assert ended.code == 0, ended.stderr


def test_scalars_of_every_type_complex_numbers_and_structs(script):
    ended = script(
        '''
code = r"""
#include <cupy/complex.cuh>
#include <cuda_fp16.h>
struct Point { int index; double value; };
extern "C" __global__ void store(double *out, bool b, signed char c, unsigned short s, long long q, __half h, float f,
                                 double d, complex<float> z, Point p) {
    double values[] = {(double)b, (double)c, (double)s, (double)q, (double)__half2float(h), f, d, z.real(), z.imag(),
                       (double)p.index, p.value};
    for (int i = 0; i < 11; ++i) out[i] = values[i];
}
"""
out = cp.zeros(11)
point = np.zeros(1, np.dtype([("index", np.int32), ("value", np.float64)], align=True))
point["index"], point["value"] = 7, 0.25
for last in (point, point[0]):
    arguments = (out, True, np.int8(-3), np.uint16(65535), -(1 << 40), np.float16(1.5), np.float32(0.1), 0.1,
                 np.complex64(1 + 2j), last)
    cp.RawKernel(code, "store")((1,), (1,), arguments)
    assert out.tolist() == [1, -3, 65535, -(1 << 40), 1.5, np.float32(0.1), 0.1, 1, 2, 7, 0.25], out
'''
    )
    assert ended.code == 0, ended.stderr


def test_modules_with_templates_globals_and_macros(script):
    ended = script(
        '''
code = r"""
__constant__ float weights[4];
__device__ int calls;
template <typename T, int N> __global__ void weigh(T *a) { a[threadIdx.x] *= T(N * SCALE * weights[threadIdx.x % 4]); }
extern "C" __global__ void count() { atomicAdd(&calls, 1); }
"""
names = ["weigh<float, 2>", "weigh<double, 3>"]
module = cp.RawModule(code=code, options=("-DSCALE=10", "--std=c++14"), name_expressions=names)
weights = cp.ndarray((4,), cp.float32, module.get_global("weights"))
weights[...] = cp.array([1, 2, 3, 4], cp.float32)
for name, dtype, factor in zip(names, (cp.float32, cp.float64), (20, 30)):
    a = cp.ones(8, dtype)
    module.get_function(name)((1,), (8,), (a,))
    assert (a.get() == factor * np.array([1, 2, 3, 4] * 2)).all(), a
module.get_function("count")((3,), (5,), ())
assert cp.ndarray((1,), cp.int32, module.get_global("calls"))[0] == 15
for name in ("weigh<int, 1>", "weigh", "nothing"):
    try:
        module.get_function(name)
    except cp.cuda.driver.CUDADriverError as error:
        assert str(error).startswith("CUDA_ERROR_NOT_FOUND: named symbol not found"), error
    else:
        raise AssertionError(name)
'''
    )
    assert ended.code == 0, ended.stderr


def test_dynamic_shared_memory_is_limited_by_the_attribute(script):
    ended = script(
        '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void last(int *out, int n) {
    __shared__ int first[16];
    extern __shared__ int values[];
    first[0] = 2;
    values[n - 1] = 5;
    *out = values[n - 1] * first[0];
}
""", "last")
out = cp.zeros(1, cp.int32)
assert kernel.max_dynamic_shared_size_bytes == 49152 - 64 and kernel.attributes["max_threads_per_block"] == 1024
assert kernel.shared_size_bytes == 64
kernel.max_dynamic_shared_size_bytes = 40_000
kernel((1,), (1,), (out, 10_000), shared_mem=40_000)
assert out[0] == 10
for failing in ("kernel((1,), (1,), (out, 1), shared_mem=40_001)", "kernel.max_dynamic_shared_size_bytes = 232_385"):
    try:
        exec(failing)
    except cp.cuda.driver.CUDADriverError as error:
        print(error)
'''
    )
    assert ended.code == 0, ended.stderr
    prefix = "CUDA_ERROR_INVALID_VALUE: invalid argument - "
    assert ended.stdout.splitlines() == [
        f"{prefix}40,001 bytes of dynamic shared memory; max_dynamic_shared_size_bytes is 40,000",
        f"{prefix}a block has at most 232,384 bytes of dynamic shared memory",
    ]


@pytest.mark.parametrize("options", [(), ("--check",), ("--trace", "recordings")])
def test_a_kernel_may_have_more_than_48_kb_of_dynamic_shared_memory(script, options):
    """As on a GPU only after the attribute is set. Each executor runs the launch, and the recording too."""
    ended = script(
        '''
kernel = cp.RawKernel(r"""
extern "C" __global__ void reverse(int *out, int n) {
    extern __shared__ int values[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = values[n - 1 - i];
}
""", "reverse")
n = 227 * 256
out = cp.zeros(n, cp.int32)
assert cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] == 4 * n
try:
    kernel((1,), (64,), (out, n), shared_mem=4 * n)
except cp.cuda.driver.CUDADriverError as error:
    print(error)
kernel.max_dynamic_shared_size_bytes = 4 * n
kernel((1,), (64,), (out, n), shared_mem=4 * n)
assert (out.get() == np.arange(n)[::-1]).all()
''',
        *options,
    )
    assert ended.code == 0, ended.stderr
    assert "232,448 bytes of dynamic shared memory; max_dynamic_shared_size_bytes is 49,152" in ended.stdout


ERRORS = [
    ("scale((1,), (32,), (a, a))", "CUDADriverError", "needs 4 arguments"),
    ("scale((1,), (32,), (a, 'x', 1, 1))", "TypeError", "Unsupported type <class 'str'>"),
    ("scale((1,), (32,), (a.get(), a, 1, 1))", "TypeError", "with one element, but it has 32"),
    ("scale((1,), (2048,), (a, a, np.float32(1), 32))", "CUDADriverError", "CUDA_ERROR_INVALID_VALUE"),
    ("scale((1,), (64,), (a, a, np.float32(1), 64))", "CUDADriverError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("a + a.get()", "TypeError", "Unsupported type <class 'numpy.ndarray'>"),
    ("cp.RawKernel('broken', 'k')((1,), (1,), ())", "CompileException", "kernel.cu:1:1: error"),
    ("cp.RawModule(path='missing.cubin').get_function('k')", "CUDADriverError", "CUDA_ERROR_FILE_NOT_FOUND"),
    ("cp.RawModule(path=__file__).get_function('k')", "CUDADriverError", "runs CUDA C++ sources"),
    ("cp.RawModule()", "TypeError", "Exactly one"),
    ("cp.cuda.Device(1)", "CUDARuntimeError", "invalid device ordinal"),
    ("cp.nonsense(a)", "AttributeError", "Lockstep's CuPy does not have cupy.nonsense."),
    ("cp.array(['text'])", "ValueError", "Unsupported dtype <U4"),
    ("cp.empty(1 << 40)", "OutOfMemoryError", "out of memory"),
]
"""Statements, and the type and a part of the message of what each raises."""


@pytest.fixture(scope="module")
def raised(catch_errors):
    return catch_errors(
        SCALE + "a = cp.ones(32, cp.float32)\n",
        [call for call, _, _ in ERRORS],
    )


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors_are_cupys(raised, call, error, message):
    assert raised[call].startswith(f"{error}: ")
    assert message in raised[call]


@pytest.mark.parametrize(("factor", "warns"), [("2.0", True), ("2", True), ("np.float32(2)", False)])
def test_a_number_of_another_type_warns(script, factor, warns):
    ended = script(SCALE + f"a = cp.ones(32, cp.float32)\nscale((1,), (32,), (a, a, {factor}, 32))\n")
    assert ended.code == 0
    assert ("script.py:12: UserWarning: scale: argument 'factor' is float32" in ended.stderr) == warns, ended.stderr
