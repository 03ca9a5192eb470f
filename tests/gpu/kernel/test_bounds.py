"""Kernels without end, and texts that are more than can be taken: each is a finding, or refused in a sentence."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpu.base import nesting, resource_limits
from gpu.base.errors import CompileError, InputError, LaunchError
from gpu.kernel.simulate import Simulation, simulate
from gpu.recording.recording import Recording
from gpu.simulator.executor.state import time_limit
from gpu.simulator.executor.state.printf import PrintBuffer, format_c
from gpu.simulator.frontend.editor_diagnostics import diagnose
from gpu.stepping.explanation.sentences import explain
from tests import needs

FIB = "__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }"


def run(body: str, before: str = "", *, grid: int = 1, **options) -> Simulation:
    text = f"{before}\n__global__ void f(int *a) {{\n{body}\n}}\n"
    return simulate("test.cu", "f", grid, 32, ["zeros:64"], source=text, **options)


# Time


@pytest.mark.parametrize(
    ("body", "before", "words"),
    [
        ("for (int k = 0; k != -1; k += 2) for (int i = 0; i < 9; i++) a[0] += i;", "", "this loop did not end"),
        ("while (a[0] == 0) { while (a[0] == 0) { a[1] += 1; } }", "", "this loop did not end"),
        ("a[0] = fib(40);", FIB, "fib is still called after 0.2 seconds: its calls did not end."),
    ],
    ids=["loops", "loops that look", "calls"],
)
@pytest.mark.parametrize("options", [{}, {"schedule": "shuffle:1"}, {"traced": True}], ids=["", "shuffled", "traced"])
def test_what_computes_too_long_exceeds_the_limit(body: str, before: str, words: str, options):
    finding = run(body, before, max_seconds=0.2, max_steps=10**9, **options).findings[0]
    assert finding.kind == "unfinished"
    assert words in finding.message
    advice = "If the loop does end, allow more seconds: --max-seconds, or max_seconds in Python."
    assert finding.message.endswith(advice)


def test_a_launch_whose_blocks_would_take_too_long_is_refused():
    with pytest.raises(
        LaunchError, match=r"f: its 1000000000 blocks would take [\d,]+ (minutes|hours|days)"
    ) as refusal:
        run("for (int i = 0; i < 10; i++) a[threadIdx.x] = i;", grid=10**9, max_seconds=1)
    assert "Launch fewer blocks" in refusal.value.advice


class SlowMachine:
    """A machine that gives this process a twentieth of a core, by its clock."""

    process_time = staticmethod(time.process_time)

    @staticmethod
    def monotonic() -> float:
        return 20 * time.process_time()


@pytest.mark.parametrize(
    ("body", "before", "words"),
    [
        ("while (a[0] >= 0) a[0] = 1;", "", "is still in it after "),
        ("a[0] = fib(40);", FIB, "fib is still called after "),
    ],
)
def test_somebody_waits_no_longer_where_the_machine_is_busy(body: str, before: str, words: str, monkeypatch):
    monkeypatch.setattr(time_limit, "time", SlowMachine)
    begun = time.process_time()
    message = run(body, before, max_seconds=1.5, max_steps=10**9).findings[0].message
    assert time.process_time() - begun < 1.4
    assert re.search(
        rf"{words}[89] seconds of wall-clock time \(0\.\d of processor time, as this machine is busy\)", message
    )
    assert message.endswith("allow more seconds: --max-seconds, or max_seconds in Python.")


def test_a_launch_that_would_take_too_long_is_refused_soon_where_the_machine_is_busy(monkeypatch):
    monkeypatch.setattr(time_limit, "time", SlowMachine)
    begun = time.process_time()
    with pytest.raises(LaunchError, match="its 1000000000 blocks would take"):
        run("for (int i = 0; i < 10; i++) a[threadIdx.x] = i;", grid=10**9, max_seconds=2)
    assert time.process_time() - begun < 1.9


def test_a_wait_alone_ends_nothing(monkeypatch):
    clock = SimpleNamespace(process_time=lambda: 0.3, monotonic=lambda: 0.0)
    monkeypatch.setattr(time_limit, "time", clock)
    limit = time_limit.TimeLimit(2.0)
    clock.monotonic = lambda: 7.8
    assert not limit.is_exceeded
    clock.monotonic, clock.process_time = lambda: 7.9, lambda: 0.3 + 0.41
    assert not limit.is_exceeded, "there is time yet"
    clock.monotonic, clock.process_time = lambda: 1000.0, lambda: 0.3 + 0.39
    assert not limit.is_exceeded, "it has hardly computed"
    clock.monotonic, clock.process_time = lambda: 1000.1, lambda: 0.3 + 0.41
    assert limit.is_exceeded


def test_what_is_computed_ends_without_a_wait(monkeypatch):
    clock = SimpleNamespace(process_time=lambda: 0.3, monotonic=lambda: 0.0)
    monkeypatch.setattr(time_limit, "time", clock)
    limit = time_limit.TimeLimit(2.0)
    clock.monotonic, clock.process_time = lambda: 7.9, lambda: 0.3 + 2.01
    assert limit.is_exceeded
    assert limit.elapsed_text == "2 seconds"


def test_the_processor_time_is_read_once_a_millisecond(monkeypatch):
    clock = SimpleNamespace(process_time=lambda: 0.0, monotonic=lambda: 0.0)
    monkeypatch.setattr(time_limit, "time", clock)
    limit = time_limit.TimeLimit(2.0)
    clock.process_time = lambda: 2.01
    assert limit.is_exceeded
    limit.begin_batch()
    assert not limit.is_exceeded
    clock.process_time = lambda: pytest.fail("read again")
    clock.monotonic = lambda: 0.0009
    assert not limit.is_exceeded
    clock.monotonic, clock.process_time = lambda: 0.0011, lambda: 4.03
    assert limit.is_exceeded


def test_what_starting_took_is_taken_off_the_first_wait(monkeypatch):
    assert resource_limits.compute_first_wall_limit(5) == resource_limits.compute_wall_limit(5) == 8
    assert resource_limits.compute_wall_limit(100) == 160
    monkeypatch.setattr(resource_limits, "_supervised_since", time.monotonic() - 2)
    assert 5 < resource_limits.compute_first_wall_limit(5) <= 6
    monkeypatch.setattr(resource_limits, "_supervised_since", time.monotonic() - 60)
    assert resource_limits.compute_first_wall_limit(5) == 3, "but something is left"
    monkeypatch.setattr(time_limit, "time", SlowMachine)
    message = run("while (true) a[0] += 1;", max_seconds=0.5, max_steps=10**9).findings[0].message
    assert re.search(r"after [34] seconds of wall-clock time", message)


def test_blocks_that_end_have_each_their_own_time():
    assert not run("if (threadIdx.x == 0 && blockIdx.x == 0) a[0] = 1;", grid=30_000, max_seconds=0.3).findings


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_at_all_is_refused(seconds: float):
    with pytest.raises(InputError, match="The time limit must be more than 0 seconds"):
        run("", max_seconds=seconds)


# Printing


def test_a_flood_of_printf_is_cut_where_cuda_cuts_it():
    loop = 'for (int i = 0; i < 4000; i++) printf("%s\\n", "0123456789012345678901234567890");'
    printed = run(loop, "#include <cstdio>").printed
    assert sum(len(each.text) for each in printed) < PrintBuffer.BYTES + 100
    lost = 4000 * 32 - (len(printed) - 1)
    assert (
        printed[-1].text
        == f"[{lost:,} more calls of printf did not fit into the buffer of 1 MB, the default size in CUDA.]\n"
    )
    assert printed[-1].thread == ""


def test_empty_texts_fill_the_buffer_too():
    assert (
        len(run('for (int i = 0; i < 5000; i++) printf("");', "#include <cstdio>").printed)
        == PrintBuffer.BYTES // 8 + 1
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [("%999999999d", [1]), ("%.999999999f", [1.5]), ("%*d", [999999999, 1]), ("%*d", [-999999999, 1]),
     ("%.*f", [999999999, 1.5]), ("%99999999999999999999s", ["x"])],
)  # fmt: skip
def test_width_and_precision_are_bounded(text: str, values: list):
    assert 1000 < len(format_c(text, values)) < 2000


@pytest.mark.parametrize(
    ("text", "values", "printed"),
    [
        ("%.*f|", [-3, 1.5], "1.500000|"),
        ("%.f|%.0f", [1.25, 1.25], "1|1"),
        ("%d|%x", [float("nan"), float("inf")], "-2147483648|80000000"),
    ],
)
def test_odd_formats_print_as_c_does(text: str, values: list, printed: str):
    assert format_c(text, values) == printed


def test_a_pointer_is_printed_as_any_kind_of_number():
    assert run('if (threadIdx.x == 0) printf("%d %f %c %x|", a, a, a, a);', "#include <cstdio>").printed


# Nesting

NESTED = {
    "terms": ("a[0] = {};", "a[1] + ", "a[2]", 1, nesting.MAX_EXPRESSION_DEPTH - 10),
    "choices": ("a[0] = {};", "a[0] == 3 ? 4 : ", "5", 1, nesting.MAX_EXPRESSION_DEPTH - 10),
    "signs": ("a[0] = {};", "- ", "a[1]", 1, nesting.MAX_EXPRESSION_DEPTH // 2),
    "calls": ("a[0] = {};", "g(", "1" + ")" * 120, 120, 120),
    "else-ifs": ("{}", "if (a[0] == 3) a[1] = 4;\nelse ", ";", 1, nesting.MAX_STATEMENT_DEPTH - 10),
    "loops": ("{}", "for (int i = 0; i < 1; i++)\n", "a[0] = 1;", 1, nesting.MAX_STATEMENT_DEPTH - 10),
}
CALLED = "__device__ int g(int x) { return x + 1; }"


def nested(name: str, levels: int) -> str:
    around, piece, last, *_ = NESTED[name]
    return around.format(piece * levels + last)


@pytest.mark.parametrize("name", NESTED)
def test_what_is_nested_as_deep_as_it_may_be_runs_and_can_be_looked_at(name: str, tmp_path: Path):
    trace = run(nested(name, NESTED[name][-1]), CALLED, traced=True).trace
    assert trace is not None
    Recording.from_trace(trace, {"test.cu": ""}).save(tmp_path / "deep.lockstep")
    recording = Recording.load(tmp_path / "deep.lockstep")
    for moment in range(min(recording.event_count, 5)):
        assert explain(recording, moment, 0, 0).text


@pytest.mark.parametrize(
    ("name", "times"),
    [
        # Clang takes quadratic time for nested scopes with variables: 0.7 s for 1,020 loops, 13 s for 3,000.
        pytest.param(name, times, marks=[pytest.mark.sweep] * (name == "loops" and times == 3))
        for name in sorted(set(NESTED) - {"calls"})
        for times in (1.02, 3)
    ],
)
def test_what_is_nested_deeper_is_refused_with_its_line(name: str, times: float):
    with pytest.raises(
        CompileError, match=r"this (expression|statement) of f is nested more than \d+ levels"
    ) as refusal:
        run(nested(name, int(times * nesting.MAX_STATEMENT_DEPTH)))
    assert refusal.value.position is not None
    assert refusal.value.position.line >= 3
    assert refusal.value.advice == "Divide it into several."


def test_calls_within_nested_expressions_are_refused_where_they_nest_too_deep():
    deep = " + ".join(["1"] * (nesting.MAX_EXPRESSION_DEPTH - 20))
    with pytest.raises(
        LaunchError, match="recursive calls within deeply nested expressions exceed the simulator's stack"
    ):
        run("a[0] = g(60);", f"__device__ int g(int n) {{ return n == 0 ? 0 : g(n - 1) + {deep}; }}")


# Errors


def test_a_screenful_of_errors_is_shown_and_how_many_more_there_are():
    with pytest.raises(CompileError) as refusal:
        run("b[0] = 1; " * 1000)
    lines = refusal.value.detail.splitlines()
    assert len(lines) == 3 * 20 + 1
    assert lines[-1] == "and 980 more."
    assert max(map(len, lines)) < 200
    assert lines[1].index("b") <= lines[2].index("^")


def test_the_caret_stays_below_what_is_wrong_far_right_in_a_long_line():
    with pytest.raises(CompileError) as refusal:
        run("a[0] = 1; " * 100 + "nothing = 1;")
    _, line, caret = refusal.value.detail.splitlines()
    assert line[caret.index("^") :].startswith("nothing = 1;")


def test_what_an_error_quotes_is_cut_short():
    with pytest.raises(CompileError) as refusal:
        run("", f"#error {'y' * 100_000}\n")
    assert len(refusal.value.message) < 600
    assert refusal.value.message.endswith("yyy…")
    assert all(len(line) < 600 for line in refusal.value.detail.splitlines())


def test_an_editor_is_told_of_a_hundred_and_how_many_more_there_are():
    found = diagnose(f"__global__ void f(int *a) {{ {'b[0] = 1; ' * 1000} }}", Path("test.cu"), {})
    assert len(found) == 100
    assert found[-1].message.endswith("(and 900 more errors and warnings)")


# Includes


@needs.posix
@pytest.mark.parametrize("through", ["", "middle.h"])
def test_an_include_that_is_no_file_is_refused_before_it_is_opened(tmp_path: Path, through: str):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large.h").touch()
    os.truncate(tmp_path / "large.h", 1 << 30)
    for name, words in {"pipe": "a pipe", "/dev/zero": "a device", "large.h": "too large"}.items():
        include = f'\n#include "{name}"\n'
        (tmp_path / "middle.h").write_text(include)
        text = f'\n#include "{through}"\n' if through else include
        with pytest.raises(CompileError, match=words) as refusal:
            simulate(tmp_path / "test.cu", "f", 1, 1, source=text + "__global__ void f() {}")
        place = refusal.value.position
        assert place is not None
        assert (place.file, place.line) == (through or "test.cu", 2)
        [said] = diagnose(text, tmp_path / "test.cu", {})
        assert words in said.message


def test_a_folder_is_no_include(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    text = '#include "folder"\n__global__ void f() {}'
    assert not simulate(tmp_path / "test.cu", "f", 1, 1, source=text).findings


def test_a_name_that_is_too_long_is_refused(tmp_path: Path):
    with pytest.raises(CompileError, match="cannot open file"):
        simulate(tmp_path / "test.cu", "f", 1, 1, source=f'#include "{"x" * 5000}"\n__global__ void f() {{}}')
