"""How objects come to life and what names mean, compared with the machine's C++ compiler, thread by thread."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gpu.base.errors import CompileError
from tests.gpu.simulator.cplusplus import compare_program
from tests.gpu.simulator.kernel_runner import build, run_kernel

# Each: what stands before the function, and its body, as `compare_program` takes them.
PROGRAMS = {
    "constructors of members and base classes": (
        """struct A { int x; DEVICE A() : x(1) {} DEVICE A(int v) : x(v) {} };
        struct Has { A a, both[2]; int y; DEVICE Has() { y = 2; } };
        struct Implicit { A a; int y; };
        struct Derived : A { int y; DEVICE Derived() { y = 3; } };
        struct Other : A { int y; };
        struct Chosen : A {
            A a; int y = 4, z;
            DEVICE Chosen(int k) : A(k), a(k + 1), z(y + k) {} DEVICE Chosen() : Chosen(9) {}
        };
        struct Table { int v[3] = {1, 2, 3}, w[2]; A many[2]; DEVICE Table() : w{5, 6} {} };""",
        """
        Has has; Implicit implicit; Derived derived; Other other; Chosen chosen(i), nine; Table table;
        out[0] = has.a.x + has.both[1].x * 10 + has.y * 100; out[1] = implicit.a.x; out[2] = derived.x * 10 + derived.y;
        out[3] = other.x; out[4] = chosen.x * 1000 + chosen.a.x + chosen.y * 100 + chosen.z; out[5] = nine.z + nine.x;
        out[6] = table.v[1] + table.v[2] * 10 + table.w[1] * 100 + table.many[1].x * 1000;
        A three[3], some[2] = {A(i)}, converted[3] = {5, A(6)}; A square[2][2];
        out[7] = three[2].x + some[0].x * 10 + some[1].x * 1000;
        out[8] = converted[0].x + converted[1].x * 10 + converted[2].x;
        out[9] = square[1][1].x;
        """,
    ),
    "default constructors of templates that do nothing": (
        """template <class T> struct Pair { T low, high; DEVICE Pair(); DEVICE Pair(T v) : low(v), high(v + 1) {} };
        template <class T> DEVICE Pair<T>::Pair() {}
        template <class T, int N> struct Stack {
            T values[N]; int top;
            DEVICE Stack() : top(-1) {} DEVICE void push(T const &v) { values[++top] = v; }
        };
        template <class T> struct Preset { T x = 5; DEVICE Preset() {} };
        struct Both { Pair<int> pair; Preset<int> preset; };""",
        """
        Stack<Pair<int>, 3> stack; stack.push(Pair<int>(i)); stack.push(Pair<int>(7));
        out[0] = stack.values[0].high * 10 + stack.values[1].low + stack.top * 1000;
        Both both; both.pair.low = i; out[1] = both.pair.low + both.preset.x * 100;
        """,
    ),
    "braces that leave things out": (
        """struct Two { int a = 7; int b; };
        struct A { int x; DEVICE A() : x(1) {} DEVICE A(int v) : x(v) {} };
        struct Outer { Two two; A a; int z; };
        struct Flat { int a[2]; int b; };
        struct Point { float x, y; };
        struct Line { Point p, q; };
        DEVICE const int square[2][2] = {1, 2, 3, 4};""",
        """
        Two two{}, one{3}; Outer d{}, e{{2}, {}, 3}, f{{2, 4}, {8}};
        out[0] = two.a + two.b * 10 + one.a * 100 + one.b; out[1] = d.two.a + d.a.x * 10 + d.z;
        out[2] = e.two.a + e.a.x * 10 + e.z * 100; out[3] = f.two.b + f.a.x * 10 + f.z;
        Flat s = {1, 2, i}, t = {{4}, 5}, u[2] = {1, 2, 3, 4, 5, i}, v[2] = {{{1, 2}, 3}};
        out[4] = s.a[1] + s.b * 10; out[5] = t.a[1] + t.b; out[6] = u[1].a[1] + u[1].b * 10; out[7] = v[0].b + v[1].b;
        Point p = {5, 6}; Line a = {1, 2, 3, 4}, b = {p, 7, 8}, c = {p}, named = {.p = p, .q = {1, 2}};
        out[8] = a.q.x * 10 + a.p.y; out[9] = b.q.y * 10 + b.p.y; out[10] = c.p.x + c.q.x;
        out[11] = named.q.y + named.p.x;
        int m[2][2] = {1, 2, i}, n[][3] = {{1}, {2, 3}}; out[12] = m[1][0] * 10 + m[1][1];
        out[13] = n[1][1] + sizeof(n);
        out[14] = square[1][0]; Line many[2] = {1, 2, 3, 4, 5}; out[15] = many[1].p.x + many[0].q.y + many[1].p.y;
        """,
    ),
    "names that are the same": (
        """template <class F> DEVICE int apply(F f, int x) { return f(x); }
        template <class F> DEVICE int twice(F f) { return f(f(1)); }
        DEVICE int first(int i) { struct S { int a, b; }; S s{i, 2}; return s.b; }
        DEVICE int second(int i) { struct S { char b; double a; }; S s{4, i + 0.5}; return s.b + (int)(s.a * 2); }
        template <int N> DEVICE int third() {
            struct S { int v[N]; }; S s; s.v[N - 1] = N; return sizeof(S) + s.v[N - 1]; }
        template <int N> DEVICE int table(int i) { const int t[2] = {N, N + 1}; return t[i % 2]; }
        namespace a { DEVICE int f() { return 1; } struct S { int x; }; } namespace b { DEVICE int f() { return 2; }
        struct S { double x, y; }; namespace c { DEVICE int f() { return a::f() * 10; } } }""",
        """
        out[0] = apply([](int x) { return x * 3; }, i) * 1000 + apply([](int x) { return x + 100; }, 1);
        auto by = [=](int x) { return x * i; };
        auto more = [=](int x) { return x + i; };
        out[1] = apply(by, 2); out[2] = apply(more, 2);
        out[3] = twice([=](int x) { return twice([=](int y) { return y * x + i; }); });
        out[4] = first(i); out[5] = second(i); out[6] = third<2>() * 1000 + third<5>();
        out[7] = table<1>(i) * 10 + table<5>(i);
        out[8] = a::f() + b::f() * 10 + b::c::f() * 100 + sizeof(a::S) + sizeof(b::S);
        int (*p)(int) = [](int x) { return x + 1; }, (*q)(int) = [](int x) { return x - 1; };
        out[9] = (i % 2 ? p : q)(i) + (p == q);
        """,
    ),
    "templates of classes": (
        """template <class T> struct Base { T z; DEVICE Base() : z(9) {} DEVICE T twice() const { return z * 2; } };
        template <class T> struct Derived : Base<T> {
            T x = 5; T v[2] = {1, 2}; int q;
            DEVICE Derived() : Base<T>() { q = 3; }
            DEVICE T all() { return this->z + x + v[1] + q; }
        };
        template <class T> struct Plain { T a, b; }; template <class T> struct More : Plain<T> { T c; };
        template <class T, int N> struct Vec {
            T d[N] = {};
            DEVICE Vec() {} DEVICE explicit Vec(T x) { for (int k = 0; k < N; k++) d[k] = x; }
            DEVICE T &operator[](int k) { return d[k]; } DEVICE T operator[](int k) const { return d[k]; }
        };
        template <class T, int N> DEVICE Vec<T, N> operator+(const Vec<T, N> &a, const Vec<T, N> &b) {
            Vec<T, N> r; for (int k = 0; k < N; k++) r[k] = a[k] + b[k]; return r;
        }
        struct Holds { Vec<float, 2> m; Base<int> b; int n; DEVICE Holds() : m(), b() {} };""",
        """
        Derived<int> u; out[0] = u.all(); out[1] = u.twice();
        More<int> m, copy, kept; m.a = i; m.b = 2; m.c = 3; copy = m; copy.a++; kept = copy;
        out[2] = m.a * 100 + kept.a + kept.b + kept.c;
        Vec<int, 3> a(i), b, *p = &b; (*p)[1] = 4; Vec<int, 3> sum = a + b + Vec<int, 3>(7);
        out[3] = sum[0] + sum[1] * 100;
        Holds h; h.n = 2; h.m[1] += i; Holds other = h; out[4] = (int)other.m[1] + other.n + other.b.z;
        out[5] = other.b.twice();
        """,
    ),
    "memory that is asked for": (
        """#include <new>
        struct A { int x; DEVICE A(int v) : x(v) {} DEVICE A() : x(1) {} }; struct P { int x; float y; };
        struct List { int value; List *next; };""",
        """
        A *one = new A(i), *many = new A[3]; int *p = new int[4 + i], *seven = new int(7); p[3 + i] = i;
        P *braces = new P{1, 2.5f}, *bare = new P; bare->x = 5;
        unsigned long *nine = new unsigned long(9), *two = new unsigned long[2]; two[1] = 3;
        out[0] = one->x; out[1] = many[2].x; out[2] = p[3 + i]; out[3] = *seven + *nine + two[1];
        out[4] = (int)(braces->y * 2) + bare->x;
        alignas(8) unsigned char place[4 * sizeof(A)];
        A *at = new (place + 4) A(i + 2); new (out + 5) int(3); out[5] += at->x;
        int *row = new (out + 7) int[2]; row[0] = i; row[1] = 2 * i;
        List *list = nullptr;
        for (int k = 0; k < 4; k++) list = new List{k * i, list};
        for (List *each = list; each; each = each->next) out[6] = out[6] * 3 + each->value;
        delete one; delete[] p; delete seven;
        """,
    ),
    "declarations in conditions": (
        "DEVICE int next(int &n) { return n > 3 ? n -= 3 : 0; }",
        """
        int n = i, rounds = 0;
        while (int left = next(n)) { rounds++; if (left % 5 == 0) continue; if (left == 7) break; out[0] += left; }
        out[1] = rounds; out[2] = n;
        if (int odd = i % 2) out[3] = odd; else out[3] = odd - 1;
        if (int third = i / 3; third > 4) out[4] = third; else if (const int half = i / 2) out[4] = -half;
        switch (int rest = i % 4) { case 1: out[5] = rest + 10; break; default: out[5] = rest; }
        switch (int rest = i % 3) { case 2: out[6] = rest; }
        """,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_cplusplus_does(name: str) -> None:
    compare_program(*PROGRAMS[name])


def test_variables_of_one_name_in_several_namespaces_and_functions() -> None:
    source = """
    namespace a { __constant__ int c = 3; __device__ int v = 10; }
    namespace b { __constant__ int c = 4; __device__ int v = 20; }
    __device__ int v = 30;
    struct S { static const int c = 5; };
    __global__ void k(int *out) { out[0] = a::c; out[1] = b::c; out[2] = a::v;
        out[3] = b::v; out[4] = v; out[5] = S::c; }"""
    [out] = run_kernel(source, "k", np.zeros(6, np.int32), block=1)
    assert out.tolist() == [3, 4, 10, 20, 30, 5]
    module = build(source)
    module.set_constant("b::c", np.int32([7]))
    values = np.zeros(24, np.uint8)
    module.kernel("k").launch((1, 1, 1), (1, 1, 1), [values])
    assert values.view(np.int32).tolist() == [3, 7, 10, 20, 30, 5]


# What is refused because its effect is not known: what stands before the kernel, the text within it, a part of the
# message, and of what to write instead.
REFUSED = {
    "a destructor that does something": (
        "struct G { int *p; __device__ ~G() { *p = 1; } };",
        "G g{out};",
        "an object of G, which has a nonempty destructor",
        "method",
    ),
    "a member whose destructor does something": (
        "struct G { int *p; __device__ ~G() { *p = 1; } }; struct H { G g[2]; };",
        "H h; h.g[0].p = out;",
        "an object of G, which has a nonempty destructor",
        "method",
    ),
    "a template's default constructor that nobody wrote out": (
        "template <class T> struct B { T x; __device__ B() : x(4) {} }; struct H { B<int> b; };",
        "H h; out[0] = h.b.x;",
        "an implicit call of the default constructor of B<int>",
        r"B<int>\(\)",
    ),
    "one of several constructors, in braces": (
        "struct P { int x; __device__ P(int a) : x(a) {} __device__ P(float a) : x(a * 2) {} };",
        "P p[2] = {1, 2}; out[0] = p[i].x;",
        "this value for a P",
        r"P\(\.\.\.\)",
    ),
    "what is deleted and has a destructor": (
        "struct G { int *p; __device__ ~G() { *p = 1; } };",
        "G *g = (G *)out; delete g;",
        "an object of G, which has a nonempty destructor",
        "method",
    ),
    "as many objects as only the run knows": (
        "struct P { int x; __device__ P() : x(1) {} };",
        "P *p = new P[i]; out[0] = p->x;",
        "a new array of objects with a variable length",
        "constant",
    ),
    "elements that are named": ("", "int a[4] = {[2] = 5}; out[0] = a[i];", "array designators in braces", "in order"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_wrong_is_refused(name: str) -> None:
    before, statement, message, instead = REFUSED[name]
    with pytest.raises(CompileError, match=message) as caught:
        build(f"{before}\n__global__ void k(int *out, int i) {{\n{statement}\n}}").kernel("k")
    assert caught.value.position is not None
    assert caught.value.position.line in (1, 2, 3)
    assert re.search(instead, caught.value.advice)
