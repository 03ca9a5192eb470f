"""What the front end accepts, and how it says what it does not."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import CompileError, KernelError
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel


def zeros(count: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.zeros(count, np.int32)


def build_error(source: str, kernel: str = "f") -> CompileError:
    """Return the error that keeps a kernel from being built; nothing has run by then."""
    with pytest.raises(CompileError) as caught:
        build(source).kernel(kernel)
    return caught.value


def test_an_unknown_name_is_shown_in_its_line() -> None:
    source = "__global__ void f(int *a) {\n    int tid = threadIdx.x;\n    a[tix] = tid;\n}\n"
    error = build_error(source)
    assert error.message.startswith("test.cu:3:7: use of undeclared identifier 'tix'")
    assert error.position is not None
    assert (error.position.file, error.position.line, error.position.column) == ("test.cu", 3, 7)
    lines = error.detail.splitlines()
    assert lines[0].startswith("test.cu:3:7: error: use of undeclared identifier 'tix'")
    assert lines[1].strip() == "a[tix] = tid;"
    assert lines[2].index("^") == lines[1].index("tix")


def test_a_missing_semicolon_is_where_it_should_stand() -> None:
    error = build_error("__global__ void f(int *a) {\n    a[0] = 1\n    a[1] = 2;\n}\n")
    assert error.message.startswith("test.cu:2:13: expected ';'")
    lines = error.detail.splitlines()
    assert lines[1].rstrip().endswith("a[0] = 1")
    assert lines[2].index("^") == len(lines[1].rstrip())


def test_every_error_is_in_the_detail_and_the_first_in_the_message() -> None:
    error = build_error("__global__ void f(int *a) {\n  a[0] = one;\n  a[1] = two;\n  undefined(a);\n}\n")
    assert "'one'" in error.message
    assert "'two'" not in error.message
    assert [name in error.detail for name in ("'one'", "'two'", "'undefined'")] == [True] * 3
    assert error.detail.count("^") == 3


@pytest.mark.parametrize("before", ["\t\t", "/* größer als ½ */ ", "\t/* é */\t"])
def test_the_caret_stands_under_its_word_behind_tabs_and_wide_letters(before: str) -> None:
    error = build_error(f"__global__ void f(int *a) {{\n{before}a[0] = wrong;\n}}\n")
    line, caret = error.detail.splitlines()[1:3]
    start = line.index("wrong")
    assert caret.index("^") == start
    assert [letter == "\t" for letter in caret[:start]] == [letter == "\t" for letter in line[:start]]


def test_an_error_on_a_line_that_is_not_there_is_still_told() -> None:
    for source in ("", "__global__ void f(int *a) {", "__global__ void f(int *a) { a[0] = 1;\n"):
        if source:
            assert "expected '}'" in build_error(source).message
    with pytest.raises(KernelError, match="it has none"):
        build("").kernel("f")


# A construct that is refused, its text within a kernel, and where.
REFUSED = {
    "goto": ("goto inside; { inside: out[0]++; }", 5),
    "assembly": ('asm("wgmma.fence;");', 5),
    "exceptions": ("throw 1;", 5),
    "a structured binding": ("int s[2] = {1, 2}; auto [a, b] = s; out[0] = a + b;", 24),
    "a struct that is printed": ('printf("%f", float2{1, 2});', 18),
    "a virtual function": ("struct B { __device__ virtual int f() { return 1; } } b; B *p = &b; out[0] = p->f();", 80),
    "a pure virtual function": (
        "struct B { __device__ virtual int f() = 0; } *b = nullptr; out[0] = b->f();",
        70,
    ),
    "a texture reference": ("out[0] = tex2D(picture, 3.0f, 4.0f);", 14),
    "a texture object": ("out[0] = tex3DLod<float>(cudaTextureObject_t(), 0.5f, 1.5f, 2.5f, 0);", 14),
    "a host function's body elsewhere": ("out[0] = elsewhere(1);", 14),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_before_anything_runs(name: str) -> None:
    statement, column = REFUSED[name]
    error = build_error(
        "\n__device__ int elsewhere(int); texture<char, 2, cudaReadModeNormalizedFloat> picture;\n"
        f"__global__ void f(int *out) {{\n    {statement}\n}}\n"
    )
    assert error.message.startswith("test.cu:4:")
    assert error.position is not None
    assert error.position.line == 4
    assert error.position.column >= column
    if name != "exceptions":  # which clang refuses
        assert "the simulator does not support" in error.message
        assert error.advice or "not defined here" in error.message
    if name == "a structured binding":
        assert name in error.message
    if "virtual" in name:
        assert "a call of the virtual function f" in error.message


def test_a_static_variable_is_initialized_with_constants() -> None:
    error = build_error("__global__ void f(int *out) {\n    static int first = threadIdx.x; out[0] = first;\n}")
    assert error.message == "test.cu:2:24: a variable in device memory can only be initialized with constants."


def test_a_pointer_in_device_memory_may_be_initialized_with_null() -> None:
    source = """__device__ int *first = nullptr, *second = 0, *third = (int *)0;
    __global__ void f(int *out) { out[0] = !first + !second + !third; }"""
    (out,) = run_kernel(source, "f", np.zeros(1, np.int32), block=1)
    assert out.tolist() == [3]


def test_another_kernel_of_the_file_may_be_one_that_is_refused() -> None:
    source = (
        "__global__ void bad(int *a) { goto inside; { inside: a[0]++; } }\n__global__ void good(int *a) { a[0] = 3; }"
    )
    assert run_kernel(source, "good", zeros(1), block=1)[0][0] == 3


def test_what_is_refused_is_refused_whenever_it_is_asked_for() -> None:
    module = build("""
    __device__ int even(int n);
    __device__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
    __device__ int even(int n) { if (n == 0) return 1; n = odd(n - 1); asm("wgmma.fence;"); return n; }
    __global__ void first(int *a) { a[0] = even(4); }
    __global__ void second(int *a) { a[0] = odd(4); }
    """)
    for name in ("first", "second", "first", "second"):
        with pytest.raises(CompileError, match="wgmma"):
            module.kernel(name)


@pytest.mark.parametrize("allocate", ["int *p = (int *)malloc(bytes);", "int *p; cudaMalloc(&p, bytes);"])
def test_memory_that_a_kernel_asks_for_is_each_thread_s_own_until_there_is_none(allocate: str) -> None:
    source = f"""
    __global__ void f(int *out, int bytes) {{
        {allocate}
        if (p == NULL) {{ out[threadIdx.x] = -1; return; }}
        p[0] = threadIdx.x;
        p[bytes / 4 - 1] = 1000;
        __syncthreads();
        out[threadIdx.x] = p[0] + p[bytes / 4 - 1];
        free(p);
    }}"""
    for size in (20, 1 << 12):
        [out] = run_kernel(source, "f", zeros(64), np.int32(size), block=64)
        assert out.tolist() == [1000 + t for t in range(64)]
    [out] = run_kernel(source, "f", zeros(64), np.int32(1 << 20), block=64)
    assert sorted(out.tolist()).count(-1) == 64 - 8


def test_a_function_that_is_no_kernel_is_told_to_be_none() -> None:
    source = "int half(int n) { return n / 2; }\n__device__ int twice(int n) { return 2 * n; }"
    for name, line in (("half", 1), ("twice", 2)):
        with pytest.raises(KernelError) as caught:
            SimulatedModule(source, Path("test.cu"), {}, tolerant=True).kernel(name)
        assert caught.value.message == (
            f"test.cu has no kernel {name!r}; it has none. {name} in line {line} is not __global__."
        )


def test_a_kernel_that_is_not_there_is_told_whatever_is_wrong_with_host_code() -> None:
    source = "__global__ void there() {}\nint main() { std::vector<int> v(10); return 0; }"
    with pytest.raises(KernelError, match="has no kernel 'nothere'; it has there"):
        SimulatedModule(source, Path("test.cu"), {}, tolerant=True).kernel("nothere")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothere<int>", r"test\.cu has no kernel 'nothere<int>'; it has there, filled\.$"),
        ("filled<int, 3>", r"filled<int, 3> does not match the parameters of the template in line 3\.$"),
        ("nothere", r"it has there, filled\. The compiler also reports: test\.cu:4:37: use of undeclared identifier"),
    ],
)
def test_an_instance_that_the_file_does_not_have_is_reported_with_its_kernels(name: str, message: str) -> None:
    source = (
        "#include <absent.h>\n__global__ void there(int *a) {}\ntemplate <typename T> __global__ void filled(T *a) {}\n"
    )
    error = "__device__ int wrong() { return 1 + absent; }\n" if name == "nothere" else ""
    with pytest.raises(KernelError, match=message):
        SimulatedModule(f"{source}{error}int main() {{ absent::Value value; }}", Path("test.cu"), {}).kernel(name)


def test_kernels_of_one_name() -> None:
    source = """namespace a { __global__ void k(int *out) { out[0] = 1; } }
    namespace b { __global__ void k(int *out) { out[0] = 2; } }
    __global__ void other(int *out) { out[0] = 3; } __global__ void other(float *out) { out[0] = 4; }"""
    module = build(source)
    for name, value in (("k", 1), ("b::k", 2)):
        [out] = launch(module, name, np.zeros(1, np.int32), block=1)
        assert out.tolist() == [value]
    with pytest.raises(KernelError, match="has several kernels other, at lines 3 and 3"):
        module.kernel("other")


def test_an_unknown_kernel_is_told_with_those_there_are() -> None:
    module = build(
        "__global__ void sum(int *a) {}\n__device__ int help() { return 1; }\n__global__ void scan(int *a) {}"
    )
    assert module.kernels == ("sum", "scan")
    with pytest.raises(KernelError, match=r"test\.cu has no kernel 'smu'; it has sum, scan\."):
        module.kernel("smu")
    with pytest.raises(KernelError, match="no kernel 'help'"):
        module.kernel("help")


def test_a_declared_kernel_is_the_defined_one() -> None:
    source = """
    __global__ void f(int *a);
    __device__ int g();
    __global__ void f(int *a) { a[0] = g(); }
    __device__ int g() { return 4; }
    """
    assert build(source).kernels == ("f",)
    assert run_kernel(source, "f", zeros(1), block=1)[0][0] == 4


def test_kernels_within_extern_c_and_namespaces() -> None:
    source = """
    extern "C" { __global__ void plain(int *a) { a[0] = 1; } }
    extern "C" __global__ void single(int *a) { a[0] = 2; }
    namespace inner { __device__ int two() { return 2; } __global__ void deep(int *a) { a[0] = two() + 1; } }
    """
    module = build(source)
    assert set(module.kernels) >= {"plain", "single"}
    for value, name in enumerate(module.kernels, 1):
        assert launch(module, name, zeros(1), block=1)[0][0] == value


def test_macros_of_the_command_line() -> None:
    source = """
    #ifdef DOUBLE
    #define FACTOR 2
    #else
    #define FACTOR 1
    #endif
    __global__ void f(TYPE *a) { a[threadIdx.x] = N * FACTOR; }
    """
    assert run_kernel(source, "f", zeros(1), block=1, defines={"N": 21, "TYPE": "int", "DOUBLE": 1})[0][0] == 42
    [out] = run_kernel(source, "f", np.zeros(1, np.float32), block=1, defines={"N": "0.5f", "TYPE": "float"})
    assert out[0] == 0.5
    with pytest.raises(CompileError, match="'TYPE'"):
        build(source, {"N": 1})


def test_macros_of_the_file_and_ones_that_clang_knows() -> None:
    source = """
    #define INDEX(x, y) ((y) * WIDTH + (x))
    #define WIDTH 4
    #define EACH(i, n) for (int i = 0; i < n; i++)
    __global__ void f(int *a) {
        EACH(y, 2) EACH(x, WIDTH) a[INDEX(x, y)] = 10 * y + x;
        a[8] = __LINE__; a[9] = __CUDA_ARCH__ >= 700;
    #if !defined(__CUDA_ARCH__)
        a[10] = 1;
    #endif
    }"""
    [a] = run_kernel(source, "f", zeros(11), block=1)
    assert a.tolist() == [0, 1, 2, 3, 10, 11, 12, 13, 7, 1, 0]


def test_a_header_beside_the_file_is_included(tmp_path: Path) -> None:
    (tmp_path / "common.cuh").write_text("#pragma once\n__device__ int twice(int x) { return 2 * x; }\n")
    text = '#include "common.cuh"\n#include "common.cuh"\n__global__ void f(int *a) { a[0] = twice(21); }'
    module = SimulatedModule(text, tmp_path / "kernel.cu", {})
    assert launch(module, "f", zeros(1), block=1)[0][0] == 42


def test_errors_in_a_header_name_the_header(tmp_path: Path) -> None:
    (tmp_path / "broken.cuh").write_text("\n__device__ int part(int x) { return y / 2; }\n")
    text = '#include "broken.cuh"\n__global__ void f(int *a) { a[0] = part(2); }'
    with pytest.raises(CompileError) as caught:
        SimulatedModule(text, tmp_path / "kernel.cu", {})
    assert caught.value.message.startswith("broken.cuh:2:37: ")
    assert "'y'" in caught.value.message


def test_a_header_that_is_missing_is_left_out_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    """Most often it serves the host's code, which is not run here."""
    text = '#include <iostream>\n#include "absent.cuh"\n__global__ void f(int *a) {\n  a[0] = 7;\n}\n'
    module = SimulatedModule(text, tmp_path / "kernel.cu", {})
    assert launch(module, "f", zeros(1), block=1)[0][0] == 7
    with pytest.raises(CompileError, match=r"^kernel\.cu:4:10: use of undeclared identifier 'absent'"):
        SimulatedModule(text.replace("7", "absent(7)"), tmp_path / "kernel.cu", {})


