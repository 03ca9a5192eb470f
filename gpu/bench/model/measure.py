"""Run every variant and every kernel from elsewhere on the GPU, and say what each launch took."""

from __future__ import annotations

import math
import os
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from gpu.bench.ladder import inputs_of
from gpu.bench.model import elsewhere
from gpu.bench.model.measured import STEADY, MeasuredCase, MeasuredLaunch, OneLaunch, summed
from gpu.bench.record import RecordingEngine
from gpu.declaration.benchmark import Case
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.engines.base import Argument, Buffer, Engine, Extent, Kernel
from gpu.engines.null import NullEngine, NullModule
from gpu.errors import LockstepError
from gpu.patterns import all_patterns

_MOST_PROFILED = 2
"""Launches of one kernel in a case, under a profiler."""
_MOST_TRIES = 3


class LaunchRecorder(RecordingEngine):
    """Remembers what each launch was, beside the launch.

    Parameters
    ----------
    inner : CudaEngine
    around : callable or None
        (what it is, the launch): makes the launch, for whom a profiler looks on; None just makes it.
    """

    def __init__(self, inner: Any, around: Callable[[MeasuredLaunch, Callable[[], None]], None] | None = None) -> None:
        super().__init__(inner)
        self.what: list[MeasuredLaunch] = []
        self._around = around
        self._known: dict[tuple[Any, ...], MeasuredLaunch] = {}

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
        self.what.append(MeasuredLaunch("fill", (size, 1, 1), (1, 1, 1), 0, 1, 0.0))

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        what = self._describe(kernel, grid, block, shared_bytes)
        self.what.append(what)

        def launch() -> None:
            super(LaunchRecorder, self).launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

        if self._around is None:
            launch()
        else:
            self._around(what, launch)

    def _describe(self, kernel: Any, grid: Extent, block: Extent, shared_bytes: int) -> MeasuredLaunch:
        from gpu.engines.occupancy import residency

        image: bytes = getattr(kernel, "image", b"")
        key = (kernel.name, image, tuple(grid), tuple(block), shared_bytes)
        if key not in self._known:
            found: tuple[int, ...] = ()
            if image:
                with suppress(LockstepError):
                    threads = int(np.prod(block))
                    driver = residency(image, kernel.name, threads, shared_bytes)
                    found = driver.registers, driver.shared_bytes, driver.local_bytes, driver.blocks
            self._known[key] = MeasuredLaunch(
                kernel.name, tuple(map(int, grid)), tuple(map(int, block)), int(shared_bytes), 1, 0.0, *found
            )
        return self._known[key]


def measure(engine: Engine, seed: int, repetitions: int) -> Iterator[MeasuredCase]:
    """Yield what each case took, as it is measured."""
    for pattern, case, variant, inputs, params in variants(seed):
        recorder = LaunchRecorder(engine)
        try:
            _run(variant, recorder, inputs, params)
            times = steady_times(recorder, repetitions, anew=case.anew)
        except LockstepError as error:
            print(f"{case.work} {variant.name}: {error}", flush=True)
            continue
        finally:
            recorder.finish()
        yield summed(pattern.name, variant.name, case.work, _together(recorder, times))
    engine.sources.update(elsewhere.sources())
    for foreign in elsewhere.all_cases():
        recorder = LaunchRecorder(engine)
        buffers = foreign.launch(recorder, foreign.make(np.random.default_rng(seed)))
        times = steady_times(recorder, repetitions, anew=foreign.anew)
        for buffer in buffers:
            recorder.free(buffer)
        recorder.finish()
        yield summed(foreign.file, foreign.kernel, foreign.size, _together(recorder, times))


