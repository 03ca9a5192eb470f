"""The atomics lesson: contention counted by the simulator, and a race of two threads in all its orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from gpu.declaration.pattern import Inputs, Params, Pattern, Progress
from gpu.declaration.roles import Role
from gpu.engines.base import KERNELS
from gpu.engines.counting import ObservedEngine
from gpu.messages.atomics import MOST_ELEMENTS, VARIANTS, AtomicCounts, AtomicsStudy, Contended, Interleaving, Moment
from gpu.patterns.histogram.counted import counted, letters_of
from gpu.simulator.counting.contention import AddressTally, Contention
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import Access, IssuedStep, Observer
from gpu.simulator.executor.schedule import Chooser
from gpu.simulator.module import SimulatedModule
from gpu.warp import WARP

_FILE = "lost_update.cu"


def study(
    pattern: Pattern, inputs: Inputs, given: Mapping[str, Any], tell: Callable[[Progress], None], *, seed: int = 0
) -> AtomicsStudy:
    """Return all that the lesson shows of an input, of a text its letters; raises as `count_atomics` does."""
    whole = pattern.check(given)
    params = letters_of(whole)
    inputs = pattern.inputs(inputs, params, seed)
    pattern.accept(inputs, params)
    counts = count_atomics(pattern, inputs, params, tell)
    return AtomicsStudy(
        counts,
        counted(inputs, params).planes.size,
        len(pattern.value(whole, Role.TEXT) or "") - len(pattern.value(params, Role.TEXT) or ""),
        interleavings("update_racy"),
        interleavings("update_atomic"),
    )


def count_atomics(
    pattern: Pattern, inputs: Inputs, given: Mapping[str, Any], tell: Callable[[Progress], None], *, seed: int = 0
) -> tuple[AtomicCounts, ...]:
    """Run the histogram's variants on the simulator and count their atomics by address.

    An input of more than `MOST_ELEMENTS` is cut: whole rows of an image from its top, the beginning of the rest.

    Raises
    ------
    InputError
        Where inputs and parameters are not ones that the pattern takes.
    """
    params = pattern.check(given)
    inputs = _cut(pattern.inputs(inputs, params, seed))
    pattern.accept(inputs, params)
    found = []
    for number, name in enumerate(VARIANTS):
        tell(Progress(number / len(VARIANTS), f"counting {pattern.variant(name).title}"))
        found.append(_count(pattern, name, inputs, params))
    return tuple(found)


def _count(pattern: Pattern, name: str, inputs: Inputs, params: Params) -> AtomicCounts:
    contention = Contention()
    with closing(ObservedEngine(contention)) as engine:
        for _ in pattern.variant(name).run(engine, inputs, params):
            pass
    tallies = contention.tallies
    return AtomicCounts(
        name, counted(inputs, params).planes.size, _contended(tallies["global"]), _contended(tallies["shared"])
    )


def _contended(tally: AddressTally) -> Contended:
    by_address = tally.by_address
    if not by_address.size:
        return Contended()
    return Contended(tally.operations, by_address.size, int(by_address[0]), tally.warp_queue, tally.block_queue)


def _cut(inputs: Inputs) -> Inputs:
    def cut(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.size <= MOST_ELEMENTS or not values.ndim:
            return values
        return values[: max(1, MOST_ELEMENTS // (values.size // len(values)))]

    return {name: cut(values) for name, values in inputs.items()}


class _Path(Chooser):
    """Chooses as it is told, and after that the first; it remembers how many there were to choose from."""

    def __init__(self, told: list[int]) -> None:
        self.told = told
        self.of: list[int] = []

    def choose(self, count: int) -> int:
        place = len(self.of)
        self.of.append(count)
        return self.told[place] if place < len(self.told) else 0

    def following(self) -> list[int] | None:
        """Return the next path, depth first; None after the last."""
        taken = [self.told[place] if place < len(self.told) else 0 for place in range(len(self.of))]
        while taken:
            last = taken.pop() + 1
            if last < self.of[len(taken)]:
                return [*taken, last]
        return None


class _Diary(Observer):
    """Writes down which thread does what."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._values = [0, 0]

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        # The statement that touches no memory is the one that adds; the others are seen by their accesses.
        thread = int(mask.lanes[0]) // WARP
        self.moments.append(Moment(thread, "add", self._values[thread] + 1))

    def access(self, batch: BlockBatch, access: Access) -> None:
        lane = int(access.mask.lanes[0])
        thread = lane // WARP
        value = int(access.values[lane]) if isinstance(access.values, np.ndarray) else int(access.values)
        self.moments.pop()  # the statement that the access belongs to
        self.moments.append(Moment(thread, access.site.action, value))
        self._values[thread] = value


def interleavings(kernel: str = "update_racy") -> tuple[Interleaving, ...]:
    """Run two threads that count one each, in every order of their statements, and return the orders that differ.

    Parameters
    ----------
    kernel : str
        "update_racy" or "update_atomic".
    """
    module = SimulatedModule((KERNELS / _FILE).read_text(encoding="utf-8"), KERNELS / _FILE, {})
    found: dict[tuple[Moment, ...], Interleaving] = {}
    told: list[int] | None = []
    while told is not None:
        counter, diary, path = np.zeros(1, np.uint32), _Diary(), _Path(told)
        # Two blocks of a thread each: threads of one warp would step together.
        module.kernel(kernel).launch((2, 1, 1), (1, 1, 1), [counter.view(np.uint8)], observers=(diary,), schedule=path)
        moments = tuple(diary.moments)
        found.setdefault(moments, Interleaving(moments, int(counter[0])))
        told = path.following()
    return tuple(sorted(found.values(), key=lambda each: [moment.thread for moment in each.moments]))
