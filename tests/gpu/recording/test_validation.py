"""Recordings that no simulator made: a number that is just too large or too small is refused, the last one is read."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from gpu.base.errors import InputError
from gpu.base.findings import Finding
from gpu.recording.data import TraceData, TraceFinding
from gpu.recording.file import load_trace, save_trace
from gpu.recording.validation import MAX_MEMORY_BYTES, TABLES, matches_type, validate_trace
from gpu.simulator.simulated_module import SimulatedModule

SOURCE = """
__device__ int twice(int *x) { return *x * 2; }
__global__ void k(int *a) {
    __shared__ int s[8];
    int *p = s + threadIdx.x;
    int value = a[threadIdx.x];
    *p = value;
    __syncthreads();
    if (threadIdx.x < 5) a[threadIdx.x] = twice(p) + 1;
}
"""
# What says that there is none; all other numbers count from 0.
LEAST = {"event": -1, "statement": -1, "value": -1, "nodes": -1, "operands": -1, "taken": -2}


@pytest.fixture(scope="module")
def data() -> TraceData:
    module = SimulatedModule(SOURCE, Path("kernel.cu"), {})
    return module.trace("k", (1, 1, 1), (8, 1, 1), [np.arange(8, dtype=np.int32).view(np.uint8)]).data


def is_readable(data: TraceData, folder: Path) -> bool:
    """Return whether a recording can be read; one that cannot is refused in a sentence."""
    save_trace(data, folder / "trace.zip")
    try:
        load_trace(folder / "trace.zip")
    except InputError as error:
        if error.message != f"{folder / 'trace.zip'} is not a trace, or is damaged.":
            raise
        return False
    return True


def change_memory(data: TraceData, space: str, **changed: Any) -> TraceData:
    """Return a recording with its first memory of a space changed."""
    first = next(memory for memory in data.memories if memory.space == space)
    return replace(data, memories=tuple(replace(each, **changed) if each is first else each for each in data.memories))


def test_a_recording_without_events_can_be_read(tmp_path: Path) -> None:
    module = SimulatedModule("__global__ void k(int *a, int n) {}", Path("kernel.cu"), {})
    data = module.trace("k", (1, 1, 1), (8, 1, 1), [np.zeros(32, np.uint8), np.int32(8)]).data
    assert not len(data.events)
    assert len(data.registers), "the parameters, written before the first event"
    assert is_readable(data, tmp_path)


@pytest.mark.parametrize("table", TABLES)
def test_a_number_below_the_least_is_refused(data: TraceData, table: str, tmp_path: Path) -> None:
    assert is_readable(data, tmp_path)
    rows = getattr(data, table)
    assert rows.size
    for column in rows.dtype.names:
        damaged = rows.copy()
        damaged[column][-1] = LEAST.get(column, 0) - 1
        assert not is_readable(replace(data, **{table: damaged}), tmp_path), column


def test_a_batch_of_a_launch_that_is_none_is_named_by_its_column(data: TraceData) -> None:
    damaged = data.batches.copy()
    damaged["launch"] = len(data.launches)
    with pytest.raises(ValueError, match=r"^batches\.launch$"):
        validate_trace(replace(data, batches=damaged))


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_batch_of_no_blocks_or_more_than_there_are_is_refused(data: TraceData, blocks: int) -> None:
    damaged = np.repeat(data.batches, 2)
    validate_trace(replace(data, batches=damaged))
    damaged["blocks"][1] = blocks
    with pytest.raises(ValueError, match=r"^batches$"):
        validate_trace(replace(data, batches=damaged))


@pytest.mark.parametrize("table", ["operations", "inputs"])
def test_nodes_count_from_1(data: TraceData, table: str, tmp_path: Path) -> None:
    for first, is_right in ((1, True), (0, False)):
        rows = np.repeat(getattr(data, table), 2)
        rows["first"][-1] = first
        assert is_readable(replace(data, **{table: rows}), tmp_path) == is_right


@pytest.mark.parametrize("table", ["operations", "inputs"])
def test_no_node_is_beyond_those_that_were_made(data: TraceData, table: str, tmp_path: Path) -> None:
    sets = {"operations": int(data.masks.rows["count"][data.operations["mask"]].sum()), "inputs": 0}
    sets["inputs"] = int(data.inputs["count"].sum())
    row = getattr(data, table)[-1]
    own = int(row["count"]) if table == "inputs" else int(data.masks.rows["count"][row["mask"]])
    for first, is_right in ((1 + sum(sets.values()) - own, True), (2 + sum(sets.values()) - own, False)):
        rows = getattr(data, table).copy()
        rows["first"][-1] = first
        assert is_readable(replace(data, **{table: rows}), tmp_path) == is_right


@pytest.mark.parametrize(("more", "is_right"), [(0, True), (1, False), (10**9, False)])
def test_nodes_of_inputs_are_as_many_as_a_memory_held(
    data: TraceData, more: int, *, is_right: bool, tmp_path: Path
) -> None:
    inputs = data.inputs.copy()
    [array] = [memory for memory in data.memories if memory.space == "global"]
    assert (inputs["count"] * inputs["unit"]).tolist() == [array.total_bytes]
    inputs["count"] += more
    assert is_readable(replace(data, inputs=inputs), tmp_path) == is_right


@pytest.mark.parametrize(("column", "table"), [("access", "accesses"), ("register", "registers")])
def test_the_first_rows_of_an_event_end_where_the_table_does(
    data: TraceData, column: str, table: str, tmp_path: Path
) -> None:
    for first, is_right in ((len(getattr(data, table)), True), (len(getattr(data, table)) + 1, False)):
        events = data.events.copy()
        events[column][-1] = first
        assert is_readable(replace(data, events=events), tmp_path) == is_right


@pytest.mark.parametrize(("space", "wrong"), [("global", {"blocks": 2}), ("shared", {"blocks": 2}),
                                              ("local", {"lanes": 64}), ("global", {"lanes": 8})])  # fmt: skip
def test_a_memory_of_other_blocks_or_lanes_than_its_batch_is_refused(
    space: str, wrong: dict[str, int], tmp_path: Path
) -> None:
    source = SOURCE.replace("int value", "int own[2]; own[threadIdx.x % 2] = 1; own[0] += 1; int value")
    module = SimulatedModule(source, Path("kernel.cu"), {})
    made = module.trace("k", (1, 1, 1), (8, 1, 1), [np.arange(8, dtype=np.int32).view(np.uint8)]).data
    assert is_readable(made, tmp_path)
    assert not is_readable(change_memory(made, space, **wrong), tmp_path)


@pytest.mark.parametrize(("size", "is_right"), [(MAX_MEMORY_BYTES, True), (MAX_MEMORY_BYTES + 1, False)])
def test_an_array_of_too_many_bytes_is_refused(data: TraceData, size: int, *, is_right: bool, tmp_path: Path) -> None:
    assert MAX_MEMORY_BYTES == 2**31
    assert is_readable(change_memory(data, "shared", size=size), tmp_path) == is_right


# Of the kinds of types that are told, but too wide; and as wide as others, but of another kind.
@pytest.mark.parametrize("dtype", [np.dtype(np.longdouble), np.dtype(np.complex64)])
def test_a_type_that_no_kernel_has_is_refused(data: TraceData, dtype: np.dtype[Any], tmp_path: Path) -> None:
    assert is_readable(change_memory(data, "global", dtype=np.dtype(np.float64)), tmp_path)
    assert not is_readable(change_memory(data, "global", dtype=dtype), tmp_path)
    assert not is_readable(replace(data, values=replace(data.values, dtypes=(*data.values.dtypes, dtype))), tmp_path)


@pytest.mark.parametrize(("beyond", "is_right"), [(0, True), (1, False)])
def test_a_write_begins_at_the_end_at_the_latest(
    data: TraceData, beyond: int, *, is_right: bool, tmp_path: Path
) -> None:
    [array] = [memory for memory in data.memories if memory.space == "global"]
    borders = np.append(array.borders, np.int32(array.index.size + beyond))
    assert is_readable(change_memory(data, "global", borders=borders), tmp_path) == is_right


@pytest.mark.parametrize("version", [0, -6, 1000, 6.0, True, "6", None])
def test_what_is_no_version_is_refused(data: TraceData, version: object, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a trace, or is damaged"):
        load_trace(write_version(data, version, tmp_path))


@pytest.mark.parametrize("version", [1, 999])
def test_another_version_is_named(data: TraceData, version: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"is a trace of version {version}; this program reads version 7"):
        load_trace(write_version(data, version, tmp_path))


def write_version(data: TraceData, version: object, folder: Path) -> Path:
    """Write a recording of a version."""
    save_trace(data, folder / "trace.zip")
    with zipfile.ZipFile(folder / "trace.zip") as archive:
        manifest, arrays = json.loads(archive.read("manifest.json")), archive.read("arrays.bin")
    with zipfile.ZipFile(folder / "other.zip", "w") as archive:
        archive.writestr("manifest.json", json.dumps({**manifest, "version": version}))
        archive.writestr("arrays.bin", arrays)
    return folder / "other.zip"


def test_a_loop_that_nobody_came_to_is_kept(tmp_path: Path) -> None:
    source = "__global__ void k(int *a) { if (a[0]) for (;;) { if (a[1]++) break; } a[2] = 1; }"
    module = SimulatedModule(source, Path("kernel.cu"), {})
    made = module.trace("k", (1, 1, 1), (1, 1, 1), [np.zeros(12, np.uint8)]).data
    assert [list(function.rounds.values()) for function in made.functions] == [[-1]]
    assert is_readable(made, tmp_path)


def test_an_alias_is_what_it_stands_for() -> None:
    # Since Python 3.12 NumPy's NDArray is one that a `type` statement makes.
    scalar = TypeVar("scalar", bound=np.generic)
    alias = TypeAliasType("alias", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,))
    for kind in (alias, alias[np.int32]):
        assert matches_type(np.zeros(3, np.int32), kind)
        assert not matches_type([0, 0, 0], kind)


@pytest.mark.parametrize(
    ("value", "kind", "is_right"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        (True, float, False),
        (1.0, int, False),
        ((1, 2, 3), tuple[int, ...], True),
        ((1, "2", 3), tuple[int, ...], False),
        ([1], tuple[int, ...], False),
        (None, int | None, True),
        ("1", int | None, False),
        ({"a": 1}, dict[str, int], True),
        ({"a": "1"}, dict[str, int], False),
        ({1: 1}, dict[str, int], False),
    ],
)
def test_values_conform_to_types_all_the_way_down(value: object, kind: Any, *, is_right: bool) -> None:
    assert matches_type(value, kind) is is_right


def test_a_finding_may_come_after_the_last_event_and_no_later(data: TraceData) -> None:
    finding = TraceFinding(len(data.events), Finding("race", "two", (), (), 1))
    validate_trace(replace(data, launch=replace(data.launch, findings=(finding,))))
    late = replace(finding, event=finding.event + 1)
    with pytest.raises(ValueError, match=r"^findings$"):
        validate_trace(replace(data, launch=replace(data.launch, findings=(late,))))


def test_an_input_may_have_no_node(data: TraceData) -> None:
    rows = np.append(data.inputs, data.inputs[-1:])
    rows["count"][-1] = 0
    validate_trace(replace(data, inputs=rows))


def test_a_mask_may_have_no_lanes(data: TraceData) -> None:
    rows = np.append(data.masks.rows, data.masks.rows[-1:])
    rows["count"][-1], rows["bits"][-1] = 0, 0
    validate_trace(replace(data, masks=replace(data.masks, rows=rows, _cache={})))