def test_a_kernel_answers_for_itself_behind_missing_headers_and_many_errors_of_the_host(tmp_path: Path) -> None:
    """Clang by itself ends at the first missing header, and after 20 errors."""
    (tmp_path / "helper.h").write_text('#include "absent.h"\n#include <also/absent.h>\nint helper();\n')
    host = "".join(f"  unknown{number}(handle{number});\n" for number in range(25))
    text = (
        f'#include "helper.h"\nint main() {{\n{host}  return 0;\n}}\n'
        "__global__ void bad(int *a) { a[0] = wrong; }\n__global__ void good(int *a) { a[0] = 7; }\n"
    )
    for tolerant in (False, True):
        module = SimulatedModule(text, tmp_path / "kernel.cu", {}, tolerant=tolerant)
        assert launch(module, "good", zeros(1), block=1)[0][0] == 7
        with pytest.raises(CompileError, match=r"^kernel\.cu:30:38: use of undeclared identifier 'wrong'"):
            module.kernel("bad")


def test_names_of_headers_that_are_not_included_are_free() -> None:
    source = """
    __device__ float half(float x) { return x / 2; }
    struct float16 { int dim; };
    __global__ void f(int *a) { int half2 = 3, reduce = 4; a[0] = half(10) + half2 + reduce; }
    """
    assert run_kernel(source, "f", zeros(1), block=1)[0][0] == 12


