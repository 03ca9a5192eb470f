"""What must be true of every dataflow picture, whatever was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.stepping.dataflow.dataflow import CellTerm, Dataflow
from gpu.stepping.dataflow.row import Row
from tests.gpu.simulator.tracing import OPERATIONS, same


def check(flow: Dataflow) -> Dataflow:
    """Check that rows agree with the recorded arrays, edges with terms, and values with their operators."""
    for number, row in enumerate(flow.rows):
        assert row.number == number
        cells = row.column.size
        assert row.label
        assert (np.diff(row.column) > 0).all()
        assert not cells or row.column[-1] < flow.columns
        for each in (row.value, row.made, row.moment, row.block, row.thread, row.count, row.cells):
            assert each.shape == (cells,)
        assert row.value.dtype == row.storage.dtype
        check_edges(flow, number)
        check_values(flow, number)
        for cell in np.flatnonzero(row.made):
            check_term(flow, number, int(cell))
    return flow


def check_edges(flow: Dataflow, number: int) -> None:
    row = flow.rows[number]
    assert row.made[row.sources[:, 0]].all(), "edges end where something was made"
    for _, other, cell in row.sources:
        assert 0 <= cell < flow.rows[other].column.size
    assert len(np.unique(row.sources, axis=0)) == len(row.sources)


def check_values(flow: Dataflow, number: int) -> None:
    """What a row of an array shows must be in the recorded array once the row is over and nobody went on."""
    row = flow.rows[number]
    written = row.moment >= 0
    assert (row.thread[written & row.made] >= 0).all()
    assert ((row.moment[row.made] >= row.first) & (row.moment[row.made] <= row.last)).all()
    for cell in np.flatnonzero(written & (row.thread >= 0)):
        launch, event = flow.recording.at(int(row.moment[cell]))
        if not row.storage.is_array or not _is_last(flow, row, cell):
            continue
        block = int(row.cells[cell]) // row.storage.section if row.storage.space == "shared" else None
        held = launch.trace.array(row.storage.name, event + 1, block)
        same(held[int(row.cells[cell]) % row.storage.section], row.value[cell])


def _is_last(flow: Dataflow, row: Row, cell: int) -> bool:
    """Whether no other lane's atomic of the same statement came to the element after the one that a row shows."""
    writes, mine = flow.provenance.writes, int(row.writers[cell])
    later = np.flatnonzero(writes.moment == writes.moment[mine])
    later = later[later > mine]
    return not (writes.cell[later][writes.storage[later] == row.storage.number] == row.cells[cell]).any()


def check_term(flow: Dataflow, row: int, cell: int) -> None:
    here = flow.rows[row]
    term = flow.term(row, cell)
    assert term is not None
    value = np.asarray(term.value)
    if value.dtype.itemsize == here.storage.dtype.itemsize and value.dtype.kind == here.storage.dtype.kind:
        same(value, here.value[cell])
    seen = {place for place in leaves(term) if place is not None}
    edges = {(int(other), int(at)) for end, other, at in here.sources if end == cell}
    assert seen == edges, (here.label, term)
    assert evaluate(flow, term) == operators(term)


def leaves(term: CellTerm) -> list[tuple[int, int] | None]:
    return [each for operand in term.operands for each in leaves(operand)] if term.operator else [term.seen]


def operators(term: CellTerm) -> int:
    return bool(term.operator) + sum(operators(operand) for operand in term.operands)


def evaluate(flow: Dataflow, term: CellTerm) -> int:
    """Compute a term again from the cells where its leaves were seen; return how many operators it has."""
    if not term.operator:
        if term.seen is not None:
            row, cell = term.seen
            here = flow.rows[row]
            if here.storage.dtype == np.asarray(term.value).dtype:
                same(here.value[cell], term.value)
        return 0
    if term.operator in OPERATIONS and len(term.operands) == 2:
        dtype = np.asarray(term.value).dtype
        operands: list[Any] = [operand.value for operand in term.operands]
        if dtype.kind != "b":
            operands = [np.asarray(each).astype(dtype) for each in operands]
        same(OPERATIONS[term.operator](*operands), term.value)
    return 1 + sum(evaluate(flow, operand) for operand in term.operands)


def columns_reached(flow: Dataflow, row: int, cell: int, name: str) -> list[int]:
    """Return the columns of an input that a cell came from."""
    found = flow.ancestry(row, cell)
    return sorted(
        int(flow.rows[at].column[c]) for at, c in found if flow.rows[at].is_input and flow.rows[at].storage.name == name
    )


def made_columns(flow: Dataflow) -> list[list[int]]:
    return [row.column[row.made].tolist() for row in flow.rows]


def edges(flow: Dataflow, row: int) -> set[tuple[int, int, int]]:
    """Return a row's edges by column: where they end, the row where they begin, and where there."""
    here = flow.rows[row]
    return {(int(here.column[end]), int(at), int(flow.rows[at].column[cell])) for end, at, cell in here.sources}
