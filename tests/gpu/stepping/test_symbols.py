"""Symbols of values, beside what the values themselves say: a sum of the elements that a symbol names is the value."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest

from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.symbols import Symbol, Symbols
from tests.gpu.stepping.recordings import record_launch

SCAN = """
extern "C" __global__ void k(int *data, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = data[t];
    for (int d = 1; d < n; d *= 2) {
        __syncthreads();
        int left = t >= d ? s[t - d] : 0;
        __syncthreads();
        if (t >= d) s[t] = OPERATION(left, s[t]);
    }
    data[t] = s[t];
}
"""
OPERATIONS = {"Σ": ("((a) + (b))", sum), "max": ("max(a, b)", max), "min": ("min(a, b)", min)}


def symbols_of(recording: Recording) -> tuple[Dataflow, list[list[str]]]:
    dataflow = Dataflow(recording)
    found = Symbols(dataflow).compute_all()
    return dataflow, [[each.format_text() for each in found.find_row_symbols(row.number)] for row in dataflow.rows]


def parse_elements(text: str) -> list[int]:
    """Return the elements that a text names: x3, x2+x3, Σ x[0..7], Σ x[0..6:2], ƒ x[1,3]."""
    if "[" not in text:
        return [int(each) for each in re.findall(r"x(\d+)", text)]
    found: list[int] = []
    for part in re.search(r"\[(.*)\]", text)[1].split(","):
        first, _, rest = part.partition("..")
        last, _, step = rest.partition(":")
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return found


@pytest.mark.parametrize("operator", list(OPERATIONS))
def test_each_value_is_what_its_symbol_says(operator):
    written, reference = OPERATIONS[operator]
    data = np.random.default_rng(3).permutation(100)[:16].astype(np.int32)
    source = f"#define OPERATION(a, b) {written}\n{SCAN}"
    dataflow, texts = symbols_of(record_launch(source, [data, np.int32(16)], block=16))
    some = 0
    for row, symbols in zip(dataflow.rows, texts, strict=True):
        for value, symbol in zip(row.value.tolist(), symbols, strict=True):
            assert reference(int(data[each]) for each in parse_elements(symbol)) == value, (row.label, symbol)
            some += symbol.startswith(operator)
    assert some > 30
    last = [symbols for row, symbols in zip(dataflow.rows, texts, strict=True) if row.computed.any()][-1]
    assert last[:4] == (["x0", "x0+x1", "Σ x[0..2]", "Σ x[0..3]"] if operator == "Σ" else
                        ["x0", f"{operator} x[0..1]", f"{operator} x[0..2]", f"{operator} x[0..3]"])  # fmt: skip


def test_keys_that_are_exchanged_say_where_they_were():
    source = """
    extern "C" __global__ void k(int *keys) {
        int i = 2 * threadIdx.x;
        int low = keys[i] < keys[i + 1] ? keys[i] : keys[i + 1];
        int high = keys[i] < keys[i + 1] ? keys[i + 1] : keys[i];
        keys[i] = low;
        keys[i + 1] = high;
    }
    """
    keys = np.array([5, 3, 1, 2], np.int32)
    dataflow, texts = symbols_of(record_launch(source, [keys], block=2))
    final: dict[int, str] = {}
    for row, symbols in zip(dataflow.rows, texts, strict=True):
        if row.storage.name == "keys":
            final |= dict(zip(row.cells.tolist(), symbols, strict=True))
    assert [final[place] for place in range(4)] == ["x1", "x0", "x2", "x3"]


def test_what_began_at_nothing_or_counts_twice_or_is_something_else():
    source = """
    extern "C" __global__ void k(int *data, int *total, int *out) {
        int t = threadIdx.x;
        int sum = 0;
        for (int i = t; i < 16; i += 4) sum += data[i];
        out[t] = sum;
        out[t + 4] = data[t] + data[t];
        out[t + 8] = data[t] + 7;
        out[t + 12] = data[t] * data[t + 4];
        atomicAdd(total, data[t]);
    }
    """
    data = np.arange(2, 18, dtype=np.int32)
    arrays = [data, np.zeros(1, np.int32), np.zeros(16, np.int32)]
    dataflow, texts = symbols_of(record_launch(source, arrays, block=4))
    final: dict[tuple[str, int], str] = {}
    for row, symbols in zip(dataflow.rows, texts, strict=True):
        final |= {(row.storage.name, cell): symbol for cell, symbol in zip(row.cells.tolist(), symbols, strict=True)}
    assert final["out", 1] == "Σ x[1..13:4]"
    assert final["out", 5] == "ƒ x[1]"
    assert final["out", 9] == "ƒ x[1]"
    assert final["out", 13] == "Π x[1,5]"
    assert final["total", 0] == "Σ x[0..3]"


@pytest.mark.parametrize(
    ("bits", "room", "text"),
    [
        (0b1, 9, "Σ x[0]"), (0b11, 9, "x0+x1"), (0b11, 4, "0..1"), (0b1111, 9, "Σ x[0..3]"), (0b1111, 7, "Σx0..3"),
        (0b1111, 4, "0..3"), (0b1111, 3, ""), (0b10101, 12, "Σ x[0..4:2]"), (0b11011, 12, "Σ x[0..1,3..4]"),
        (0b11011, 99, "Σ x[0..1,3..4]"), (0b101101011, 99, "Σ x[6 of 0..8]"),
    ],
)  # fmt: skip
def test_a_symbol_is_written_as_fully_as_there_is_room(bits, room, text):
    if (bits, room) == (0b11011, 12):
        text = "Σx0..1,3..4"
    assert Symbol("Σ", (("x", bits),)).format_text(room) == text


def test_single_elements_and_several_arrays():
    assert Symbol("", (("x", 1 << 5),)).format_text() == "x5"
    assert Symbol("Π", (("a", 1 << 2), ("b", 1 << 3))).format_text() == "Π a[2], b[3]"
    assert Symbol("ƒ", ()).format_text() == "·"
    assert prod(parse_elements("Π x[1,5]")) == 5


def test_lanes_that_run_independently_may_read_what_a_later_row_shows():
    pattern = find_pattern("reduction")
    params = pattern.check({"input": "ramp", "n": 64, "block": "64"})
    recording = record_pattern(
        Workload(pattern, pattern.variant("volatile"), {}, params), lambda _: None, schedule="lanes:1"
    )
    dataflow, texts = symbols_of(recording)
    assert [len(row) for row in texts] == [row.cells.size for row in dataflow.rows]
