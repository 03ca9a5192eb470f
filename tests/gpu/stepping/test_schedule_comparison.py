"""Two orders of one program."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.schedule_comparison import find_first_difference
from tests.gpu.stepping.recordings import record_launch

WITHOUT_A_BARRIER = """
__global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int stride = 32; stride > 0; stride /= 2) {
        if (t < 64 - stride) s[t] += s[t + stride];
    }
    out[t] = s[t];
}
"""
RIGHT = WITHOUT_A_BARRIER.replace("if (t < 64 - stride) s[t] +=", "int v = 0; if (t < 64 - stride) v =").replace(
    "s[t + stride];", "s[t + stride]; __syncthreads(); s[t] += v; __syncthreads();"
)


def record_flow(source: str, schedule: str, *arguments, block: int = 64) -> Dataflow:
    values = arguments or (np.arange(64, dtype=np.int32), np.zeros(64, np.int32))
    return Dataflow(record_launch(source, values, block=block, schedule=schedule))


def test_a_program_without_races_is_the_same_in_every_order():
    plain = record_flow(RIGHT, "round-robin")
    for seed in range(4):
        assert find_first_difference(plain, record_flow(RIGHT, f"shuffle:{seed}")) is None


def test_a_race_is_shown_where_it_first_matters():
    plain = record_flow(WITHOUT_A_BARRIER, "round-robin")
    found = [find_first_difference(plain, record_flow(WITHOUT_A_BARRIER, f"shuffle:{seed}")) for seed in range(6)]
    differences = [(seed, each) for seed, each in enumerate(found) if each is not None]
    assert differences
    for seed, each in differences:
        other = record_flow(WITHOUT_A_BARRIER, f"shuffle:{seed}")
        for side, picture in enumerate((plain, other)):
            row = picture.rows[each.rows[side]]
            assert row.storage.name == each.name == "s"
            assert row.value[each.cells[side]] == each.values[side]
            assert row.cells[each.cells[side]] == each.element
            assert each.writers[side] == picture.rows[each.rows[side]].find_writer(each.cells[side])
        assert each.values[0] != each.values[1]
        before = zip(plain.rows[: each.rows[0]], other.rows, strict=False)
        assert all((one.value == two.value).all() for one, two in before), "rows before agree"
        again = find_first_difference(other, plain)
        assert again is not None
        assert (again.values, again.writers) == (each.values[::-1], each.writers[::-1])


def test_lost_updates_of_a_histogram():
    source = "__global__ void k(const int *in, int *bins) { bins[in[threadIdx.x]]++; }"
    values = (np.zeros(64, np.int32), np.zeros(1, np.int32))
    one, two = record_flow(source, "round-robin", *values), record_flow(source, "shuffle:1", *values)
    found = find_first_difference(one, two)
    assert found is not None
    assert found.values == (1, 2), "all lanes read the same in lockstep; warps that take turns lose less"
    assert next(who.thread for who in found.writers if who is not None) == 63
    assert find_first_difference(two, two) is None


def test_arrays_that_no_row_shows_are_compared_at_the_end():
    source = "__global__ void k(int *a) { a[0] = threadIdx.x / 32; }"
    orders = [record_flow(source, f"shuffle:{seed}", np.zeros(1, np.int32)) for seed in range(8)]
    last = [int(each.recording.launches[0].trace.array("a", each.recording.event_count)[0]) for each in orders]
    assert set(last) == {0, 1}
    found = find_first_difference(orders[last.index(0)], orders[last.index(1)])
    assert found is not None
    assert (found.name, found.element, found.rows, found.values) == ("a", 0, (None, None), (0, 1))
    assert [who.thread // 32 for who in found.writers if who is not None] == [0, 1]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_row_that_only_one_order_has(swapped: bool):
    source = """
    __global__ void k(int *a, int *flag) {
        if (threadIdx.x < 32) flag[0] = 1;
        else if (threadIdx.x == 32 && flag[0] == 0) a[0] += 5;
    }
    """
    orders = [record_flow(source, f"shuffle:{seed}", np.ones(4, np.int32), np.zeros(1, np.int32)) for seed in range(8)]
    rows = [any(not row.is_input for row in each.rows) for each in orders]
    pair = [orders[rows.index(True)], orders[rows.index(False)]]
    found = find_first_difference(*(pair[::-1] if swapped else pair))
    assert found is not None
    assert found.name in ("a", "flag")
