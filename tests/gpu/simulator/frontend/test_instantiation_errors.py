"""An error in what a kernel instantiates is an error of the kernel, as for nvcc; an error in other code is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import CompileError
from gpu.simulator.simulated_module import SimulatedModule

SMALL = 'template <int N> struct S { static_assert(N > 4, "too small"); enum { value = N }; };'
SIZED = 'template <class T> struct W { static_assert(sizeof(T) == 8, "size"); typedef int type; };\n'
HOST = "#include <vector>\nint main() { std::vector<int> v; }\n"
TOO_SMALL = "static assertion failed due to requirement '2 > 4': too small"
DEEP = "recursive template instantiation exceeded maximum depth"
CASES = [
    (SMALL, "a[0] = S<2>::value;", TOO_SMALL),
    (HOST + SMALL, "a[0] = S<2>::value;", TOO_SMALL),
    (HOST + SMALL + "typedef S<2> T;", "a[0] = T::value;", TOO_SMALL),
    (HOST + SMALL + "struct Q { S<2> s; };", "Q q; a[0] = sizeof(q);", TOO_SMALL),
    (HOST + SMALL + "template <class T> __device__ int f() { return S<2>::value; }", "a[0] = f<int>();", TOO_SMALL),
    (HOST + SMALL + "__device__ int f() { return S<2>::value; }", "a[0] = f();", TOO_SMALL),
    (SIZED + "template <class T> using I = typename W<T>::type;", "I<int> x = 3; a[0] = x;", "static assertion failed"),
    ('static_assert(sizeof(int) == 8, "global");', "a[0] = 1;", "static assertion failed"),
    (HOST + 'static_assert(sizeof(int) == 8, "global");', "a[0] = 1;", "static assertion failed"),
    ("", 'static_assert(sizeof(int) == 8, "local"); a[0] = 1;', "static assertion failed"),
    ("struct P {}; template <class T> struct W { static const int v = T::nothing; };", "a[0] = W<P>::v;",
     "no member named 'nothing' in 'P'"),
    ("struct P {}; template <class T> __device__ int get(T t) { return t.nothing; }", "a[0] = get(P());",
     "no member named 'nothing' in 'P'"),
    ("struct P {}; template <class T> struct W { T t; __device__ int get() { return t.nothing; } };",
     "W<P> w; a[0] = w.get();", "no member named 'nothing' in 'P'"),
    ("template <int N> struct F { static const int v = F<N - 1>::v + 1; };", "a[0] = F<3>::v;", DEEP),
    ("template <int N> __device__ int f() { return f<N + 1>() + 1; }", "a[0] = f<0>();", DEEP),
]  # fmt: skip


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize(("declarations", "body", "message"), CASES)
def test_an_error_in_what_is_instantiated_is_raised(
    declarations: str, body: str, message: str, *, tolerant: bool
) -> None:
    source = f"{declarations}\n__global__ void k(int *a) {{ {body} }}"
    with pytest.raises(CompileError, match=r"^test\.cu:") as raised:
        SimulatedModule(source, Path("test.cu"), {}, tolerant=tolerant).kernel("k")
    assert message in raised.value.message


def test_an_error_in_what_others_instantiate_is_none_of_the_kernel() -> None:
    source = f"""#include <thrust/device_vector.h>
    template <int N> struct H {{ static_assert(N > 4, "host"); thrust::device_vector<int> v; }};
    int main() {{ H<2> h; }}
    {SMALL}
    __global__ void other(int *a) {{ a[0] = S<2>::value; }}
    __global__ void k(int *a) {{ a[0] = S<5>::value; }}"""
    module = SimulatedModule(source, Path("test.cu"), {}, tolerant=True)
    module.kernel("k")
    with pytest.raises(CompileError, match="too small"):
        module.kernel("other")
