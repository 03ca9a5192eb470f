"""The atomics lesson: contention counted by the simulator, and a race of two threads in every order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.base.paths import KERNELS
from gpu.base.warp import WARP
from gpu.declaration.pattern import Inputs, Params, Pattern, Progress
from gpu.engines.counting_engine import ObservedEngine
from gpu.messages.runs.atomics import (
    MAX_ELEMENTS,
    VARIANTS,
    AtomicCounts,
    AtomicsStudy,
    ContentionCounts,
    Interleaving,
    ThreadStep,
)
from gpu.patterns.histogram.counting_input import prepare_counting_input
from gpu.simulator.counting.contention import AddressTally, Contention
from gpu.simulator.executor.scheduling.choosers import Chooser
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access, IssuedStep, Observer
from gpu.simulator.simulated_module import SimulatedModule

_KERNEL_FILE = "lost_update.cu"


def study_atomics(
    pattern: Pattern,
    inputs: Inputs,
    param_values: Mapping[str, Any],
    report_progress: Callable[[Progress], None],
    *,
    seed: int = 0,
) -> AtomicsStudy:
    """Return the lesson's study of an input.

    Parameters
    ----------
    pattern : Pattern
        The histogram.
    inputs : mapping
        Inputs that the pattern does not generate.
    param_values : mapping
        Values of some parameters; the others have their defaults.
    report_progress : callable
        Called with the progress before each variant.
    seed : int
        Random seed of generated inputs.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern.
    """
    params = pattern.check(param_values)
    inputs = pattern.prepare_inputs(inputs, params, seed)
    pattern.accept(inputs, params)
    counts = count_atomics(pattern, inputs, params, report_progress)
    elements = prepare_counting_input(inputs, params).planes.size
    textbook = next(each.global_counts for each in counts if each.variant == "interleaved")
    if pattern.input_kind(params) == "text":
        textbook = _count_letters(pattern, inputs, params)
    return AtomicsStudy(
        counts, elements, textbook, enumerate_interleavings("update_racy"), enumerate_interleavings("update_atomic")
    )


def _count_letters(pattern: Pattern, inputs: Inputs, params: Params) -> ContentionCounts:
    """Return the atomic operations of the textbook's kernel, which skips all characters but letters."""
    letters = pattern.reference(inputs, params)[..., :-1]  # the last bin counts the other characters
    return ContentionCounts(int(letters.sum()), int(np.count_nonzero(letters)), int(letters.max()))


def count_atomics(
    pattern: Pattern,
    inputs: Inputs,
    param_values: Mapping[str, Any],
    report_progress: Callable[[Progress], None],
) -> tuple[AtomicCounts, ...]:
    """Run the histogram's variants on the simulator and count their atomics by address.

    An input of more than `MAX_ELEMENTS` is truncated: an image to its top rows, other inputs to their first elements.

    Parameters
    ----------
    pattern, inputs, param_values, report_progress
        As for `study_atomics`; generated inputs have the random seed 0.

    Returns
    -------
    tuple of AtomicCounts
        The counts of each of `VARIANTS`.

    Raises
    ------
    InputError
        As for `study_atomics`.
    """
    params = pattern.check(param_values)
    inputs = _truncate(pattern.prepare_inputs(inputs, params, 0))
    pattern.accept(inputs, params)
    counts = []
    for number, name in enumerate(VARIANTS):
        report_progress(Progress(number / len(VARIANTS), f"counting {pattern.variant(name).title}"))
        counts.append(_count_variant(pattern, name, inputs, params))
    return tuple(counts)


def _count_variant(pattern: Pattern, name: str, inputs: Inputs, params: Params) -> AtomicCounts:
    contention = Contention()
    with closing(ObservedEngine(contention)) as engine:
        for _ in pattern.variant(name).run(engine, inputs, params):
            pass
    tallies = contention.tallies
    return AtomicCounts(
        name,
        prepare_counting_input(inputs, params).planes.size,
        _summarize_contention(tallies["global"]),
        _summarize_contention(tallies["shared"]),
    )


def _summarize_contention(tally: AddressTally) -> ContentionCounts:
    by_address = tally.counts_by_address
    if not by_address.size:
        return ContentionCounts()
    return ContentionCounts(
        tally.operations, by_address.size, int(by_address[0]), tally.longest_warp_queues, tally.longest_block_queues
    )


def _truncate(inputs: Inputs) -> Inputs:
    def truncate(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if values.size <= MAX_ELEMENTS or not values.ndim:
            return values
        return values[: max(1, MAX_ELEMENTS // (values.size // len(values)))]

    return {name: truncate(values) for name, values in inputs.items()}


class _ChoicePath(Chooser):
    """Follows a given path of choices, then always chooses the first option; records the number of options."""

    def __init__(self, choices: list[int]) -> None:
        self.choices = choices
        self.option_counts: list[int] = []

    def choose(self, count: int) -> int:
        index = len(self.option_counts)
        self.option_counts.append(count)
        return self.choices[index] if index < len(self.choices) else 0

    def next_path(self) -> list[int] | None:
        """Return the next path, depth first; None after the last."""
        path = [self.choices[index] if index < len(self.choices) else 0 for index in range(len(self.option_counts))]
        while path:
            last = path.pop() + 1
            if last < self.option_counts[len(path)]:
                return [*path, last]
        return None


class _StepRecorder(Observer):
    """Records the steps of each thread."""

    def __init__(self) -> None:
        self.moments: list[ThreadStep] = []
        self._values = [0, 0]

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        # A statement without memory access is the addition; `access` replaces the other statements.
        thread = int(mask.lanes[0]) // WARP
        self.moments.append(ThreadStep(thread, "add", self._values[thread] + 1))

    def access(self, batch: BlockBatch, access: Access) -> None:
        lane = int(access.mask.lanes[0])
        thread = lane // WARP
        value = int(access.values[lane]) if isinstance(access.values, np.ndarray) else int(access.values)
        self.moments.pop()  # the statement that the access belongs to
        self.moments.append(ThreadStep(thread, access.site.action, value))
        self._values[thread] = value


def enumerate_interleavings(kernel: str = "update_racy") -> tuple[Interleaving, ...]:
    """Run two threads that each count one, in every order of their statements; return the distinct orders.

    Parameters
    ----------
    kernel : str
        "update_racy" or "update_atomic".
    """
    module = SimulatedModule((KERNELS / _KERNEL_FILE).read_text(encoding="utf-8"), KERNELS / _KERNEL_FILE, {})
    distinct: dict[tuple[ThreadStep, ...], Interleaving] = {}
    choices: list[int] | None = []
    while choices is not None:
        counter, recorder, path = np.zeros(1, np.uint32), _StepRecorder(), _ChoicePath(choices)
        # Two blocks of one thread each: threads of one warp would step together.
        module.kernel(kernel).launch(
            (2, 1, 1), (1, 1, 1), [counter.view(np.uint8)], observers=(recorder,), schedule=path
        )
        moments = tuple(recorder.moments)
        distinct.setdefault(moments, Interleaving(moments, int(counter[0])))
        choices = path.next_path()
    return tuple(sorted(distinct.values(), key=lambda each: [moment.thread for moment in each.moments]))
