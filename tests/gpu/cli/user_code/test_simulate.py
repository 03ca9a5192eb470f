"""The command `simulate`: its exit codes, its report for people and for programs, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.paths import DOCS, ROOT
from gpu.cli import main as cli
from gpu.kernel.simulate import MAXIMUM_STEPS
from gpu.recording.trace import Trace
from gpu.simulator.counting.counters import METRICS
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW

REDUCE = """#include <cstdio>
#include "there_is_no_such_file.h"

template <typename T, int BLOCK>
__global__ void reduce(const T *in, T *out, int n) {
    __shared__ T tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : T(0);
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) tile[threadIdx.x] += tile[threadIdx.x + stride];
#ifndef RACY
        __syncthreads();
#endif
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = tile[0];
        printf("block %d: %g\\n", blockIdx.x, (double)tile[0]);
    }
}

int main() { reduce<float, 64><<<2, 64>>>(nullptr, nullptr, 128); }
"""


class FinishedCommand:
    """What the command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: Any) -> FinishedCommand:
        try:
            code = cli.main(["simulate", *map(str, arguments)], NO_WINDOW)
        except SystemExit as end:
            code = int(end.code or 0)
        return FinishedCommand(code, *capsys.readouterr())

    return run


@pytest.fixture
def reduce_cu(tmp_path: Path) -> Path:
    path = tmp_path / "reduce.cu"
    path.write_text(REDUCE)
    return path


@pytest.fixture
def kernel(tmp_path: Path):
    """Write a kernel file around the body of `f`, which has an int pointer `a`; its body is on line 2."""

    def write(body: str, parameters: str = "int *a") -> Path:
        path = tmp_path / "test.cu"
        path.write_text(f"__global__ void f({parameters}) {{\n    {body}\n}}\n")
        return path

    return write


SHAPE = ("--grid", "1", "--block", "32")
LAUNCH = (
    "reduce<float, 64>",
    "--grid",
    "2",
    "--block",
    "64",
    "--arg",
    "arange:128",
    "--arg",
    "zeros:2",
    "--arg",
    "128",
)


def check_refusal(done: FinishedCommand) -> str:
    """Return what stands on stderr when nothing was run."""
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    return done.err


# Exit codes and reports


def test_a_clean_kernel_ends_with_0(simulate, reduce_cu: Path):
    done = simulate(reduce_cu, *LAUNCH)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("No findings.\n")
    assert "block 0: 2016\nblock 1: 6112\n" in done.out
    assert all(len(line) <= 100 for line in done.out.splitlines())


def test_the_table_has_counters_beside_the_source(simulate, reduce_cu: Path):
    out = simulate(reduce_cu, *LAUNCH).out.splitlines()
    heads = next(line for line in out if line.split()[:1] == ["line"])
    assert heads.split() == ["line", "warp", "stmts", "lanes", "sect/req", "conflicts", "source"]
    [row] = [line for line in out if "tile[threadIdx.x] = i < n" in line]
    assert row.split()[:5] == ["8", "4", "32.0", "4.0", "0"]
    assert any(line.split() == ["12", "#ifndef", "RACY"] for line in out), "lines between have no counts"
    assert any("global memory" in line and "requests" in line for line in out)


def test_a_race_ends_with_1_and_shows_both_lines(simulate, reduce_cu: Path):
    done = simulate(reduce_cu, *LAUNCH, "-D", "RACY")
    assert (done.code, done.err) == (1, "")
    assert re.match(r"\d+ findings?\n\n1\. race", done.out)
    assert "reduce.cu:11:" in done.out
    assert re.search(r"thread \(\d+,0,0\) in block \(0,0,0\)\n {4} +if \(threadIdx.x < stride\)", done.out)
    assert re.search(r"^ +\^$", done.out, re.MULTILINE)
    assert all(len(line) <= 100 for line in done.out.splitlines())