def test_the_text_given_counts_not_the_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_text("__global__ void f(int *a) { a[0] = 1; }")
    edited = "// edited\n__global__ void f(int *a) { a[0] = 2; }\n__global__ void g(int *a) { wrong }"
    with pytest.raises(CompileError, match=r"^kernel\.cu:3:29"):
        SimulatedModule(edited, path, {})
    module = SimulatedModule(edited.replace("wrong", "a[0] = 3;"), path, {})
    assert launch(module, "f", zeros(1), block=1)[0][0] == 2
    assert launch(module, "g", zeros(1), block=1)[0][0] == 3
    again = SimulatedModule(path.read_text(), path, {})
    assert launch(again, "f", zeros(1), block=1)[0][0] == 1


def test_warnings_are_no_errors() -> None:
    source = """__global__ void f(int *a) {
        int unused;
        long big = 3000000000;
        a[0] = big == 3000000000 ? 1 << 31 : 5 / 2.0;
    }"""
    assert run_kernel(source, "f", zeros(1), block=1)[0][0] == -(2**31)


def test_typedefs_enums_and_static_assertions() -> None:
    source = """
    typedef unsigned char byte;
    using real = float;
    enum Color { RED, GREEN = 5, BLUE };
    enum class Mode : unsigned char { OFF = 1, ON = 250 };
    static_assert(sizeof(byte) == 1, "a byte");
    __global__ void f(int *a, real *r, byte *b) {
        typedef int local;
        static_assert(BLUE == 6, "counts on");
        local i = GREEN;
        Color c = BLUE;
        Mode m = Mode::ON;
        a[0] = i + c;
        a[1] = (int)m + (m == Mode::ON) + (int)Mode::OFF;
        a[2] = sizeof(real) + alignof(double) + sizeof a[0];
        r[0] = (byte)300 / (real)8;
        b[0] = 'A' + 1;
    }"""
    a, r, b = run_kernel(source, "f", zeros(3), np.zeros(1, np.float32), np.zeros(1, np.uint8), block=1)
    assert a.tolist() == [11, 252, 16]
    assert r[0] == 5.5
    assert b[0] == ord("B")


