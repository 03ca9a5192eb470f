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

from gpu.base.errors import LockstepError
from gpu.bench.ladder import prepare_inputs
from gpu.bench.recording_engine import RecordingEngine
from gpu.declaration.benchmark import Case
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.engines.base import Argument, Buffer, Engine, Extent, Kernel
from gpu.engines.null import NullEngine, NullModule
from gpu.patterns import all_patterns
from tools.model_bench import foreign_kernels
from tools.model_bench.measured_times import (
    MAX_STEADY_RATIO,
    MeasuredCase,
    MeasuredLaunch,
    TimedLaunch,
    combine_launches,
)

_MAX_PROFILED_LAUNCHES = 2
"""Most launches of one kernel in a case that are profiled."""
_MAX_TRIES = 3


class LaunchRecorder(RecordingEngine):
    """Records a description of each launch along with the launch.

    Parameters
    ----------
    inner : CudaEngine
    wrap_launch : callable or None
        Called with the description and a function that launches, for example to start and stop a profiler; None to
        just launch.
    """

    def __init__(
        self, inner: Any, wrap_launch: Callable[[MeasuredLaunch, Callable[[], None]], None] | None = None
    ) -> None:
        super().__init__(inner)
        self.launch_descriptions: list[MeasuredLaunch] = []
        self._wrap_launch = wrap_launch
        self._description_cache: dict[tuple[Any, ...], MeasuredLaunch] = {}

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
        self.launch_descriptions.append(MeasuredLaunch("fill", (size, 1, 1), (1, 1, 1), 0, 1, 0.0))

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        description = self._describe(kernel, grid, block, shared_bytes)
        self.launch_descriptions.append(description)

        def launch() -> None:
            super(LaunchRecorder, self).launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

        if self._wrap_launch is None:
            launch()
        else:
            self._wrap_launch(description, launch)

    def _describe(self, kernel: Any, grid: Extent, block: Extent, shared_bytes: int) -> MeasuredLaunch:
        from gpu.engines.cuda.occupancy import query_residency

        image: bytes = getattr(kernel, "image", b"")
        key = (kernel.name, image, tuple(grid), tuple(block), shared_bytes)
        if key not in self._description_cache:
            resources: tuple[int, ...] = ()
            if image:
                with suppress(LockstepError):
                    threads = int(np.prod(block))
                    driver = query_residency(image, kernel.name, threads, shared_bytes)
                    resources = driver.registers, driver.shared_bytes, driver.local_bytes, driver.blocks
            self._description_cache[key] = MeasuredLaunch(
                kernel.name, tuple(map(int, grid)), tuple(map(int, block)), int(shared_bytes), 1, 0.0, *resources
            )
        return self._description_cache[key]


def measure(engine: Engine, seed: int, repetitions: int) -> Iterator[MeasuredCase]:
    """Measure each case, and yield its times."""
    for pattern, case, variant, inputs, params in iterate_variants(seed):
        recorder = LaunchRecorder(engine)
        try:
            _run(variant, recorder, inputs, params)
            times = measure_steady_times(recorder, repetitions, restore_inputs=case.restores_inputs)
        except LockstepError as error:
            print(f"{case.work} {variant.name}: {error}", flush=True)
            continue
        finally:
            recorder.finish()
        yield combine_launches(pattern.name, variant.name, case.work, _attach_times(recorder, times))
    engine.sources.update(foreign_kernels.read_sources())
    for foreign in foreign_kernels.all_cases():
        recorder = LaunchRecorder(engine)
        buffers = foreign.launch(recorder, foreign.make_arguments(np.random.default_rng(seed)))
        times = measure_steady_times(recorder, repetitions, restore_inputs=foreign.restores_inputs)
        recorder.free(*buffers)
        recorder.finish()
        yield combine_launches(foreign.file, foreign.kernel, foreign.size, _attach_times(recorder, times))