@pytest.mark.parametrize(
    ("body", "kind", "thread"),
    [
        ("a[threadIdx.x + 1] = 0;", "out-of-bounds", 31),
        ("__shared__ int t[32]; a[threadIdx.x] = t[threadIdx.x];", "uninitialized", 0),
        ("if (threadIdx.x < 7) __syncthreads();", "barrier", 7),
        ("*(int2 *)(a + 1) = make_int2(1, 2);", "misaligned", 0),
        ("assert(threadIdx.x < 9);", "assertion", 9),
    ],
)
def test_mistakes_end_with_1_and_json_says_which(simulate, kernel, body: str, kind: str, thread: int):
    done = simulate(kernel(body), "f", *SHAPE, "--arg", "zeros:32", "--json")
    assert (done.code, done.err) == (1, "")
    finding = json.loads(done.out)["findings"][0]
    assert (finding["kind"], finding["lines"], finding["files"]) == (kind, [2], ["test.cu"])
    assert finding["threads"] == [f"thread ({thread},0,0) in block (0,0,0)"]
    assert finding["message"]
    text = simulate(kernel(body), "f", *SHAPE, "--arg", "zeros:32").out
    assert text.startswith("1 finding\n")
    assert f"1. {kind}" in text


@pytest.mark.parametrize(
    ("body", "kind", "lines"),
    [
        ("int *p = new int(1);\ndelete p;\na[0] = *p;", "use-after-free", [4, 3]),
        ("int *p = new int(1);\ndelete p;\ndelete p;", "double-free", [4, 3]),
        ("int *p;\n{ int x = 1; p = &x; }\na[0] = *p;", "use-after-scope", [4, 3]),
        ("if (threadIdx.x < 3)\n__syncwarp();", "warp-mask", [3]),
        ("free(a);", "invalid-free", [2]),
    ],
)
def test_what_has_two_lines_is_shown_with_both(simulate, kernel, body: str, kind: str, lines: list[int]):
    shape = ("--grid", "1", "--block", "8", "--arg", "zeros:32")
    done = simulate(kernel(body), "f", *shape, "--json")
    assert (done.code, done.err) == (1, "")
    (finding,) = [each for each in json.loads(done.out)["findings"] if each["kind"] != "race"]
    assert (finding["kind"], finding["lines"]) == (kind, lines)
    text = simulate(kernel(body), "f", *shape).out
    assert re.search(rf"\d\. {kind}", text)
    for line in lines:
        assert f"test.cu:{line}:" in text
        assert f"    {body.split(chr(10))[line - 2]}" in text


def test_a_loop_that_does_not_end_ends_with_1(simulate, kernel):
    done = simulate(
        kernel("while (a[threadIdx.x] != 7) a[threadIdx.x] ^= 1;"),
        "f",
        *SHAPE,
        "--arg",
        "zeros:32",
        "--max-steps",
        "500",
    )
    assert done.code == 1
    assert "1. unfinished: this loop did not end: thread (0,0,0) in block (0,0,0) is still in it after 500" in done.out
    assert "--max-steps" in done.out


def test_json_has_the_keys_that_stay(simulate, reduce_cu: Path):
    report = json.loads(simulate(reduce_cu, *LAUNCH, "--json").out)
    assert list(report) == ["findings", "warnings", "counters", "arrays", "printf"]
    assert report["findings"] == report["warnings"] == []
    assert report["printf"] == [
        {"thread": "thread (0,0,0) in block (0,0,0)", "text": "block 0: 2016\n"},
        {"thread": "thread (0,0,0) in block (1,0,0)", "text": "block 1: 6112\n"},
    ]
    assert list(report["counters"]) == ["total", "per_line"]
    assert set(report["counters"]["total"]) <= set(METRICS)
    for line in report["counters"]["per_line"]:
        assert list(line) == ["file", "line", "counts"]
        assert set(line["counts"]) <= set(METRICS)
    assert {line["line"] for line in report["counters"]["per_line"]} >= {8, 9, 10, 11, 17, 18}
    racy = json.loads(simulate(reduce_cu, *LAUNCH, "--json", "-D", "RACY").out)
    assert list(racy["findings"][0]) == ["kind", "message", "lines", "files", "threads", "count"]
    assert racy["findings"][0]["lines"] == [11, 11]
    assert len(racy["findings"][0]["threads"]) == 2


