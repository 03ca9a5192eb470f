"""Kernels' names out of what compilers write for __PRETTY_FUNCTION__."""

from __future__ import annotations

import pytest

from gpu.hosts.program.names import kernel_name


@pytest.mark.parametrize(
    ("pretty", "parameters", "name"),
    [
        ("void add(const float*, float*, int)", 0, "add"),
        ("void reduce(T*, int) [with T = float; unsigned int N = 256]", 2, "reduce<float, 256>"),
        ("void reduce(T *, int) [T = float, N = 256]", 2, "reduce<float, 256>"),
        ("void a::b(T) [with T = std::pair<int, float>; V = double]", 2, "a::b<std::pair<int, float>, double>"),
        ("void f(T) [with T = int; size_t = long unsigned int]", 1, "f<int>"),
        ("void f(T, int64_t) [with T = int; int64_t = long int; size_t = long unsigned int]", -1, "f<int>"),
        ("void f(Ts ...) [with Ts = {int, float}]", 1, "f<int, float>"),
        ("void {anonymous}::f(T) [with T = {anonymous}::S]", 1, "f<S>"),
        ("void f(T) [with T = int (*)(int, int); T G = add]", 2, "f<int (*)(int, int), add>"),
        (
            "void each(F) [with int N = 3; F = lockstep_host::Closure<7, 1, scale<float>(T*)::<lambda(int)> >]",
            2,
            "each<3, (lambda at 7:1 of scale<float>)>",
        ),
    ],
)
def test_names(pretty, parameters, name):
    assert kernel_name(pretty, parameters) == name
