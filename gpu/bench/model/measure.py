"""Measure every launch of every variant and of every foreign kernel on the GPU."""

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
"""Most launches of one kernel in a case that are profiled."""
_MOST_TRIES = 3


class LaunchRecorder(RecordingEngine):
    """Records a description of each launch along with the launch.

    Parameters
    ----------
    inner : CudaEngine
    around : callable or None
        Called with the description and a function that launches, for example to start and stop a profiler; None to
        just launch.
    """

    def __init__(self, inner: Any, around: Callable[[MeasuredLaunch, Callable[[], None]], None] | None = None) -> None:
        super().__init__(inner)
        self.what: list[MeasuredLaunch] = []
        self._around = around
        self._descriptions: dict[tuple[Any, ...], MeasuredLaunch] = {}

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
        self.what.append(MeasuredLaunch("fill", (size, 1, 1), (1, 1, 1), 0, 1, 0.0))

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        description = self._describe(kernel, grid, block, shared_bytes)
        self.what.append(description)

        def launch() -> None:
            super(LaunchRecorder, self).launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

        if self._around is None:
            launch()
        else:
            self._around(description, launch)

    def _describe(self, kernel: Any, grid: Extent, block: Extent, shared_bytes: int) -> MeasuredLaunch:
        from gpu.engines.occupancy import residency

        image: bytes = getattr(kernel, "image", b"")
        key = (kernel.name, image, tuple(grid), tuple(block), shared_bytes)
        if key not in self._descriptions:
            resources: tuple[int, ...] = ()
            if image:
                with suppress(LockstepError):
                    threads = int(np.prod(block))
                    driver = residency(image, kernel.name, threads, shared_bytes)
                    resources = driver.registers, driver.shared_bytes, driver.local_bytes, driver.blocks
            self._descriptions[key] = MeasuredLaunch(
                kernel.name, tuple(map(int, grid)), tuple(map(int, block)), int(shared_bytes), 1, 0.0, *resources
            )
        return self._descriptions[key]


def measure(engine: Engine, seed: int, repetitions: int) -> Iterator[MeasuredCase]:
    """Measure each case, and yield its times."""
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
        yield summed(pattern.name, variant.name, case.work, _with_times(recorder, times))
    engine.sources.update(elsewhere.sources())
    for foreign in elsewhere.all_cases():
        recorder = LaunchRecorder(engine)
        buffers = foreign.launch(recorder, foreign.make(np.random.default_rng(seed)))
        times = steady_times(recorder, repetitions, anew=foreign.anew)
        for buffer in buffers:
            recorder.free(buffer)
        recorder.finish()
        yield summed(foreign.file, foreign.kernel, foreign.size, _with_times(recorder, times))


def steady_times(recorder: RecordingEngine, repetitions: int, *, anew: bool) -> list[tuple[float, ...]]:
    """Return the milliseconds of each launch; measure again if the host was disturbed.

    Other work on the host delays launches, which adds to their times. Measuring stops once half of the repetitions are
    close to the fastest; otherwise the try with the smallest median is returned.
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
    """Run some of the cases once, with some launches of each kernel between `start` and `stop`; yield those launches.

    A profiler that is active only between the two lists the launches in this order.
    """
    profiled: list[MeasuredLaunch] = []

    def around(description: MeasuredLaunch, launch: Callable[[], None]) -> None:
        if sum(each.kernel == description.kernel for each in profiled) >= _MOST_PROFILED:
            launch()
            return
        profiled.append(description)
        start()
        launch()
        stop()

    for pattern, case, variant, inputs, params in variants(seed, profiled=True):
        profiled.clear()
        recorder = LaunchRecorder(engine, around)
        try:
            _run(variant, recorder, inputs, params)
        except LockstepError as error:
            print(f"{case.work} {variant.name}: {error}", flush=True)
        finally:
            recorder.finish()
        yield MeasuredCase(pattern.name, variant.name, case.work, 0.0, (0.0, 0.0), tuple(profiled))
    engine.sources.update(elsewhere.sources())
    sizes: dict[str, int] = {}
    for foreign in elsewhere.all_cases():
        sizes[foreign.kernel] = sizes.get(foreign.kernel, 0) + 1
        if sizes[foreign.kernel] != 2:
            continue
        profiled.clear()
        recorder = LaunchRecorder(engine, around)
        for buffer in foreign.launch(recorder, foreign.make(np.random.default_rng(seed))):
            recorder.free(buffer)
        recorder.finish()
        yield MeasuredCase(foreign.file, foreign.kernel, foreign.size, 0.0, (0.0, 0.0), tuple(profiled))


def _with_times(recorder: LaunchRecorder, times: Sequence[tuple[float, ...]]) -> list[OneLaunch]:
    return [OneLaunch(launch, own_times) for launch, own_times in zip(recorder.what, times, strict=True)]


def variants(seed: int, *, profiled: bool = False) -> Iterator[tuple[Pattern, Case, Variant, Inputs, Params]]:
    """Yield every variant with every case that it supports; if `profiled`, with two cases per pattern."""
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
    """Records the modules that a host program builds."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.device = engine.device
        self.built: dict[tuple[Any, ...], tuple[str, dict[str, int | str]]] = {}

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> NullModule:
        macros = dict(defines or {})
        self.built[file, *sorted(macros.items())] = file, macros
        return NullModule()


def prepare(engine: Any, seed: int) -> int:
    """Compile all modules in parallel into the compiler's cache; return their number."""
    recorder = _BuildRecorder(engine)
    for _, _, variant, inputs, params in variants(seed):
        with suppress(LockstepError, ArithmeticError, LookupError, ValueError):
            _run(variant, recorder, inputs, params)
    engine.sources.update(elsewhere.sources())
    builds = [*recorder.built.values(), *((file, {}) for file in engine.sources)]
    with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda each: engine.compile_ahead(*each), builds))
    return len(builds)