def test_what_is_only_suspicious_is_a_warning_and_no_failure(simulate, kernel):
    path = kernel("unsigned u = threadIdx.x;\nif (u >= 0) a[u] = 1;", "int *a, int n")
    launch = ("f", "--grid", "1", "--block", "8", "--arg", "empty:9", "--arg", "3")
    done = simulate(path, *launch, "--json")
    assert done.code == 0
    report = json.loads(done.out)
    assert report["findings"] == []
    assert {each["kind"] for each in report["warnings"]} == {"always-true", "never-written", "unused-parameter"}
    assert list(report["warnings"][0]) == ["kind", "message", "lines", "files", "threads", "count"]
    text = simulate(path, *launch).out
    assert text.startswith("No findings.\n\n3 warnings: suspicious, but not an error\n\n1. unused-parameter: Unused")


def test_dump_saves_arrays_as_they_are_after_the_launch(simulate, kernel, tmp_path: Path):
    path = kernel("a[threadIdx.x] += 1; b[threadIdx.x].y = n;", "int *a, int n, float2 *b")
    arguments = ("--arg", "arange:32", "--arg", "-3", "--arg", "zeros:32")
    dumps = ("--dump", f"0={tmp_path / 'a.npy'}", "--dump", f"2={tmp_path / 'b.npy'}")
    assert simulate(path, "f", *SHAPE, *arguments, *dumps).code == 0
    assert np.load(tmp_path / "a.npy").tolist() == list(range(1, 33))
    assert np.load(tmp_path / "b.npy").tolist() == [[0, -3]] * 32


def test_dump_saves_what_a_launch_that_failed_left(simulate, kernel, tmp_path: Path):
    path = kernel("a[threadIdx.x] = 5; a[threadIdx.x + 1] = 6;")
    done = simulate(path, "f", *SHAPE, "--arg", "zeros:32", "--dump", f"0={tmp_path / 'a.npy'}")
    assert done.code == 1
    # The last thread ends at its write past the end; the others go on.
    assert np.load(tmp_path / "a.npy").tolist() == [5] + [6] * 31


def test_defines_folders_extents_and_shared_bytes(simulate, tmp_path: Path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "one.cuh").write_text('#include "two.cuh"\n')
    (tmp_path / "two" / "two.cuh").write_text("__device__ int two() {\n    return TWO;\n}\n")
    path = tmp_path / "test.cu"
    path.write_text("""#include "one.cuh"
extern __shared__ int tile[];
__global__ void f(int *a, float x) {
    int i = threadIdx.x + blockDim.x * threadIdx.y;
    tile[i] = two() + ONE;
    a[i + 8 * (blockIdx.z + gridDim.z * blockIdx.y)] = tile[i] + int(x);
}
""")
    words = ("-I", tmp_path / "one", f"-I{tmp_path / 'two'}", "-DONE", "-D", "TWO=(1 + 1)", "--shared", 32)
    extents = ("--grid", "1,3,2", "--block", "4,2")
    dump = ("--dump", f"0={tmp_path / 'a.npy'}")
    done = simulate(path, "f", *extents, *words, "--arg", "zeros:48", "--arg", "-1e2", *dump)
    assert (done.code, done.err) == (0, "")
    assert np.load(tmp_path / "a.npy").tolist() == [-97] * 48
    assert "Counters of two.cuh" in done.out
    assert "return TWO;" in done.out


@needs.posix
def test_a_reader_that_has_gone_is_no_crash(reduce_cu: Path):
    command = [sys.executable, str(ROOT / "main.py"), "simulate", str(reduce_cu), *LAUNCH]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


