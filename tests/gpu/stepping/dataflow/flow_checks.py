"""What must be true of every dataflow picture, whatever was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.stepping.dataflow.dataflow import CellTerm, Dataflow
from gpu.stepping.dataflow.rows import Row
from tests.gpu.simulator.trace_checks import OPERATIONS, are_identical, check_operation


def check_flow(flow: Dataflow) -> Dataflow:
    """Check that rows agree with the recorded arrays, edges with terms, and values with their operators."""
    for number, row in enumerate(flow.rows):
        assert row.number == number
        cells = row.column.size
        assert row.label
        assert (np.diff(row.column) > 0).all()
        for each in (row.value, row.computed, row.moment, row.block, row.thread, row.operation_counts, row.cells):
            assert each.shape == (cells,)
        assert row.value.dtype == row.storage.dtype
        check_edges(flow, number)
        check_values(flow, number)
        for cell in np.flatnonzero(row.computed):
            check_term(flow, number, int(cell))
    return flow


def check_edges(flow: Dataflow, number: int) -> None:
    row = flow.rows[number]
    assert row.computed[row.sources[:, 0]].all(), "edges end where something was made"
    for _, other, cell in row.sources:
        assert 0 <= cell < flow.rows[other].column.size
    assert len(np.unique(row.sources, axis=0)) == len(row.sources)


def check_values(flow: Dataflow, number: int) -> None:
    """What a row of an array shows must be in the recorded array once the row is over and nobody went on."""
    row = flow.rows[number]
    written = row.moment >= 0
    assert (row.thread[written & row.computed] >= 0).all()
    assert ((row.moment[row.computed] >= row.first) & (row.moment[row.computed] <= row.last)).all()
    for cell in np.flatnonzero(written & (row.thread >= 0)):
        launch, event = flow.recording.locate_moment(int(row.moment[cell]))
        if not row.storage.is_array or not _is_last(flow, row, cell):
            continue
        block = int(row.cells[cell]) // row.storage.section if row.storage.space == "shared" else None
        held = launch.trace.array(row.storage.name, event + 1, block)
        are_identical(held[int(row.cells[cell]) % row.storage.section], row.value[cell])


def _is_last(flow: Dataflow, row: Row, cell: int) -> bool:
    """Whether no other lane's atomic of the same statement came to the element after the one that a row shows."""
    writes, mine = flow.provenance.writes, int(row.writers[cell])
    later = np.flatnonzero(writes.moment == writes.moment[mine])
    later = later[later > mine]
    return not (writes.cell[later][writes.storage[later] == row.storage.number] == row.cells[cell]).any()


def check_term(flow: Dataflow, row: int, cell: int) -> None:
    here = flow.rows[row]
    term = flow.build_term(row, cell)
    assert term is not None
    value = np.asarray(term.value)
    if value.dtype.itemsize == here.storage.dtype.itemsize and value.dtype.kind == here.storage.dtype.kind:
        are_identical(value, here.value[cell])
    seen = {place for place in term_leaves(term) if place is not None}
    edges = {(int(other), int(at)) for end, other, at in here.sources if end == cell}
    assert seen == edges, (here.label, term)
    assert check_and_count_operators(flow, term) == term_operators(term)


def term_leaves(term: CellTerm) -> list[tuple[int, int] | None]:
    return [each for operand in term.operands for each in term_leaves(operand)] if term.operator else [term.location]


def term_operators(term: CellTerm) -> int:
    return bool(term.operator) + sum(term_operators(operand) for operand in term.operands)


def check_and_count_operators(flow: Dataflow, term: CellTerm) -> int:
    """Compute a term again from the cells where its leaves were seen; return how many operators it has."""
    if not term.operator:
        if term.location is not None:
            row, cell = term.location
            here = flow.rows[row]
            if here.storage.dtype == np.asarray(term.value).dtype:
                are_identical(here.value[cell], term.value)
        return 0
    if term.operator in OPERATIONS and len(term.operands) == 2:
        dtype = np.asarray(term.value).dtype
        operands: list[Any] = [operand.value for operand in term.operands]
        if dtype.kind != "b":
            operands = [np.asarray(each).astype(dtype) for each in operands]
        factors = [
            [each.value for each in operand.operands] if operand.operator == "*" else [] for operand in term.operands
        ]
        check_operation(term.operator, operands, factors, term.value)
    return 1 + sum(check_and_count_operators(flow, operand) for operand in term.operands)


def source_columns(flow: Dataflow, row: int, cell: int, name: str) -> list[int]:
    """Return the columns of an input that a cell came from."""
    found = flow.find_ancestors(row, cell)
    return sorted(
        int(flow.rows[at].column[c]) for at, c in found if flow.rows[at].is_input and flow.rows[at].storage.name == name
    )


def computed_columns(flow: Dataflow) -> list[list[int]]:
    return [row.column[row.computed].tolist() for row in flow.rows]


def edges_by_column(flow: Dataflow, row: int) -> set[tuple[int, int, int]]:
    """Return a row's edges by column: where they end, the row where they begin, and where there."""
    here = flow.rows[row]
    return {(int(here.column[end]), int(at), int(flow.rows[at].column[cell])) for end, at, cell in here.sources}
