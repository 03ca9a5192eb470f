"""Phases: what a kernel's comments name, by statements whose phase is said in the test itself."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from gpu.base.paths import KERNELS
from gpu.recording.recording import Recording
from gpu.stepping.phase_comments import find_phase_marks
from gpu.stepping.phases import Phases, find_phases
from tests.gpu.stepping.recordings import record, record_launch, to_three_dimensions

PASSES = """
__device__ int twice(int v) {
    int before = v;
    // phase: helper
    return before * 2;
}
extern "C" __global__ void k(int *d) {
    __shared__ int s[64];
    int t = threadIdx.x;
    // phase: load
    s[t] = d[t];
    for (int bit = 0; bit < 3; ++bit) {
        __syncthreads();
        // phase: pass over bit {bit}
        int v = s[t ^ 1 << bit];
        __syncthreads();
        s[t] += v;
    }
    // phase: store
    __syncthreads();
    d[t] = twice(s[t]);
}
"""
NAMES = ["", "load", "pass over bit 0", "pass over bit 1", "pass over bit 2", "store", "helper"]


def record_phases(source: str, size: int = 64, **options: object) -> tuple[Recording, Phases]:
    recording = record_launch(source, [np.arange(size, dtype=np.int32)], block=size, **options)
    return recording, find_phases(recording)


def phase_names(phases: Phases) -> list[str]:
    return [stretch.name for stretch in phases.intervals]


def test_a_phase_lasts_until_the_next_comment_also_in_loops_and_calls():
    recording, phases = record_phases(PASSES)
    assert phase_names(phases) == NAMES
    positions, kinds = recording.statements
    at_line = {}
    for moment in range(recording.event_count):
        at_line.setdefault((positions[moment].line, kinds[moment]), []).append(phases.phase_at(moment + 1))
    # The barrier before the comment, and the head of the loop, stay in what was there before.
    assert at_line[13, "barrier"] == ["load", "pass over bit 0", "pass over bit 1"]
    assert at_line[15, "declare"] == ["pass over bit 0", "pass over bit 1", "pass over bit 2"]
    assert at_line[12, "advance"] == ["pass over bit 0", "pass over bit 1", "pass over bit 2"]
    assert at_line[3, "declare"] == ["store"]
    assert at_line[5, "return"] == ["helper"]


def test_stretches_follow_each_other_without_gaps():
    recording, phases = record_phases(PASSES)
    assert [phases.intervals[0].first, phases.intervals[-1].last] == [0, recording.event_count]
    assert all(one.last == other.first for one, other in pairwise(phases.intervals))
    assert phases.starts == tuple(stretch.first for stretch in phases.intervals[1:])
    for stretch in phases.intervals:
        assert {phases.phase_at(moment) for moment in range(stretch.first + 1, stretch.last + 1)} == {stretch.name}
    assert phases.phase_at(0) == ""


@pytest.mark.parametrize("schedule", ["shuffle:3", "lanes:3"])
def test_where_threads_take_turns_the_first_one_says_where_a_phase_begins(schedule):
    recording, phases = record_phases(PASSES, schedule=schedule)
    assert phase_names(phases) == [*NAMES[:-1], "helper"]
    positions, _ = recording.statements
    for moment in range(recording.event_count):
        if positions[moment].line in (15, 16, 17):
            assert phases.phase_at(moment + 1).startswith("pass over bit ")
        if positions[moment].line == 11:
            assert phases.phase_at(moment + 1) == "load"


def test_a_saved_recording_has_its_phases(tmp_path):
    recording, phases = record_phases(PASSES)
    recording.save(tmp_path / "kept.lockstep")
    again = find_phases(Recording.load(tmp_path / "kept.lockstep"))
    assert (again.names, again.intervals) == (phases.names, phases.intervals)
    assert (again.event_phases == phases.event_phases).all()


def test_values_that_threads_do_not_share_are_told_together():
    source = """
    extern "C" __global__ void k(int *d) {
        int warp = threadIdx.x / 32;
        int lane = threadIdx.x;
        // phase: warp {warp}
        d[lane] += warp;
        // phase: lane {lane} of {nothing}
        d[lane] += 2;
    }
    """
    assert phase_names(record_phases(source)[1]) == ["", "warp 0, 1", "lane 0 to 63 of {nothing}"]


def test_a_variable_that_is_declared_in_the_phase_names_all_of_it():
    source = """
    extern "C" __global__ void k(int *d) {
        // phase: from {first} on
        int first = 4;
        d[threadIdx.x] += first;
    }
    """
    assert phase_names(record_phases(source)[1]) == ["from 4 on"]


def test_a_comment_before_a_loop_follows_the_loops_variable():
    source = """
    extern "C" __global__ void k(int *d) {
        // phase: distance {distance}
        for (int distance = 1; distance < 8; distance *= 2) d[threadIdx.x] += distance;
        // phase: done
        d[threadIdx.x] += 1;
    }
    """
    assert [name for name in phase_names(record_phases(source)[1]) if "{" not in name][:3] == [
        "distance 1",
        "distance 2",
        "distance 4",
    ]


def test_launches_have_their_own():
    source = """
    extern "C" __global__ void first(int *d) {
        // phase: one
        d[threadIdx.x] += 1;
    }
    extern "C" __global__ void second(int *d) { d[threadIdx.x] += 1; }
    """

    def program(engine, module):
        data = engine.upload(np.zeros(32, np.int32))
        for name in ("first", "second", "first"):
            engine.launch(module.kernel(name), to_three_dimensions(1), to_three_dimensions(32), data)

    phases = find_phases(record(source, program))
    assert [(stretch.name, stretch.launch) for stretch in phases.intervals] == [("one", 0), ("", 1), ("one", 2)]


def test_without_comments_there_are_none():
    _, phases = record_phases('extern "C" __global__ void k(int *d) { d[threadIdx.x] += 1; }')
    assert (phases.names, phases.intervals, phases.starts) == (("",), (), ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("void f() { // phase: a\n }", ["a"]),
        ("void f() {\n/* phase:  b c  */ }", ["b c"]),
        ("template <int N> struct S { void f() const { // phase: inner\n } };", ["inner"]),
        ('namespace n { extern "C" { void f(int (*g)(int)) { { // phase: deep\n } } } }', ["deep"]),
        ("// phase: outside\nvoid f() {}\n// phase: outside", []),
        ("void f() { // the phase: not first\n }", []),
        ("void f() { // phase:\n }", []),
        ('void f() { const char *s = "// phase: text"; char c = \'"\'; // phase: after\n }', ["after"]),
        ('void f() { const char *s = R"x(// phase: raw }\n)x"; // phase: after\n }', ["after"]),
        ("#define OPEN {\nvoid f() { int n = 1'000; // phase: digits\n }", ["digits"]),
        ("int a[] = { // phase: values\n 1 };", []),
        ("void f() { // phase: not closed", []),
    ],
)
def test_comments_in_functions_name_phases(text, names):
    assert [mark.name for mark in find_phase_marks(text)] == names


def test_a_mark_ends_with_its_function():
    first, second = find_phase_marks("void f() {\n  // phase: a\n  g();\n}\nvoid g() {\n  // phase: b\n}\n")
    assert (first.start, first.end) == ((2, 3), (4, 1))
    assert (second.start, second.end) == ((6, 3), (7, 1))


def test_every_phase_of_our_kernels_names_variables_that_are_declared_before_it():
    for path in sorted(KERNELS.glob("*.cu")):
        lines = path.read_text(encoding="utf-8").split("\n")
        for mark in find_phase_marks("\n".join(lines)):
            start = max(
                number
                for number in range(mark.start[0])
                if lines[number].startswith(("extern", "__device__", "template"))
            )
            for name in mark.variables:
                declared = any(re.search(rf"\bint {name}\b", line) for line in lines[start : mark.start[0]])
                assert declared, f"{path.name}:{mark.start[0]}: there is no {name}"


HEADERS = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(float *d) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    for (int first = 0; first < 2; ++first) {
        // phase: fill from {first}
        wmma::fill_fragment(sum, 1.0f * first);
        wmma::store_matrix_sync(d, sum, 16, wmma::mem_row_major);
    }
}
"""


def test_what_a_header_does_goes_with_who_called_it():
    recording = record_launch(HEADERS, [np.zeros(256, np.float32)])
    assert phase_names(find_phases(recording)) == ["", "fill from 0", "fill from 1"]
