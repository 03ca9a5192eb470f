"""Announcements: faults that show only if a thread tests one before another makes it, although the latter has read."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import SourcePosition
from gpu.kernel.simulate import simulate
from gpu.simulator.executor.scheduling.access_history import AccessHistory, StrongAccess
from gpu.simulator.executor.scheduling.announcements import AnnouncementChooser
from gpu.simulator.executor.state.memory import AccessSite

HAZARD = """__global__ void run(int *current, int *hazard, int *slot, int *out, int rounds) {{
    const int me = blockIdx.x;
    if (me == 0) {{
        for (int r = 0, mine = 1; r < rounds; r++) {{
            slot[mine] = r;
            __threadfence();
            const int old = atomicExch(current, mine);
            __threadfence();
            for (int w = 1; w < gridDim.x; w++) while (atomicAdd(&hazard[w], 0) == old + 1) {{ }}
            __threadfence();
            mine = old;
        }}
    }} else {{
        int at;
        for (;;) {{
            at = atomicAdd(current, 0);
            atomicExch(&hazard[me], at + 1);
            __threadfence();
            if ({test}) break;
        }}
        __threadfence();
        out[me] = slot[at];
        __threadfence();
        atomicExch(&hazard[me], 0);
    }}
}}"""
"""The first block replaces the current slot, and reuses the old one once no reader announces it."""


@pytest.mark.parametrize(
    ("test", "kinds"),
    [("atomicAdd(current, 0) == at", set()), ("true", {"race"})],
    ids=["read again", "not read again"],
)
def test_a_reader_announces_a_slot_that_has_been_replaced(test: str, kinds: set[str]) -> None:
    arguments = ["zeros:1", "zeros:3", "zeros:2", "zeros:3", np.int32(4)]
    findings = simulate("test.cu", "run", 3, 1, arguments, source=HAZARD.format(test=test)).findings
    assert {finding.kind for finding in findings} == kinds


EPOCHS = """__global__ void run(int *epoch, int *local, int *current, int *slot, int *out, int rounds) {{
    const int me = blockIdx.x;
    if (me == 0) {{
        for (int r = 1; r <= rounds; r++) {{
            slot[r % 2] = r;
            __threadfence();
            atomicExch(current, r % 2);
            __threadfence();
            atomicExch(epoch, r);
            __threadfence();
            for (int w = 1; w < gridDim.x; w++) while ({test}) {{ }}
            __threadfence();
        }}
    }} else {{
        for (int r = 0; r < rounds; r++) {{
            atomicExch(&local[me], atomicAdd(epoch, 0) + 1);
            __threadfence();
            const int at = atomicAdd(current, 0);
            __threadfence();
            out[me] = slot[at];
            __threadfence();
            atomicExch(&local[me], 0);
        }}
    }}
}}"""
"""The first block writes two slots in turn, and waits for readers, which announce the epoch that they have read."""


@pytest.mark.parametrize(
    ("test", "kinds"),
    [("atomicAdd(&local[w], 0) != 0", set()), ("atomicAdd(&local[w], 0) == r", {"race"})],
    ids=["any epoch", "the last epoch"],
)
def test_a_reader_announces_an_epoch_that_is_over(test: str, kinds: set[str]) -> None:
    arguments = ["zeros:1", "zeros:3", "zeros:1", "zeros:2", "zeros:3", np.int32(4)]
    findings = simulate("test.cu", "run", 3, 1, arguments, source=EPOCHS.format(test=test)).findings
    assert {finding.kind for finding in findings} == kinds


class Accesses:
    """Strong accesses of parts to locations with one byte each."""

    def __init__(self, **memory: bytes) -> None:
        self.memory = memory
        self._sites: dict[str, AccessSite] = {}

    def build(self, part: int, place: str, *, writes: bool = False, expected: bytes | None = None) -> StrongAccess:
        """Return an access of a part; those of one location that write are at one place in the source."""
        name = f"{place} {writes} {expected is not None}"
        position = SourcePosition("test.cu", len(self._sites))
        site = self._sites.setdefault(name, AccessSite(position, "atomic"))
        return StrongAccess(part, site, place, writes, True, lambda: self.memory[place], expected)


def _build_history(accesses: Accesses) -> AccessHistory:
    """Return the history of a run in which part 0 reads the top and announces it, and part 1 replaces and tests it."""
    history = AccessHistory()
    history.begin_run()
    for access in (
        accesses.build(0, "top"),
        accesses.build(0, "hazard", writes=True),
        accesses.build(1, "top", writes=True, expected=b"A"),
        accesses.build(1, "hazard"),
    ):
        history.note(access)
    return history


def test_an_announcement_follows_a_read_and_is_tested_by_a_part_that_changes_what_was_read() -> None:
    accesses = Accesses(top=b"A", hazard=b"0")
    assert _build_history(accesses).announcements == {accesses.build(0, "hazard", writes=True).site}
    history = AccessHistory()
    history.begin_run()
    for part, other in ((0, 1), (1, 2)):  # each part passes a flag on to the next one
        history.note(accesses.build(part, f"flag {part}"))
        history.note(accesses.build(part, f"flag {other}", writes=True))
    assert not history.announcements


@pytest.mark.parametrize(("following", "continues"), [(b"old", False), (b"new", True)])
def test_a_reader_is_stopped_until_its_compare_and_swap_succeeds_with_an_old_value(
    following: bytes, continues: bool
) -> None:
    accesses = Accesses(top=b"A", hazard=b"0", next=b"old")
    history, stops = _build_history(accesses), 0
    for seed in range(40):
        accesses.memory |= {"top": b"A", "next": b"old"}
        chooser = AnnouncementChooser(seed, history)
        chooser.preempts(accesses.build(0, "top"))
        if not chooser.preempts(accesses.build(0, "hazard", writes=True)) or chooser.stopped != 0:
            continue
        chooser.preempts(accesses.build(1, "top", writes=True, expected=b"A"))
        accesses.memory["top"] = b"B"
        chooser.preempts(accesses.build(1, "hazard"))
        chooser.preempts(accesses.build(1, "hazard"))
        if not chooser.preempts(accesses.build(1, "other", writes=True)) or chooser.stopped != 1:
            continue  # the test is one that the reader does not overtake
        assert chooser.choose_part([0, 1]) == 0
        chooser.preempts(accesses.build(0, "next"))
        assert chooser.preempts(accesses.build(0, "top", writes=True, expected=b"A"))
        stops += 1
        assert chooser.choose_part([0, 1]) == 1
        accesses.memory |= {"top": b"A", "next": following}
        assert chooser.preempts(accesses.build(1, "other", writes=True)) == continues
        assert chooser.choose_part([0, 1]) == (0 if continues else 1)
    assert stops