def test_qualifiers_and_attributes_change_nothing() -> None:
    source = """
    static __device__ __forceinline__ int one(const int *__restrict__ p) { return *p; }
    __device__ __noinline__ int two(volatile int *p) { return p[0]; }
    template <int N> __device__ int unused() { return N; }
    __global__ void __launch_bounds__(128, 2) f(const int *__restrict__ in, int *__restrict__ out, const int n) {
        #pragma unroll 4
        for (int i = 0; i < n; ++i) { out[i] = one(in + i) + two(out + i); }
        #pragma unroll
        for (register_t i = 0; i < n; ++i) out[i]++;
    }""".replace("register_t", "unsigned")
    _, out = run_kernel(source, "f", np.arange(4, dtype=np.int32), np.full(4, 10, np.int32), np.int32(4), block=1)
    assert out.tolist() == [11, 12, 13, 14]


def test_alignas_after_other_specifiers() -> None:
    """clang allows alignas only before them, nvcc also after them."""
    source = """
    struct alignas(16) Four { int a[4]; };
    __device__ alignas(double) int first;
    __global__ void f(int *out) {
        __shared__ alignas(128) int s[4]; static __shared__ alignas(Four) uint8_t t[3];
        extern __shared__ alignas(16) int e[];
        alignas(32) int mine[2] = {1, 2};
        s[0] = alignof(Four); t[0] = 2; first = mine[1];
        out[0] = s[0] + t[0] + first; out[1] = (size_t)s % 128 + (size_t)t % 16; out[2] = not_declared;
    }"""
    with pytest.raises(CompileError, match=r":9:91: .*not_declared"):
        build(source)
    out = run_kernel(source.replace("not_declared", "3"), "f", np.zeros(3, np.int32), block=1, shared_bytes=16)[0]
    assert out.tolist() == [20, 0, 3]


