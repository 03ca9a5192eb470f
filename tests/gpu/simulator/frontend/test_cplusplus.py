"""C++ that kernels use, compared with the machine's C++ compiler, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, LaunchError
from gpu.kernel.simulate import simulate
from tests.gpu.simulator.cplusplus import compare_program
from tests.gpu.simulator.kernel_runner import build, run_kernel
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements, trace_kernel

Array = np.ndarray[Any, Any]

# Each: what stands before the function, and its body, as `compare_program` takes them.
PROGRAMS = {
    "statements within an expression, also of macros within macros": (
        """#define SMALLER(x, y) ({ __typeof__(x) _x = (x); __typeof__(y) _y = (y); _x < _y ? _x : _y; })
        struct Pair { int a, b; };
        DEVICE int first(const Pair &p) { return p.a; }""",
        """
        int n = in[0];
        for (int k = 0; k < SMALLER(i, 5); k++) out[k] = SMALLER(SMALLER(n, in[k]), i - 3);
        out[5] = ({ Pair p = {i, 2}; p.b += i; ; p.b * first(p); });
        out[6] = i % 2 ? ({ int q; q = n++; q; }) : -1;
        out[7] = n;
        """,
    ),
    "structured bindings": (
        """struct Two { int a; float b; }; struct Three { int x; Two two; int list[2]; };
        DEVICE Three make(int i) { return Three{i, {i + 1, i * 0.5f}, {i, 7}}; }
        DEVICE void bump(int &x) { x += 1; }""",
        """
        auto [x, two, list] = make(i);
        bump(x); list[1] += in[0]; int *p = &two.a; *p += 5;
        Three three = make(in[1]);
        auto &[y, pair, words] = three;
        y = 3; words[0] += i; pair.b += 1;
        const auto &[z, other, last] = make(2);
        Two array[3] = {{1, 2}, {3, 4}, {5, 6}};
        int sum = 0;
        for (auto &[a, b] : array) { a += i; sum += a * b; }
        for (auto [a, b] : array) { b += 1; sum += a - b; a = 0; }
        if (auto [a, b] = array[1]; a > 5) sum += b;
        out[0] = x; out[1] = two.a + list[1]; out[2] = three.x + three.list[0] + (int)three.two.b; out[3] = sum;
        out[4] = z + last[1] + (int)(4 * other.b); out[5] = array[2].a + array[2].b;
        """,
    ),
    "compound literals": (
        """struct Two { int x, y; };
        DEVICE Two add(Two a, Two b) { return (Two){a.x + b.x, a.y + b.y}; }
        DEVICE int sum(const Two &a) { return a.x + a.y; }""",
        """
        Two two = add((Two){i, in[0]}, (Two){in[1]});
        out[0] = two.x; out[1] = two.y; out[2] = sum((Two){1, i}); out[3] = ((Two){i, 7}).y; out[4] = (int){i};
        """,
    ),
    "a choice of what gives no value": (
        "DEVICE void set(int *p, int v) { *p = v; }",
        """
        (i > 3) ? set(out, i) : set(out + 1, 2);
        i % 2 ? (i % 3 ? set(out + 2, 1) : (void)0) : set(out + 3, 5);
        """,
    ),
    "a lambda copies and refers": (
        "",
        """
        int n = in[0], m = i;
        auto add = [=](int x) { return x + n; };
        auto inc = [&](int x) { m += x; return m; };
        n = 100;
        out[0] = add(2); out[1] = inc(5) * 10 + inc(1); out[2] = m; out[3] = add(n);
        """,
    ),
    "captures of each kind": (
        "struct Two { int a; float b; };",
        """
        int n = in[0], m = 4, array[3] = {1, 2, i};
        Two two = {n, 0.5f};
        auto mix = [n, &m, q = n * 2, &r = array[1]](int x) mutable { n++; m += n; r += q; return x + q; };
        auto sum = [array](int at) { return array[at] + array[0]; };
        auto both = [two, &array](int x) { array[0] = two.a; return two.b * x; };
        array[2] = 99;
        out[0] = mix(1); out[1] = mix(2); out[2] = m; out[3] = n; out[4] = array[1];
        out[5] = sum(2) + sum(1); out[6] = both(7); out[7] = array[0];
        """,
    ),
    "lambdas passed to templates": (
        """template <typename F> DEVICE int apply(F f, int x) { return f(x); }
        template <typename F> DEVICE int twice(const F &f, int x) { return f(f(x)); }
        template <typename T> DEVICE T plus(T v) { auto l = [=](T w) { return v + w; }; return l(v); }
        template <class F> DEVICE void each(int n, F &&f) { for (int k = 0; k < n; k++) f(k); }""",
        """
        int m = in[1];
        out[0] = apply([&](int x) { return m * x; }, i);
        out[1] = twice([=](int x) { return x * m + 1; }, in[2]);
        out[2] = plus(in[0]); out[3] = (int)plus(2.75 + i);
        each(i % 7, [&](int k) { if (k == 4) return; out[4] += k * m; });
        """,
    ),
    "a lambda within a method, and within a lambda": (
        """struct Counter {
            int count;
            DEVICE int go(int y) {
                auto step = [this, y](int z) { count++; return count + y + z; };
                auto again = [&](int q) { return step(q) + count; };
                return again(1) + again(y);
            }
            DEVICE int doubled() { auto f = [=]() { return count * 2; }; return f(); }
        };""",
        """
        Counter counter{in[3]};
        int n = i;
        out[0] = counter.go(3); out[1] = counter.count; out[2] = counter.doubled();
        auto outer = [&](int x) { auto inner = [&, x](int y) { n += y; return n + x; }; return inner(2) + n; };
        out[3] = outer(10); out[4] = n;
        """,
    ),
    "lambdas that are generic, recursive, called at once, early to return": (
        "",
        """
        auto next = [](auto x) { return x + 1; };
        auto sum = [](auto self, int d) -> int { return d <= 0 ? 0 : d + self(self, d - 1); };
        out[0] = next(i); out[1] = (int)(next(0.75) * 4); out[2] = sum(sum, i % 9);
        out[3] = [](int p, int q) { if (p > q) return p; while (q > 20) q /= 2; return q; }(3, i);
        auto skip = [&](int from) { for (int k = from; k < 9; k++) if (in[k] > i) return k; return -1; };
        out[4] = skip(0) * 100 + skip(3);
        """,
    ),
    "references as members": (
        """struct Sum { int &total; const int *from; DEVICE Sum(int &t, const int *f) : total(t), from(f) {}
            DEVICE void add(int k) { total += from[k]; } };
        struct Pair { int &a; int b; };""",
        """
        int total = i, other = 5;
        Sum sum(total, in);
        sum.add(1); sum.add(2);
        Pair pair{other, 7};
        pair.a += pair.b;
        Pair copy = pair;
        copy.a *= 2; copy.b = 1;
        out[0] = total; out[1] = other; out[2] = pair.b; out[3] = sum.total + copy.a;
        """,
    ),
    "unions": (
        """union Word { float f; unsigned u; unsigned char b[4]; short h[2]; };
        DEVICE Word word(float x) { Word w; w.f = x; return w; }
        DEVICE unsigned bits(Word w) { w.u++; return w.u; }""",
        """
        Word w;
        w.f = 1.5f + i;
        out[0] = w.u; out[1] = w.b[3]; w.b[2] = in[0]; out[2] = w.u; out[3] = word(-2 - i).u; out[4] = bits(w);
        Word v = w, braces = {3.25f}, many[3];
        v.u ^= 0xff; out[5] = v.u; out[6] = w.h[0];
        Word *p = &braces; p->b[i % 4] = 1; out[7] = braces.u;
        for (int k = 0; k < 3; k++) many[k].f = k * i;
        out[8] = many[i % 3].b[2]; out[9] = many[2].u;
        union { double d; unsigned long long l; } wide; wide.d = 1.0 / (i + 1); out[10] = (int)(wide.l >> 30);
        """,
    ),
    "unions within structs": (
        """struct Tagged { int tag; union { int i; float f; short h[2]; }; };
        template <typename T, int N> struct Pack { union { T whole; short e[N]; }; DEVICE Pack() {} };
        struct Quad { int x, y; };
        DEVICE Tagged tagged(int k) { Tagged t; t.tag = k; t.f = k * 0.5f; return t; }""",
        """
        Tagged t, all[2];
        t.tag = 1; t.f = 2.5f + i;
        Tagged copy = t;
        out[0] = copy.i + copy.tag; out[1] = copy.h[1]; out[2] = tagged(i).h[1];
        all[0] = t; all[1] = tagged(3); all[i % 2].h[0] = 77;
        out[3] = all[0].i; out[4] = all[1].i;
        Pack<Quad, 4> pack;
        pack.whole = {in[i % 8], i};
        for (int k = 0; k < 4; k++) out[5] += pack.e[k] * k;
        """,
    ),
    "functions as arguments of templates, and pointers to functions": (
        """DEVICE int one(int x) { return x + 1; }
        DEVICE int two(int x) { if (x > 20) return 0; return x * 2; }
        DEVICE float half(float x, int &calls) { calls++; return x / 2; }
        DEVICE void leave(int *p, int v) { if (v % 2) return; *p = v; }
        typedef int (*Function)(int);
        template <int (*F)(int)> DEVICE int known(int x) { return F(x) + F(1); }
        template <typename F> DEVICE int any(F f, int x) { return f(x) + (*f)(x); }
        DEVICE int chain(Function f, Function g, int x) { return g ? g(f(x)) : f(x); }
        struct Choice { Function f; int x; };""",
        """
        Function p = i % 3 ? one : two, table[2] = {one, &two}, none = nullptr;
        int calls = 0;
        float (*h)(float, int &) = half;
        void (*l)(int *, int) = leave;
        int (*minus)(int) = [](int x) { return x - 1; };
        out[0] = known<one>(i); out[1] = any(two, 4) + any(p, i); out[2] = p(5); out[3] = table[i % 2](7);
        out[4] = minus(i); out[5] = p == one; out[6] = none ? 1 : 2; out[7] = (*p)(i);
        out[8] = chain(p, i % 2 ? p : nullptr, i); out[9] = (int)(h(h(i, calls), calls) * 4); out[10] = calls;
        if (i > 7) l(out + 11, i);
        Choice choice = {table[i % 2], i}, kept = choice;
        out[12] = kept.f(kept.x);
        """,
    ),
    "assignments to assignments": (
        "DEVICE void add(int &to, int n) { to += n; } DEVICE int *next(int *p, int &calls) { calls++; return p + 1; }",
        """
        int a = i, b = 3, calls = 0, t[4] = {1, 2, 3, 4}, k = 0;
        unsigned char c = 250;
        float f = i;
        (a += 2) *= 3; out[0] = a;
        (b = a) -= i; out[1] = a * 1000 + b;
        ++(++a); out[2] = a; out[3] = --(a <<= 1);
        (t[k++] += 5) *= 2; out[4] = t[0] * 10 + k;
        (*next(t, calls) += 1) %= 2; out[5] = t[1] + calls * 10;
        (c += i) ^= 0x55; out[6] = c;
        add(b += 4, i); out[7] = b; add(++b, 1); out[8] = b;
        int &r = a = 9; r += i; out[9] = a;
        int *p = &(k = 5); *p += i; out[10] = k;
        (f /= 4) += 0.5f; out[11] = (int)(f * 100);
        ((a = 1) += 2) = a + i; out[12] = a;
        (i % 2 ? a : b) += 7; (i % 3 ? a : b)++; (++a)++; out[13] = a * 100 + b;
        int &least = t[0] < a ? t[0] : a; least = -i; add(i % 2 ? a : t[2], 5); out[14] = a * 100 + t[0] + t[2];
        """,
    ),
    "memcpy and memset": (
        """#include <string.h>
        struct Part { int a; float b[3]; };""",
        """
        int from[6] = {1, 2, i, 4, 5, 6}, to[6];
        float f = 1.5f * i, all[3]; unsigned bits;
        Part part = {i, {1, 2, 3}}, copy;
        double zero[2] = {1, 2}; unsigned char bytes[5]; short pair[2];
        memset(to, 0, sizeof(to));
        memcpy(to, from + 1, (1 + i % 4) * sizeof(int));
        memcpy(&bits, &f, sizeof(f)); memcpy(all, part.b, sizeof all); memcpy(&copy, &part, sizeof(Part));
        memset(zero, 0, sizeof zero); memset(bytes, i, 5); memset(pair, 0x17, 4);
        for (int k = 0; k < 6; k++) out[k] = to[k];
        out[6] = bits; out[7] = copy.a + copy.b[2] * 10; out[8] = all[1]; out[9] = zero[1]; out[10] = bytes[4];
        memcpy(out + 12, in + i % 8, 3 * sizeof(int)); memset(out + 16, -1, 7); out[11] = pair[1];
        Part parts[2]; int square[2][2] = {{1, i}, {3, 4}}, other[2][2]; float row[4];
        memcpy(&all, part.b, sizeof all); memcpy(other, square, sizeof other); memcpy(&parts[1], &part, sizeof part);
        out[19] = other[0][1] + parts[1].a + all[2]; memcpy(row, &part.b, sizeof(part.b)); out[20] = row[1];
        """,
    ),
    "frexp, ldexp, modf": (
        "#include <math.h>",
        """
        double values[] = {0.0, -0.0, 1.0, -3.75, 1e300, 5e-324, 1.0 / (i + 1), i * 1e5};
        for (int k = 0; k < 8; k++) {
            int exponent = 99; float whole; double all;
            out[k] = (int)(frexp(values[k], &exponent) * (1 << 20)); out[8 + k] = exponent;
            float rest = modff((float)values[k] < 1e9f ? (float)values[k] : 0.f, &whole);
            out[16 + k] = (int)(rest * 1024) + (int)whole + (int)ldexpf(0.25f, i % 9) + (int)modf(values[k] / 3, &all);
        }
        """,
    ),
    "type traits of the compiler": (
        """struct Empty {};
        template <typename T> DEVICE int kind() {
            if constexpr (__is_class(T)) { return 1; } else if constexpr (__is_enum(T)) { return 2; }
            return 3;
        }""",
        """
        enum Color { RED };
        out[0] = kind<Empty>() + 10 * kind<Color>() + 100 * kind<int>() + i; out[1] = __is_class(int);
        """,
    ),
    "strings": (
        """DEVICE int length(const char *text) { int n = 0; while (text[n]) n++; return n; }
        DEVICE const char letters[] = "ab\\n\\0c";""",
        """
        char name[] = "warp", wide[8] = "x", many[2][4] = {"ab", "c"};
        const char *text = i % 2 ? "odd" : "even";
        name[1] = 'A' + i % 26;
        out[0] = length(name) * 100 + length(text); out[1] = name[1] + name[i % 5]; out[2] = wide[0] + wide[i % 8];
        out[3] = text[i % 3]; out[4] = many[1][0] + many[0][i % 4]; out[5] = "0123456789"[i % 10];
        out[6] = sizeof(name);
        """,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_cplusplus_does(name: str) -> None:
    compare_program(*PROGRAMS[name])


def test_strings_are_printed() -> None:
    source = """__global__ void k() {
        const char *who = threadIdx.x ? "one" : "nought"; printf("%s is %d of %s\\n", who, threadIdx.x, "two");
        char own[] = "a?"; own[1] = 'x' + threadIdx.x; printf("%s %d\\n", own, (int)sizeof own);
    }"""
    printed: list[str] = []
    build(source).kernel("k").launch((1, 1, 1), (2, 1, 1), [], on_print=lambda who, text: printed.append(text))
    assert printed == ["nought is 0 of two\n", "one is 1 of two\n", "ax 3\n", "ay 3\n"]


def test_the_clock_only_goes_forward() -> None:
    source = """__global__ void k(long long *out) {
        long long start = clock64();
        clock_t other = clock();
        while (clock64() - start < 100) {}
        long long end = clock64();
        out[threadIdx.x] = other > start && end > other && end - start >= 100;
    }"""
    assert run_kernel(source, "k", np.zeros(32, np.int64))[0].all()


def test_a_trace_follows_values_through_lambdas_unions_and_pointers() -> None:
    source = """
    union Bits { float f; unsigned u; };
    __device__ float add(float a, float b) { return a + b; }
    __device__ float multiply(float a, float b) { return a * b; }
    __global__ void k(float *out, const float *in) {
        int i = threadIdx.x;
        float (*f)(float, float) = i % 2 ? add : multiply;
        float kept = in[i];
        auto with = [=, &kept](float x) { kept += x; return f(kept, x); };
        Bits bits;
        bits.f = with(in[31 - i]);
        Bits copy = bits;
        out[i] = copy.f;
    }"""
    given = np.random.default_rng(2).normal(size=32).astype(np.float32)
    made, (out, _) = trace_kernel(source, [np.zeros(32, np.float32), given])
    total, other = given + given[::-1], given[::-1]
    np.testing.assert_array_equal(out, np.where(np.arange(32) % 2, total + other, total * other))
    for i in (4, 7):
        found = find_ancestry(made, "out", i)
        assert input_elements(found) == sorted([i, 31 - i])
        assert [node.operator for node in found.operations] == ["+", "+" if i % 2 else "*"]


def test_a_call_through_a_null_pointer_names_its_line_and_thread() -> None:
    source = """__device__ int f(int x) { return x; }
    __global__ void k(int *out) {
        int (*p)(int) = threadIdx.x == 5 ? nullptr : f;
        out[threadIdx.x] = p(1);
    }"""
    with pytest.raises(
        LaunchError, match=r"^test\.cu:4:28: thread \(5,0,0\) .* through a pointer that does not point to a function"
    ):
        run_kernel(source, "k", np.zeros(32, np.int32))


def test_shared_memory_of_functions_that_are_called_through_pointers_counts() -> None:
    source = """__device__ int f(int x) { __shared__ int big[12000]; big[0] = x; return big[0]; }
    __global__ void k(int *out) { __shared__ int more[500]; more[0] = 1; int (*p)(int) = f; out[0] = p(more[0]); }"""
    with pytest.raises(LaunchError, match="needs 50000 bytes"):
        run_kernel(source, "k", np.zeros(32, np.int32))


# What is refused: the text within a kernel, and a part of the message.
REFUSED = {
    "a union of braces that starts with an array": (
        "union { int a[2]; long b; } u = {{1, 2}}; out[0] = u.a[i];",
        "braces",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused(name: str) -> None:
    statement, message = REFUSED[name]
    with pytest.raises(CompileError, match=message) as caught:
        build(f"__global__ void k(int *out, int i) {{\n{statement}\n}}").kernel("k")
    assert caught.value.position is not None
    assert caught.value.position.line == 2


def test_pairs_of_halves_round_each_result() -> None:
    source = """
    #include <cuda_fp16.h>
    __global__ void k(const half2 *a, const half2 *b, half2 *out, float *sums) {
        int t = threadIdx.x;
        half2 product = a[t] * b[t];
        out[2 * t] = product;
        out[2 * t] += __float2half2_rn(0.1f);
        out[2 * t + 1] = __halves2half2(__high2half(a[t]), __hsub(__low2half(a[t]), b[t].y));
        float2 both = __half22float2(__hfma2(a[t], b[t], __half2half2(__float2half(2.0f))));
        sums[t] = both.x + __high2float(product) + both.y * 0;
    }"""
    random = np.random.default_rng(2)
    a, b = (random.uniform(-8, 8, (32, 2)).astype(np.float16) for _ in range(2))
    _, _, out, sums = run_kernel(source, "k", a, b, np.zeros((64, 2), np.float16), np.zeros(32, np.float32))
    product = a * b
    out = out.reshape(32, 2, 2)
    np.testing.assert_array_equal(out[:, 0], product + np.float16(0.1))
    np.testing.assert_array_equal(out[:, 1], np.stack([a[:, 1], a[:, 0] - b[:, 1]], axis=1))
    fused = (a[:, 0].astype(np.float32) * b[:, 0].astype(np.float32) + 2).astype(np.float16)
    np.testing.assert_array_equal(sums, fused.astype(np.float32) + product[:, 1].astype(np.float32))


def test_operators_of_halves_round_each_result_and_with_a_float_do_not() -> None:
    source = """
    #include <cuda_fp16.h>
    __global__ void k(const half *a, const half *b, half *out, float *mixed) {
        int t = threadIdx.x;
        half x = a[t], y = b[t], z = x * y + x;
        out[4 * t] = z;
        z += y; z /= half(3); z -= 0.25f; ++z;
        out[4 * t + 1] = -z;
        out[4 * t + 2] = x > y ? x - y : y;
        out[4 * t + 3] = hsqrt(__habs(x));
        mixed[t] = x * 0.3f + (float)y;
    }"""
    random = np.random.default_rng(4)
    a, b = (random.uniform(-8, 8, 32).astype(np.float16) for _ in range(2))
    _, _, out, mixed = run_kernel(source, "k", a, b, np.zeros((32, 4), np.float16), np.zeros(32, np.float32))
    first = a * b + a
    second = (first + b) / np.float16(3) - np.float16(0.25) + np.float16(1)
    right = [first, -second, np.where(a > b, a - b, b), np.sqrt(np.abs(a))]
    np.testing.assert_array_equal(out, np.stack(right, axis=1))
    exact_product = a.astype(np.float64) * np.float32(0.3)
    np.testing.assert_array_equal(mixed, (exact_product + b).astype(np.float32))


def test_the_word_template_may_be_missing_as_nvcc_has_it_and_places_are_those_of_the_text() -> None:
    source = """template <typename A, typename B> struct Cast {
        template <int n> __device__ static void of(A *to, const B *from) {
            for (int i = 0; i < n; ++i) to[i] = (A)from[i];
        }
    };
    template <typename A, typename B> __device__ void both(A *to, B *from) { Cast<A, B>::of<2>(to, from); to[9] = 1; }
    __global__ void k(float *out) { int from[2] = {3, 4}; both(out, from); }"""
    out = run_kernel(source, "k", np.zeros(10, np.float32), block=1)[0]
    np.testing.assert_array_equal(out[[0, 1, 9]], [3, 4, 1])
    with pytest.raises(LaunchError) as caught:
        run_kernel(source, "k", np.zeros(2, np.float32), block=1)
    assert caught.value.position is not None
    line = source.splitlines()[caught.value.position.line - 1]
    assert line[caught.value.position.column - 1 :].startswith("to[9] = 1")


@pytest.mark.parametrize("engine", ["lockstep", "compiled"])
def test_functions_share_a_shared_variable_that_is_declared_outside_of_them(engine: str) -> None:
    source = """__shared__ int total;
    __device__ void add(int x) { atomicAdd(&total, x); }
    template <typename Function> __device__ void call(Function &&function) { function(); }
    __global__ void k(const int *in, int *out) {
        __shared__ int s[40];
        int t = threadIdx.x;
        if (t == 0) total = 0;
        call([&] { s[t] = in[t]; });
        __syncthreads();
        add(s[39 - t]);
        __syncthreads();
        out[t] = total + [&] { return s[39 - t]; }();
    }"""
    values = np.arange(40, dtype=np.int32) ** 2
    out = np.zeros(40, np.int32)
    module = build(source)
    kernel = module.kernel("k") if engine == "lockstep" else module.compiled_kernel("k")
    kernel.launch((1, 1, 1), (40, 1, 1), [values.view(np.uint8), out.view(np.uint8)])
    np.testing.assert_array_equal(out, values.sum() + values[::-1])
    assert module.kernel("k").traits.static_shared_bytes == 41 * 4


@pytest.mark.parametrize("engine", ["lockstep", "compiled"])
def test_static_variables_of_functions_keep_their_values_between_launches(engine: str) -> None:
    source = """template <int STEP> __device__ int take() { static int next = 10 * STEP;
        return atomicAdd(&next, STEP); }
    struct Counter { __device__ static int take() { static int next; return atomicAdd(&next, 1); } };
    __global__ void k(int *out) {
        static int next;
        static const int scale = 1000;
        static float table[2] = {0.5f, 2.5f};
        out[0] = take<1>(); out[1] = take<2>(); out[2] = take<3>(); out[3] = Counter::take();
        out[4] = atomicAdd(&next, scale);
        { static int next = 7; out[5] = atomicAdd(&next, 1); }
        out[6] = 2 * table[1]; table[1] = 9;
    }"""
    out = np.zeros(7, np.int32)
    module = build(source)
    kernel = module.kernel("k") if engine == "lockstep" else module.compiled_kernel("k")
    launches = []
    for _ in range(2):
        kernel.launch((1, 1, 1), (1, 1, 1), [out.view(np.uint8)])
        launches.append(out.tolist())
    assert launches == [[10, 20, 30, 0, 0, 7, 5], [11, 22, 33, 1, 1000, 8, 18]]


def test_a_finding_names_a_static_variable_with_its_function() -> None:
    source = "__global__ void f(int *out) { static int last; last = threadIdx.x; out[threadIdx.x] = 0; }"
    findings = simulate("test.cu", "f", 1, 32, [np.zeros(32, np.int32)], source=source).findings
    assert any("element 0 of f::last (global memory)" in each.message for each in findings)


def test_a_cast_to_a_reference_names_its_operand() -> None:
    before = """
    struct Base { int a; };
    struct Wide : Base { int b; };
    template <typename T> DEVICE T &&pass(T &value) { return static_cast<T &&>(value); }
    """
    body = """
    int k = i;
    static_cast<int &>(k) += 3;
    const int &c = k;
    const_cast<int &>(c) *= 4;
    out[0] = k;
    volatile int *v = out + 1;
    int &r = const_cast<int &>(v[0]);
    r = k + 5;
    (int &)v[1] = 7;
    float f = 1.5f + i;
    reinterpret_cast<int &>(f) += 1;
    out[3] = reinterpret_cast<const int &>(f);
    Wide w = {};
    w.b = i;
    static_cast<Base &>(w).a = 9 - i;
    out[4] = w.a + 2 * w.b;
    int &&m = pass(out[5]);
    m = static_cast<int>(f) & static_cast<unsigned char>(k);
    """
    compare_program(before, body)
