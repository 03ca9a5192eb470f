"""The race checker against one that compares every pair of accesses, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.races import shadow
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.executor.state.batch import BlockBatch, Geometry
from gpu.simulator.executor.state.memory import AccessSite, FlatMemory, SharedMemory
from gpu.simulator.executor.state.observer import Access, WarpSync

Array = np.ndarray[Any, Any]

# Two batches of two blocks of two warps, the second one partial; few of the lanes do anything.
BLOCK, BLOCKS, BATCHES = (40, 1, 1), 2, 2
GEOMETRY = Geometry(BLOCK, BLOCKS)
BUSY = (0, 1, 31, 32, 33, 64, 65, 96)
BYTES = 32


@dataclass(frozen=True)
class Step:
    """One instruction: an access, or what orders accesses."""

    kind: str
    space: str = "shared"
    size: int = 4
    lanes: tuple[int, ...] = ()
    elements: tuple[int, ...] = ()
    values: tuple[int, ...] = ()
    groups: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ThreadAccess:
    """What one thread did in one instruction."""

    line: int
    kind: str
    thread: int
    memory: tuple[str, int]
    bytes: range
    value: int
    # How often the thread's block, and warp, had met before.
    block_barriers: int
    warp_barriers: int

    @property
    def block(self) -> int:
        return self.thread // GEOMETRY.lanes_per_block

    @property
    def warp(self) -> int:
        return self.thread // 32


def races(first: ThreadAccess, second: ThreadAccess) -> bool:
    """Whether two accesses race, the first being the earlier one."""
    kinds = {first.kind, second.kind}
    if first.thread == second.thread or kinds == {"read"} or first.memory != second.memory:
        return False
    if kinds == {"atomic"} and first.bytes == second.bytes:  # else they overlap in part, and are not morally strong
        return False
    if not set(first.bytes) & set(second.bytes):
        return False
    if first.block == second.block and first.block_barriers < second.block_barriers:
        return False
    if first.warp == second.warp:
        same = first.line == second.line and first.value == second.value
        return not same and first.warp_barriers >= second.warp_barriers
    return True


@dataclass
class ReferenceChecker:
    """Compares every pair."""

    accesses: list[ThreadAccess] = field(default_factory=list)
    block_barriers: Array = field(default_factory=lambda: np.zeros(BATCHES * BLOCKS, int))
    warp_barriers: Array = field(default_factory=lambda: np.zeros(BATCHES * GEOMETRY.lanes // 32, int))

    def add(self, batch: int, line: int, step: Step) -> None:
        for lane, element, value in zip(step.lanes, step.elements, step.values, strict=True):
            thread = batch * GEOMETRY.lanes + lane
            block = thread // GEOMETRY.lanes_per_block
            memory = (step.space, block if step.space == "shared" else 0)
            touched = range(element * step.size, (element + 1) * step.size)
            met = int(self.block_barriers[block]), int(self.warp_barriers[thread // 32])
            self.accesses.append(ThreadAccess(line, step.kind, thread, memory, touched, value, *met))

    def pairs(self) -> set[tuple[str, int, int]]:
        """Return the races: the space of the memory, and the two lines."""
        return {
            (first.memory[0], *sorted((first.line, second.line)))  # type: ignore[misc]
            for first, second in combinations(self.accesses, 2)
            if races(first, second)
        }


def run(program: list[Step], batches: int = BATCHES) -> tuple[set[tuple[str, int, int]], set[tuple[str, int, int]]]:
    """Return the races that the checker finds in a program, which each batch runs, and those of the reference."""
    checker, reference = RaceChecker(), ReferenceChecker()
    data = FlatMemory("global", "global", np.zeros(BYTES, np.uint8))
    checker.launch_begins("f", (BATCHES * BLOCKS, 1, 1), BLOCK)
    for number in range(batches):
        batch = BlockBatch(GEOMETRY, (BATCHES * BLOCKS, 1, 1), number * BLOCKS, 0)
        batch.shared["s"] = SharedMemory("shared", BYTES, batch)
        checker.batch_begins(batch)
        for line, step in enumerate(program, 1):
            position = SourcePosition("test.cu", line)
            if step.kind == "barrier":
                checker.barrier(batch, position, mask_of("blocks", step.groups))
                reference.block_barriers[[number * BLOCKS + block for block in step.groups]] += 1
            elif step.kind == "__syncwarp":
                here = mask_of("warps", step.groups)
                checker.warp_sync(batch, WarpSync(position, step.kind, here, 0xFFFFFFFF, None))
                reference.warp_barriers[[number * GEOMETRY.lanes // 32 + warp for warp in step.groups]] += 1
            elif step.kind.startswith("__threadfence"):
                checker.fence(batch, step.kind, mask_of("lanes", step.lanes))
            else:
                memory = batch.shared["s"] if step.space == "shared" else data
                checker.access(batch, access_of(step, memory, position))
                reference.add(number, line, step)
        checker.batch_ends(batch)
    checker.launch_ends()
    found = {
        ("shared" if "(shared memory)" in finding.message else "global", *sorted(p.line for p in finding.positions))
        for finding in checker.findings
    }
    return found, reference.pairs()  # type: ignore[return-value]


@cache
def mask_of(what: str, members: Iterable[int]) -> LaneMask:
    """Return the lanes that exist of some blocks or warps, or just some lanes."""
    numbers = {"blocks": GEOMETRY.block_of_lane, "warps": GEOMETRY.lane_numbers // 32, "lanes": GEOMETRY.lane_numbers}
    return LaneMask(np.isin(numbers[what], list(members)) & GEOMETRY.thread_mask.bits)


def access_of(step: Step, memory: FlatMemory, position: SourcePosition) -> Access:
    elements = np.full(GEOMETRY.lanes, 99_999, np.int32)  # what the idle lanes hold must not matter
    values = np.arange(GEOMETRY.lanes, dtype=np.int32)
    elements[list(step.lanes)] = step.elements
    values[list(step.lanes)] = step.values
    mask = mask_of("lanes", step.lanes)
    uniform = len(set(step.elements)) == 1
    element = step.elements[0] if uniform else elements
    return Access(AccessSite(position, step.kind), memory, element, step.size, mask, values)


@st.composite
def accesses(draw: st.DrawFn) -> Step:
    size = draw(st.sampled_from([4, 4, 4, 1, 2, 8, 16]))
    lanes = tuple(sorted(draw(st.sets(st.sampled_from(BUSY), min_size=1))))
    count = min(BYTES // size, draw(st.integers(1, 8)))
    elements = draw(st.lists(st.integers(0, count - 1), min_size=len(lanes), max_size=len(lanes)))
    values = draw(st.lists(st.integers(0, 1), min_size=len(lanes), max_size=len(lanes)))
    kind, space = draw(st.sampled_from(["read", "write", "atomic"])), draw(st.sampled_from(["shared", "global"]))
    return Step(kind, space, size, lanes, tuple(elements), tuple(values))


@st.composite
def rows(draw: st.DrawFn) -> Step:
    """Equally spaced elements, one per lane."""
    size, spacing = draw(st.sampled_from([(4, 1), (2, 1), (1, 3), (1, 1)]))
    lanes = tuple(sorted(draw(st.sets(st.sampled_from(BUSY), min_size=2))))
    first = draw(st.integers(0, BYTES // size - 1 - spacing * (len(lanes) - 1)))
    elements = tuple(first + spacing * index for index in range(len(lanes)))
    kind, space = draw(st.sampled_from(["read", "write", "atomic"])), draw(st.sampled_from(["shared", "global"]))
    return Step(kind, space, size, lanes, elements, (1,) * len(lanes))


def groups(kind: str, count: int) -> st.SearchStrategy[Step]:
    every = st.just(frozenset(range(count)))
    some = st.frozensets(st.integers(0, count - 1), min_size=1)
    return st.builds(Step, kind=st.just(kind), groups=every | some)


ORDERING = groups("barrier", BLOCKS) | groups("__syncwarp", GEOMETRY.lanes // 32)
FENCES = st.builds(Step, kind=st.just("__threadfence"), lanes=st.sets(st.sampled_from(BUSY), min_size=1).map(tuple))


@settings(max_examples=150, deadline=None)
@given(st.lists(accesses() | accesses() | ORDERING, min_size=2, max_size=9))
def test_it_finds_a_race_exactly_where_there_is_one(program: list[Step]) -> None:
    found, true = run(program)
    assert found <= true
    assert {space for space, *_ in found} == {space for space, *_ in true}


@settings(max_examples=100, deadline=None)
@given(st.lists(rows() | rows() | accesses() | ORDERING, min_size=2, max_size=9))
def test_it_finds_a_race_exactly_where_there_is_one_by_slices(program: list[Step]) -> None:
    with patch.object(shadow, "_FEWEST", 2):
        found, true = run(program)
    assert found <= true
    assert {space for space, *_ in found} == {space for space, *_ in true}


def steps_at_one_place(kind: str, *lanes: int) -> Step:
    return Step(kind, "shared", 4, lanes, (0,) * len(lanes), (1,) * len(lanes))


STEPS_AT_ONE_PLACE = (
    steps_at_one_place("read", 0, 1, 31),
    steps_at_one_place("read", 31),
    steps_at_one_place("read", 0, 32),
    steps_at_one_place("write", 0),
    steps_at_one_place("write", 0, 1, 31),
    steps_at_one_place("write", 32),
    steps_at_one_place("atomic", 1, 33),
    Step("barrier", groups=frozenset({0, 1})),
    Step("__syncwarp", groups=frozenset(range(GEOMETRY.lanes // 32))),
)


@pytest.mark.parametrize("space", ["shared", "global"])
def test_every_program_of_four_steps_at_one_place(space: str) -> None:
    """Nothing that is remembered of a word must hide what else there was.

    What orders accesses does nothing before the first and after the last: a barrier before three steps stands for all.
    """
    steps = [replace(step, space=space) for step in STEPS_AT_ONE_PLACE]
    first = [step for step in steps if step.kind != "__syncwarp"]
    last = [step for step in steps if step.elements]
    for program in product(first, steps, steps, last):
        found, true = run(list(program), batches=1)
        assert found <= true, program
        assert bool(found) == bool(true), program


@settings(max_examples=200, deadline=None)
@given(st.lists(accesses() | ORDERING | FENCES, min_size=2, max_size=9))
def test_fences_only_ever_order(program: list[Step]) -> None:
    found, true = run(program)
    assert found <= true
    weaker = [replace(step, kind="__threadfence_block") if step.kind == "__threadfence" else step for step in program]
    unfenced, _ = run(weaker)
    assert found <= unfenced
    assert {pair for pair in found if pair[0] == "shared"} == {pair for pair in unfenced if pair[0] == "shared"}