def test_modules_of_one_text_share_nothing() -> None:
    source = "__device__ int calls; __global__ void f(int *a) { a[0] = ++calls; }"
    first, second = build(source), build(source)
    assert [int(launch(first, "f", zeros(1), block=1)[0][0]) for _ in range(3)] == [1, 2, 3]
    assert launch(second, "f", zeros(1), block=1)[0][0] == 1


def test_macros_that_users_like_do_not_meet_the_headers_names() -> None:
    source = "__global__ void f(T *a, const T *b) { a[threadIdx.x] = __ldg(&b[threadIdx.x]) + (T)1; }"
    given = np.arange(32, dtype=np.float32)
    result, _ = run_kernel(source, "f", np.zeros(32, np.float32), given, defines={"T": "float", "U": "int", "N": 3})
    np.testing.assert_array_equal(result, given + 1)


def test_threadIdx_and_the_like_are_values_too() -> None:
    source = """
    __device__ unsigned sum(dim3 d) { return d.x + 100 * d.y + 10000 * d.z; }
    __device__ unsigned first(const uint3 &v) { return v.x; }
    __global__ void f(unsigned *out) {
        register int t = threadIdx.x;
        dim3 block(blockDim), place;
        place = blockIdx;
        uint3 copied = block;
        out[4 * t] = sum(threadIdx);
        out[4 * t + 1] = sum(place);
        out[4 * t + 2] = sum(block);
        out[4 * t + 3] = first(gridDim) + copied.y + first(threadIdx);
    }"""
    (out,) = run_kernel(source, "f", np.zeros(8, np.uint32), block=2)
    assert out.tolist() == [0, 0, 10102, 2, 1, 0, 10102, 3]