# What cannot be run


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("int i = tix;", "    int i = tix;", "test.cu:2:13: use of undeclared identifier 'tix'"),
        ("a[0] = 1", "    a[0] = 1", "expected ';' after expression"),
        ('asm("nop;");', '    asm("nop;");', "does not support"),
    ],
)
def test_what_does_not_compile_is_said_once_with_a_caret(simulate, kernel, body: str, line: str, words: str):
    lines = check_refusal(simulate(kernel(body), "f", *SHAPE, "--arg", "zeros:32")).splitlines()
    assert words in lines[0]
    assert lines[0].startswith("lockstep: test.cu:2:")
    assert lines[0].count("test.cu:2:") == 1
    shown = next(number for number, text in enumerate(lines) if text.endswith(line))
    assert lines[shown + 1].strip() == "^"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("f", *SHAPE), "f takes 1 argument (int32 * a), not 0."),
        (("f", *SHAPE, "--arg", "5"), "is a pointer, which takes zeros:N"),
        (("f", *SHAPE, "--arg", "zeros:0"), "N to be at least 1"),
        (("g", *SHAPE, "--arg", "zeros:1"), "has no kernel 'g'; it has f."),
        (("f", "--grid", "1", "--block", "2000", "--arg", "zeros:1"), "a block of 2000 threads; at most 1024"),
        (("f", "--grid", "0", "--block", "1", "--arg", "zeros:1"), "argument --grid: '0' contains 0"),
        (("f", "--grid", "1,1,1,1", "--block", "1", "--arg", "zeros:1"), "is not X, X,Y or X,Y,Z"),
        (("f", "--block", "1", "--arg", "zeros:1"), "Give --grid: test.cu does not launch f."),
        (("f", *SHAPE, "--arg", "zeros:1", "--shared", "many"), "'many' is not a whole number"),
        (("f", *SHAPE, "--arg", "zeros:1", "--shared", "99999"), "bytes of shared memory"),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-steps", "0"), "The limit of steps must be at least 1, not 0."),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-seconds", "0"), "'0' is not a time in seconds"),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-seconds", "nan"), "'nan' is not a time"),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-seconds", "long"), "'long' is not a time"),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-memory", "0"), "'0' is not a size in MB"),
        (("f", *SHAPE, "--arg", "zeros:1", "--max-memory", "1e9"), "'1e9' is not a whole number"),
        (("f", *SHAPE, "--arg", "zeros:1", "-D", "1X=2"), "'1X' is not a valid macro name"),
        (("f", *SHAPE, "--arg", "zeros:1", "-I", "no/such"), "There is no include folder"),
        (("f", *SHAPE, "--arg", "zeros:1", "--dump", "0"), "is not I=FILE.npy"),
        (("f", *SHAPE, "--arg", "zeros:1", "--dump", "1=a.npy"), "there are only 1 arguments, numbered from 0"),
        (("f", *SHAPE, "--arg", "zeros:1", "--dump", "0=a.txt"), "must end in .npy"),
        (("f", *SHAPE, "--arg", "zeros:1", "--dump", "0=no/such/a.npy"), "there is no folder"),
        (("f", *SHAPE, "--arg", "null", "--dump", "0=a.npy"), "is 'null', not an array"),
    ],
)
def test_bad_options_are_refused_in_one_line(simulate, kernel, arguments: tuple[str, ...], words: str):
    err = check_refusal(simulate(kernel("a[0] = 1;"), *arguments))
    assert words in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_is_refused(simulate):
    assert "There is no file no/such.cu." in check_refusal(simulate("no/such.cu", "f", *SHAPE))


def test_a_template_without_arguments_and_with_bad_ones(simulate, reduce_cu: Path):
    assert "name an instantiation, such as reduce<float>" in check_refusal(simulate(reduce_cu, "reduce", *LAUNCH[1:]))
    assert check_refusal(simulate(reduce_cu, "reduce<nothing, 64>", *LAUNCH[1:]))


def test_help_lists_the_specifications(simulate):
    done = simulate("--help")
    assert done.code == 0
    for word in (
        "zeros:N",
        "full:N:V",
        "arange:N",
        "random:N[:SEED]",
        "file:PATH.npy",
        "--dump",
        "-I DIR",
        f"(default: {MAXIMUM_STEPS})",
    ):
        assert word in done.out


# Schedules and traces


def test_a_schedule_decides_what_a_race_gives(simulate, reduce_cu: Path, tmp_path: Path):
    out, answers = tmp_path / "out.npy", set()
    options = ["--arg", "arange:256", "--arg", "zeros:1", "--arg", 256, "--dump", f"1={out}"]
    for schedule in ("round-robin", *(f"shuffle:{seed}" for seed in range(8)), "lanes:1", "cached:0"):
        words = [reduce_cu, "reduce<int, 256>", "--grid", 1, "--block", 256, *options, "--schedule", schedule]
        assert simulate(*words).code == 0
        assert np.load(out)[0] == 255 * 128
        assert simulate(*words, "-D", "RACY").code == 1
        answers.add(int(np.load(out)[0]))
    assert len(answers) > 1