def steady_times(recorder: RecordingEngine, repetitions: int, *, anew: bool) -> list[tuple[float, ...]]:
    """Return the milliseconds of each launch, of all of them again where the host was disturbed.

    Whoever else runs on the host makes launches late, which is measured with them. Of some tries that is the best which
    takes least; where half of the repetitions are near the fastest, no other is made.
    """
    best: list[tuple[float, ...]] = []
    least = math.inf
    for _ in range(_MOST_TRIES):
        times = recorder.replay_each(repetitions, anew=anew)
        totals = [math.fsum(each) for each in zip(*times, strict=True)]
        median = statistics.median(totals) if totals else 0.0
        if median < least:
            best, least = times, median
        if not totals or median <= STEADY * min(totals):
            break
    return best


def profile(engine: Engine, seed: int, start: Callable[[], None], stop: Callable[[], None]) -> Iterator[MeasuredCase]:
    """Run a part of the cases once, some launches of each kernel between `start` and `stop`, and yield those launches.

    A profiler that looks on only there lists them in this order.
    """
    seen: list[MeasuredLaunch] = []

    def around(what: MeasuredLaunch, launch: Callable[[], None]) -> None:
        if sum(each.kernel == what.kernel for each in seen) >= _MOST_PROFILED:
            launch()
            return
        seen.append(what)
        start()
        launch()
        stop()

    for pattern, case, variant, inputs, params in variants(seed, profiled=True):
        seen.clear()
        recorder = LaunchRecorder(engine, around)
        try:
            _run(variant, recorder, inputs, params)
        except LockstepError as error:
            print(f"{case.work} {variant.name}: {error}", flush=True)
        finally:
            recorder.finish()
        yield MeasuredCase(pattern.name, variant.name, case.work, 0.0, (0.0, 0.0), tuple(seen))
    engine.sources.update(elsewhere.sources())
    sizes: dict[str, int] = {}
    for foreign in elsewhere.all_cases():
        sizes[foreign.kernel] = sizes.get(foreign.kernel, 0) + 1
        if sizes[foreign.kernel] != 2:
            continue
        seen.clear()
        recorder = LaunchRecorder(engine, around)
        for buffer in foreign.launch(recorder, foreign.make(np.random.default_rng(seed))):
            recorder.free(buffer)
        recorder.finish()
        yield MeasuredCase(foreign.file, foreign.kernel, foreign.size, 0.0, (0.0, 0.0), tuple(seen))


def _together(recorder: LaunchRecorder, times: Sequence[tuple[float, ...]]) -> list[OneLaunch]:
    return [OneLaunch(what, own) for what, own in zip(recorder.what, times, strict=True)]


def variants(seed: int, *, profiled: bool = False) -> Iterator[tuple[Pattern, Case, Variant, Inputs, Params]]:
    """Yield every variant with every case that it takes; where `profiled`, two cases of each pattern."""
    for pattern in all_patterns().values():
        for number, case in enumerate(pattern.benchmark.timed):
            if profiled and number not in (1, 2):
                continue
            inputs, params = inputs_of(pattern, case, seed)
            for variant in pattern.variants:
                if variant.cautionary or variant.library or (case.variants and variant.name not in case.variants):
                    continue
                if not variant.obstacle(inputs, params):
                    yield pattern, case, variant, inputs, params


def _run(variant: Variant, engine: Any, inputs: Inputs, params: Params) -> None:
    for _ in variant.run(engine, inputs, params):
        pass


class _BuildRecorder(NullEngine):
    """Remembers what a host program builds."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.device = engine.device
        self.built: dict[tuple[Any, ...], tuple[str, dict[str, int | str]]] = {}

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> NullModule:
        given = dict(defines or {})
        self.built[file, *sorted(given.items())] = file, given
        return NullModule()


def prepare(engine: Any, seed: int) -> int:
    """Compile all that will be launched, side by side, into the compiler's cache; return how many modules that are."""
    recorder = _BuildRecorder(engine)
    for _, _, variant, inputs, params in variants(seed):
        with suppress(LockstepError, ArithmeticError, LookupError, ValueError):
            _run(variant, recorder, inputs, params)
    engine.sources.update(elsewhere.sources())
    built = [*recorder.built.values(), *((file, {}) for file in engine.sources)]
    with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda each: engine.compile_ahead(*each), built))
    return len(built)