def test_a_cast_to_a_reference_is_the_same_memory() -> None:
    source = """
    struct A { int x[4]; };
    struct B { int low, high; };
    union U { int words[4]; float numbers[4]; };
    __device__ B &as_struct(A &a) { return reinterpret_cast<B &>(a); }
    __device__ U &as_union(A &a) { return reinterpret_cast<U &>(a); }
    __global__ void f(int *out) {
        __shared__ A s;
        for (int i = 0; i < 4; ++i) s.x[i] = 0;
        B &b = reinterpret_cast<B &>(s);
        b.low = 3;
        as_struct(s).high = 5;
        as_union(s).words[2] = 7;
        reinterpret_cast<float &>(s.x[3]) = 2.0f;
        const A &constant = s;
        const_cast<A &>(constant).x[0] += 1;
        for (int i = 0; i < 4; ++i) out[i] = s.x[i];
    }"""
    (out,) = run_kernel(source, "f", np.zeros(4, np.int32), block=1)
    assert out.tolist() == [4, 5, 7, 0x40000000]


def test_three_hundred_lines_take_a_processor_less_than_300_ms() -> None:
    kernel = """
    __global__ void reduce_NUMBER(const float *in, float *out, int n) {
        __shared__ float s[256];
        int t = threadIdx.x;
        int i = blockIdx.x * blockDim.x + t;
        s[t] = i < n ? in[i] : 0.0f;
        __syncthreads();
        for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
            if (t < stride) s[t] += s[t + stride];
            __syncthreads();
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }"""
    source = "".join(kernel.replace("NUMBER", str(number)) for number in range(25))
    assert source.count("\n") == 300
    times = []
    for _ in range(6):
        start = time.process_time()
        module = build(source)
        for name in module.kernels:
            module.kernel(name)
        times.append(time.process_time() - start)
    assert len(module.kernels) == 25
    assert np.median(times) < 0.3


@pytest.mark.parametrize("head", ["", "template <typename T>\n", "template <int N>\n"])
def test_a_shared_array_without_a_size_is_declared_extern(head: str) -> None:
    kernel = "f" if not head else "f<int>" if "typename" in head else "f<256>"
    type = "T" if "typename" in head else "int"
    source = (
        f"{head}__global__ void f(int *out) {{\n    __shared__ {type} buffer[]; buffer[0] = 1; out[0] = buffer[0];\n}}"
    )
    with pytest.raises(CompileError, match="an unsized __shared__ array must be declared extern") as caught:
        build(source).kernel(kernel)
    assert caught.value.position is not None
    assert caught.value.position.line == source[: source.index("__shared__")].count("\n") + 1


def test_an_array_of_a_thread_without_a_size_has_no_extern() -> None:
    error = build_error("__global__ void f(int *out) {\n    __shared__ int a; int b[]; out[0] = 1;\n}")
    assert "needs an explicit size" in error.message
