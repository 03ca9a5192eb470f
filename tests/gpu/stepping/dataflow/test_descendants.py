"""Where the values of a dataflow go: the inverse of their sources, and the ways of a sort's keys."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.patterns import find_pattern
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.dataflow.dataflow import Dataflow


def record_dataflow(pattern: str, variant: str, **params) -> Dataflow:
    found = find_pattern(pattern)
    values = {**found.step_params, **params}
    return Dataflow(record_pattern(Workload(found, found.variant(variant), {}, values), lambda progress: None))


@pytest.mark.parametrize(
    ("pattern", "variant", "params"),
    [
        ("scan", "brent-kung", {"n": 13}),
        ("scan", "look-back", {"n": 37}),
        ("reduction", "atomic", {"n": 21}),
        ("matmul", "tiled", {}),
        ("histogram", "privatized", {"of": "letters"}),
    ],
)
def test_descendants_are_the_cells_with_the_value_among_their_ancestors(pattern, variant, params) -> None:
    flow = record_dataflow(pattern, variant, **params)
    ancestors = {
        (row.number, cell): flow.find_ancestors(row.number, cell)
        for row in flow.rows
        for cell in range(row.column.size)
    }
    for origin in [(row.number, cell) for row in flow.rows[:4] for cell in range(min(row.column.size, 9))]:
        assert flow.find_descendants(*origin) == {place for place, found in ancestors.items() if origin in found}


@pytest.mark.parametrize("n", [2, 11, 16])
@pytest.mark.parametrize("variant", ["one-thread", "odd-even", "bitonic", "merge"])
def test_a_key_of_a_sort_leads_to_its_place_in_the_result(variant, n) -> None:
    flow = record_dataflow("sort", variant, n=n)
    keys = flow.rows[0].value
    in_order = np.sort(keys)
    for cell, key in enumerate(keys.tolist()):
        reached = flow.find_descendants(0, cell)
        if reached == {(0, cell)}:  # no operation moved it
            assert in_order[cell] == key
            continue
        assert {flow.rows[row].value[place] for row, place in reached} == {key}
        last = max(row for row, _ in reached)
        assert last == len(flow.rows) - 1
        columns = [int(flow.rows[row].column[place]) for row, place in reached if row == last]
        first, end = np.searchsorted(in_order, [key, key + 1])
        assert columns
        assert all(first <= column < end for column in columns)
        # A network exchanges keys in place: a key without a double is in one place in each row.
        if end - first == 1 and variant in ("odd-even", "bitonic"):
            assert len(reached) == len({row for row, _ in reached})