def test_a_trace_is_saved(simulate, reduce_cu: Path, tmp_path: Path):
    target = tmp_path / "reduce.trace"
    words = [reduce_cu, "reduce<float, 64>", "--grid", 2, "--block", 64, "--schedule", "shuffle:5", "--trace", target]
    words += ["--arg", "arange:128", "--arg", "zeros:2", "--arg", 128]
    done = simulate(*words)
    assert (done.code, done.err) == (0, "")
    trace = Trace.load(target)
    assert (trace.kernel, trace.schedule, trace.grid, trace.failure) == (
        "reduce<float, 64>",
        "shuffle:5",
        (2, 1, 1),
        "",
    )
    assert trace.array("out", len(trace.events)).tolist() == [63 * 32, 63 * 32 + 64 * 64]
    assert done.out.rstrip().endswith(f"Recorded {len(trace.events):,} events in {target}.")
    told = json.loads(simulate(*words, "--json").out)["trace"]
    assert told == {"file": str(target), "events": len(trace.events), "stopped": ""}


def test_a_trace_of_a_fault_is_saved_too(simulate, kernel, tmp_path: Path):
    target = tmp_path / "fault.trace"
    done = simulate(
        kernel("a[threadIdx.x] = 1;"), "f", "--grid", 1, "--block", 32, "--arg", "zeros:8", "--trace", target
    )
    assert done.code == 1
    assert [found.finding.kind for found in Trace.load(target).findings] == ["out-of-bounds"]


def test_without_a_trace_nothing_tells_of_one(simulate, kernel):
    words = [kernel("a[threadIdx.x] = 1;"), "f", "--grid", 1, "--block", 32, "--arg", "zeros:32"]
    assert "trace" not in json.loads(simulate(*words, "--json").out)
    assert "Recorded" not in simulate(*words).out


@pytest.mark.parametrize("given", ["shuffle", "shuffle:x", "lockstep", ""])
def test_what_is_no_schedule(simulate, kernel, given: str):
    done = simulate(kernel("a[0] = 1;"), "f", "--grid", 1, "--block", 1, "--arg", "zeros:1", "--schedule", given)
    assert (done.code, done.out) == (2, "")
    assert (
        f"{given!r} is not a schedule: use round-robin, shuffle:SEED, lanes:SEED, preempt:SEED or cached:SEED"
        in done.err
    )
    assert len(done.err.strip().splitlines()) == 1


def test_a_trace_that_cannot_be_written(simulate, kernel, tmp_path: Path):
    words = [kernel("a[0] = 1;"), "f", "--grid", 1, "--block", 1, "--arg", "zeros:1", "--trace"]
    for target, reason in (
        (tmp_path / "no" / "file", f"there is no folder {tmp_path / 'no'}."),
        (tmp_path, "it is a folder."),
    ):
        done = simulate(*words, target)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"lockstep: Cannot write {target}: {reason}\n"
    full = Path("/dev/full")
    if full.exists():
        done = simulate(*words, full)
        assert (done.code, done.out) == (2, "")
        assert f"Cannot write {full}: it is a device." in done.err


# The example of README, and of the pages in docs that repeat it


_EXAMPLE = re.compile(r"python main\.py simulate (kernels/histogram\.cu .*?)\n\n", re.DOTALL)
_PAGES = [page for page in DOCS.glob("*.md") if _EXAMPLE.search(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", [ROOT / "README.md", *_PAGES], ids=lambda page: page.name)
def test_the_example_of_a_page_finds_the_race(simulate, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    [example] = _EXAMPLE.findall(page.read_text("utf-8"))
    words = shlex.split(example.replace("\\\n", " "))
    words[0] = str(ROOT / words[0])
    monkeypatch.chdir(tmp_path)
    done = simulate(*words)
    assert (done.code, done.err) == (1, "")
    assert "1. race" in done.out
    assert "bins[blockIdx.y * bin_count" in done.out
    assert np.load("bins.npy").sum() < 4096, "updates were lost"
