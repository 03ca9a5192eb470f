"""What the front end says of a text while it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import Diagnostic
from gpu.base.paths import KERNELS
from gpu.simulator.frontend.editor_diagnostics import diagnose


def diagnose_text(text: str, folder: Path = Path("/nowhere"), **defines: str) -> tuple[Diagnostic, ...]:
    return diagnose(text, folder / "test.cu", defines)


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cu")), ids=lambda path: path.name)
def test_our_own_kernels_are_clean(path: Path) -> None:
    assert diagnose(path.read_text(), path, {}) == ()


def test_a_word_that_is_not_known_is_marked_from_its_first_letter_to_its_last() -> None:
    line = "    int größe = 1; out[0] = größe + tix.x;"
    (error,) = diagnose_text(f"__global__ void f(int *out) {{\n{line}\n}}\n")
    assert (error.line, error.severity) == (2, "error")
    assert line[error.column - 1 : error.end - 1] == "tix"
    assert error.message == "use of undeclared identifier 'tix'"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("make_float4(1, 2, 3)", ": requires 4 arguments, but 3 were provided"),
        ('make_float2(1, "2")', ": no known conversion from 'const char[2]' to 'float' for 2nd argument"),
        ("atomicAdd(a)", ": requires 2 arguments, but 1 was provided"),
        ("own(a)", ": no known conversion from 'int *' to 'int' for 1st argument; dereference the argument with *"),
        ("own_template(a, 1)", ": deduced conflicting types for parameter 'T' ('int *' vs. 'int')"),
        ("overloaded(a)", ""),
    ],
)
def test_a_call_with_wrong_arguments_says_what_is_wrong_unless_there_are_overloads(call: str, reason: str) -> None:
    declarations = """
        __device__ void own(int);
        template <typename T> __device__ void own_template(T, T);
        __device__ void overloaded(int);
        __device__ void overloaded(float, float);
    """
    (error,) = diagnose_text(f"{declarations}__global__ void f(int *a) {{ {call}; }}")
    assert error.message == f"no matching function for call to '{call.partition('(')[0]}'{reason}"


def test_every_error_is_told_in_the_order_of_the_lines() -> None:
    errors = diagnose_text("__global__ void f(int *a) { a[0] = one; }\n\n__global__ void g(int *a) { a[0] = two; }\n")
    assert [error.line for error in errors] == [1, 3]


def test_a_warning_is_told_and_is_no_error() -> None:
    (warning,) = diagnose_text("__global__ void f(int *a) {\n    a[0] == 1;\n}\n")
    assert (warning.line, warning.severity) == (2, "warning")
    assert "unused" in warning.message


def test_what_the_simulator_does_not_support_comes_with_what_to_write_instead() -> None:
    (refusal,) = diagnose_text("__global__ void f(int *a) {\n    goto inside; {\n    inside:\n    a[0]++; }\n}\n")
    assert refusal.severity == "error"
    assert refusal.line == 2
    assert refusal.message.startswith("The simulator does not support")
    assert "Use a loop" in refusal.message


def test_a_toolkit_on_this_machine_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One that is as old as they come, which clang would find by its ptxas.
    for folder in ("bin", "include", "nvvm/libdevice"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin" / "ptxas").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert not diagnose_text('__global__ void f(int *a) { printf("%d", a[0]); }', LOCKSTEP_TEST="toolkit")


def test_macros_count() -> None:
    text = "__global__ void f(int *a) { a[0] = WIDTH; }"
    assert diagnose_text(text)
    assert not diagnose_text(text, WIDTH="4")


def test_host_code_is_left_alone_and_device_code_beside_it_is_not() -> None:
    text = """#include <vector>
std::vector<int> values;
int main() { return nobody_knows; }
__global__ void f(int *a) { a[0] = tix; }
"""
    (error,) = diagnose_text(text)
    assert error.line == 4


def test_an_error_in_a_header_is_shown_where_it_is_included(tmp_path: Path) -> None:
    (tmp_path / "helper.cuh").write_text("__device__ int three() { return thre; }\n")
    text = '// a comment\n#include "helper.cuh"\n__global__ void f(int *a) { a[0] = three(); }\n'
    errors = diagnose_text(text, tmp_path)
    assert [error.line for error in errors] == [2]
    assert "helper.cuh:1" in errors[0].message


@pytest.mark.parametrize(
    "text",
    ["", "\n", "}", "/* open", '"open', "__global__ void f(", "#include <no/such.h>", "#if 1\n", "\x00", "é" * 9],
)
def test_any_text_can_be_checked(text: str) -> None:
    last = text.count("\n") + 1
    for each in diagnose_text(text):
        assert 1 <= each.line <= last
        assert 1 <= each.column < each.end