def measure_steady_times(
    recorder: RecordingEngine, repetitions: int, *, restore_inputs: bool
) -> list[tuple[float, ...]]:
    """Return the milliseconds of each launch; measure again if the host was disturbed.

    Other work on the host delays launches, which adds to their times. Measuring stops once half of the repetitions are
    close to the fastest; otherwise the try with the smallest median is returned.
    """
    best: list[tuple[float, ...]] = []
    least = math.inf
    for _ in range(_MAX_TRIES):
        times = recorder.replay_separately(repetitions, restore_inputs=restore_inputs)
        totals = [math.fsum(each) for each in zip(*times, strict=True)]
        median = statistics.median(totals) if totals else 0.0
        if median < least:
            best, least = times, median
        if not totals or median <= MAX_STEADY_RATIO * min(totals):
            break
    return best


def profile(engine: Engine, seed: int, start: Callable[[], None], stop: Callable[[], None]) -> Iterator[MeasuredCase]:
    """Run some of the cases once, and profile some launches of each kernel; yield those launches.

    A profiler that is active only between `start` and `stop` lists the launches in this order.

    Parameters
    ----------
    engine : Engine
        The engine of the GPU.
    seed : int
        Random seed of the inputs.
    start, stop : callable
        Called before and after each profiled launch, to start and stop the profiler.

    Yields
    ------
    MeasuredCase
        A case with its profiled launches; all times are 0.
    """
    profiled: list[MeasuredLaunch] = []

    def profile_launch(description: MeasuredLaunch, launch: Callable[[], None]) -> None:
        if sum(each.kernel == description.kernel for each in profiled) >= _MAX_PROFILED_LAUNCHES:
            launch()
            return
        profiled.append(description)
        start()
        launch()
        stop()

    for pattern, case, variant, inputs, params in iterate_variants(seed, profiled=True):
        profiled.clear()
        recorder = LaunchRecorder(engine, profile_launch)
        try:
            _run(variant, recorder, inputs, params)
        except LockstepError as error:
            print(f"{case.work} {variant.name}: {error}", flush=True)
        finally:
            recorder.finish()
        yield MeasuredCase(pattern.name, variant.name, case.work, 0.0, (0.0, 0.0), tuple(profiled))
    engine.sources.update(foreign_kernels.read_sources())
    sizes: dict[str, int] = {}
    for foreign in foreign_kernels.all_cases():
        sizes[foreign.kernel] = sizes.get(foreign.kernel, 0) + 1
        if sizes[foreign.kernel] != 2:
            continue
        profiled.clear()
        recorder = LaunchRecorder(engine, profile_launch)
        recorder.free(*foreign.launch(recorder, foreign.make_arguments(np.random.default_rng(seed))))
        recorder.finish()
        yield MeasuredCase(foreign.file, foreign.kernel, foreign.size, 0.0, (0.0, 0.0), tuple(profiled))


def _attach_times(recorder: LaunchRecorder, times: Sequence[tuple[float, ...]]) -> list[TimedLaunch]:
    return [
        TimedLaunch(launch, own_times) for launch, own_times in zip(recorder.launch_descriptions, times, strict=True)
    ]


def iterate_variants(seed: int, *, profiled: bool = False) -> Iterator[tuple[Pattern, Case, Variant, Inputs, Params]]:
    """Yield every variant with every case that it supports; if `profiled`, with two cases per pattern."""
    for pattern in all_patterns().values():
        for number, case in enumerate(pattern.benchmark.timing_model_cases):
            if profiled and number not in (1, 2):
                continue
            inputs, params = prepare_inputs(pattern, case, seed)
            for variant in pattern.variants:
                if variant.deliberate_error or variant.library or (case.variants and variant.name not in case.variants):
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


def compile_modules(engine: Any, seed: int) -> int:
    """Compile all modules in parallel into the compiler's cache; return their number."""
    recorder = _BuildRecorder(engine)
    for _, _, variant, inputs, params in iterate_variants(seed):
        with suppress(LockstepError, ArithmeticError, LookupError, ValueError):
            _run(variant, recorder, inputs, params)
    engine.sources.update(foreign_kernels.read_sources())
    builds = [*recorder.built.values(), *((file, {}) for file in engine.sources)]
    with warnings.catch_warnings(action="ignore"), ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda each: engine.compile_ahead(*each), builds))
    return len(builds)
