"""The atomics lesson: contention counted by the simulator, and a race of two threads in every order."""

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
    """Return the lesson's study of an input; for a text, of its letters. Raises the errors of `count_atomics`."""
    all_params = pattern.check(given)
    params = letters_of(all_params)
    inputs = pattern.inputs(inputs, params, seed)
    pattern.accept(inputs, params)
    counts = count_atomics(pattern, inputs, params, tell)
    return AtomicsStudy(
        counts,
        counted(inputs, params).planes.size,
        len(pattern.value(all_params, Role.TEXT) or "") - len(pattern.value(params, Role.TEXT) or ""),
        interleavings("update_racy"),
        interleavings("update_atomic"),
    )


def count_atomics(
    pattern: Pattern, inputs: Inputs, given: Mapping[str, Any], tell: Callable[[Progress], None], *, seed: int = 0
) -> tuple[AtomicCounts, ...]:
    """Run the histogram's variants on the simulator and count their atomics by address.

    An input of more than `MOST_ELEMENTS` is truncated: an image to its top rows, other inputs to their first elements.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern.
    """
    params = pattern.check(given)
    inputs = _truncate(pattern.inputs(inputs, params, seed))
    pattern.accept(inputs, params)
    counts = []
    for number, name in enumerate(VARIANTS):
        tell(Progress(number / len(VARIANTS), f"counting {pattern.variant(name).title}"))
        counts.append(_count(pattern, name, inputs, params))
    return tuple(counts)


def _count(pattern: Pattern, name: str, inputs: Inputs, params: Params) -> AtomicCounts:
    contention = Contention()
    with closing(ObservedEngine(contention)) as engine:
        for _ in pattern.variant(name).run(engine, inputs, params):
            pass
    tallies = contention.tallies
    return AtomicCounts(
        name,
        counted(inputs, params).planes.size,
        _contention_counts(tallies["global"]),
        _contention_counts(tallies["shared"]),
    )


def _contention_counts(tally: AddressTally) -> Contended:
    by_address = tally.by_address
    if not by_address.size:
        return Contended()
    return Contended(tally.operations, by_address.size, int(by_address[0]), tally.warp_queue, tally.block_queue)


def _truncate(inputs: Inputs) -> Inputs:
    def truncate(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.size <= MOST_ELEMENTS or not values.ndim:
            return values
        return values[: max(1, MOST_ELEMENTS // (values.size // len(values)))]

    return {name: truncate(values) for name, values in inputs.items()}


class _Path(Chooser):
    """Follows a given path of choices, then always chooses the first option; records the number of options."""

    def __init__(self, choices: list[int]) -> None:
        self.choices = choices
        self.option_counts: list[int] = []

    def choose(self, count: int) -> int:
        place = len(self.option_counts)
        self.option_counts.append(count)
        return self.choices[place] if place < len(self.choices) else 0

    def next_path(self) -> list[int] | None:
        """Return the next path, depth first; None after the last."""
        path = [self.choices[place] if place < len(self.choices) else 0 for place in range(len(self.option_counts))]
        while path:
            last = path.pop() + 1
            if last < self.option_counts[len(path)]:
                return [*path, last]
        return None


class _StepRecorder(Observer):
    """Records the steps of each thread."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._values = [0, 0]

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        # A statement without memory access is the addition; `access` replaces the other statements.
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
    """Run two threads that each count one, in every order of their statements; return the distinct orders.

    Parameters
    ----------
    kernel : str
        "update_racy" or "update_atomic".
    """
    module = SimulatedModule((KERNELS / _FILE).read_text(encoding="utf-8"), KERNELS / _FILE, {})
    distinct: dict[tuple[Moment, ...], Interleaving] = {}
    choices: list[int] | None = []
    while choices is not None:
        counter, recorder, path = np.zeros(1, np.uint32), _StepRecorder(), _Path(choices)
        # Two blocks of one thread each: threads of one warp would step together.
        module.kernel(kernel).launch(
            (2, 1, 1), (1, 1, 1), [counter.view(np.uint8)], observers=(recorder,), schedule=path
        )
        moments = tuple(recorder.moments)
        distinct.setdefault(moments, Interleaving(moments, int(counter[0])))
        choices = path.next_path()
    return tuple(sorted(distinct.values(), key=lambda each: [moment.thread for moment in each.moments]))
