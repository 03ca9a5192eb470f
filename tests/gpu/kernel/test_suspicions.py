"""What is suspicious is warned of: results that nobody wrote, constants that nobody set, what the compiler sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.paths import KERNELS
from gpu.engines.null import NullEngine
from gpu.kernel.simulate import Simulation, simulate
from gpu.patterns import all_patterns
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.simulator.simulated_module import SimulatedModule

PATTERNS = list(all_patterns().values())


def run(source: str, *arguments: Any, kernel: str = "f", grid: int = 1, block: int = 8) -> Simulation:
    return simulate("test.cu", kernel, grid, block, arguments, source=source)


def list_warnings(source: str, *arguments: Any, **shape: Any) -> list[tuple[str, int]]:
    """Return the kind and the line of each warning; a run that is only suspicious has no findings."""
    simulation = run(source, *arguments, **shape)
    assert simulation.findings == []
    return [(each.kind, each.positions[0].line) for each in simulation.warnings]


HALF = """__global__ void f(float *out) {
    out[threadIdx.x] = 1;
}"""


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (16, "Elements 8 to 15 of out are not written: no thread of the kernel wrote there"),
        (9, "Element 8 of out is not written: no thread of the kernel wrote there"),
    ],
)
def test_elements_that_nobody_writes(size: int, said: str) -> None:
    (warning,) = run(HALF, f"empty:{size}").warnings
    assert (warning.kind, warning.positions[0].line) == ("never-written", 2)
    assert warning.message.startswith(said)


def test_gaps_between_elements_are_summed_up() -> None:
    (warning,) = run("__global__ void f(int *out) { out[4 * threadIdx.x] = 1; }", "empty:32").warnings
    assert warning.message.startswith("Elements 1 to 3, 5 to 7 and 18 more of out are not written")


def test_an_array_of_which_nothing_is_written_is_named_where_it_is_declared() -> None:
    source = "__global__ void f(int *out,\n int *sum, int n) {\n if (n > 3) *sum = 1; out[threadIdx.x] = n; }"
    assert list_warnings(source, "empty:8", "empty:1", 3) == [("never-written", 2)]
    assert list_warnings(source, "empty:8", "empty:1", 4) == []
    assert run(source, "empty:8", "empty:4", 3).warnings[0].message.startswith("All 4 elements of sum are not written")


def test_what_has_values_or_cannot_be_written_is_no_result() -> None:
    source = "__global__ void f(int *out, const int *in) { out[0] = in[0]; }"
    assert list_warnings(source, "zeros:16", "arange:16") == []
    assert "never-written" not in {each.kind for each in run(source, "zeros:16", "empty:16").warnings}


def test_a_part_of_a_struct_makes_an_element_written() -> None:
    source = "struct pair { char a; int b; }; __global__ void f(pair *out) { out[threadIdx.x].b = 1; }"
    assert list_warnings(source, "empty:8") == []


def test_writes_of_helpers_atomics_and_children_count() -> None:
    assert (
        list_warnings("__device__ void put(int *p) { *p = 1; } __global__ void f(int *out) { put(out); }", "empty:1")
        == []
    )
    child = "__global__ void g(int *p) { p[threadIdx.x] = 1; } __global__ void f(int *out) { g<<<1, 8>>>(out); }"
    assert list_warnings(child, "empty:8", block=1) == []
    added = run("__global__ void f(int *out) { atomicAdd(out, 1); }", "empty:1")
    assert (len(added.findings), added.warnings) == (1, [])


def test_nothing_is_said_of_results_of_a_launch_that_ended_early() -> None:
    simulation = run("__global__ void f(int *out) { out[threadIdx.x + 12] = 1; }", "empty:16")
    assert [each.kind for each in simulation.findings] == ["out-of-bounds"]
    assert simulation.warnings == []


def test_an_instantiation_is_watched_too() -> None:
    source = "template <class T>\n__global__ void f(T *out, int n) { out[threadIdx.x] = 1; }"
    assert list_warnings(source, "empty:16", 3, kernel="f<float>") == [("unused-parameter", 2), ("never-written", 2)]


CONSTANT = "__constant__ float c[4]{start};\n__global__ void f(float *out) {{ out[threadIdx.x] = {read}; }}"


@pytest.mark.parametrize(
    ("start", "read", "expected"),
    [
        ("", "c[1]", [("constant-never-set", 1)]),
        ("", "2", []),
        (" = {1, 2}", "c[1]", []),
        (" = {}", "c[1]", []),
    ],
)
def test_a_constant_that_nobody_sets(start: str, read: str, expected: list[tuple[str, int]]) -> None:
    assert list_warnings(CONSTANT.format(start=start, read=read), "empty:8") == expected


def test_a_constant_that_is_set_is_none_of_them() -> None:
    module = SimulatedModule(CONSTANT.format(start="", read="c[0]"), KERNELS / "test.cu", {})
    assert list(module.find_unset_constants("f")) == ["c"]
    module.set_constant("c", np.ones(4, np.float32))
    assert module.find_unset_constants("f") == {}


def test_what_the_compiler_warns_of() -> None:
    source = """__device__ bool full(unsigned n, int spare) { return n >= 0; }
    __global__ void g(int *a, int unused) { a[0] = 1; }
    __global__ void f(int *out,
        int n, [[maybe_unused]] int width) {
        unsigned u = threadIdx.x;
        if (full(u, 1) && u < 0) out[u] = 2;
        out[u] = 1;
    }"""
    assert list_warnings(source, "empty:8", 1, 2) == [("always-true", 1), ("unused-parameter", 4), ("always-false", 6)]


def test_a_kernel_that_does_not_compile_is_not_also_blamed_for_what_it_leaves_unused() -> None:
    from gpu.simulator.frontend.editor_diagnostics import diagnose

    found = diagnose("__global__ void f(int *out, int n) { out[0] = m; }", KERNELS / "test.cu", {})
    assert [each.severity for each in found] == ["error"]
    found = diagnose("__global__ void f(int *out, int n) { out[0] = 1; }", KERNELS / "test.cu", {})
    assert [(each.severity, each.message) for each in found] == [("warning", "unused parameter 'n'")]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_the_projects_own_kernels_give_no_cause(pattern: Any) -> None:
    builds: dict[Any, None] = {}

    class Watched(NullEngine):
        def build(self, file: str, defines: Any = None) -> Any:
            builds[file, *sorted((defines or {}).items())] = None
            return super().build(file, defines)

    image = {"image": np.ones((40, 70), np.uint8), "maxval": np.array(255)} if pattern.is_image_pattern else {}
    params = pattern.check({})
    inputs = pattern.prepare_inputs(image, params, 0)
    for variant in pattern.variants:
        if not variant.library and not variant.obstacle(inputs, params):
            run_pattern(
                Watched(), Workload(pattern, variant, inputs, params), lambda progress: None, with_reference=False
            )
    assert builds
    for file, *defines in builds:
        module = SimulatedModule((KERNELS / file).read_text(), KERNELS / file, dict(defines))
        assert [str(each) for name in module.kernels for each in module.iterate_warnings(name)] == []
