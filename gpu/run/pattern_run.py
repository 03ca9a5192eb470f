"""Run one variant of a pattern and compare its result with the reference result, or record all its steps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gpu.base.errors import LaunchError
from gpu.base.schedules import ROUND_ROBIN
from gpu.declaration.arrays import present_error
from gpu.declaration.pattern import Inputs, Outputs, Params, Pattern, Progress, Variant, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.engines.base import Engine, PhaseTimes
from gpu.messages.runs.pattern_runs import Report, Throughput
from gpu.messages.runs.timing import Timing, summarize_timing
from gpu.recording.recording import Recording
from gpu.run import verification
from gpu.run.frames import Frames
from gpu.run.host_program import (
    ProgressCallback,
    refuse_library,
    refuse_missing_features,
    run_host_program,
    validate_inputs,
)
from gpu.run.repetition import compute_median_times, repeat_run


@dataclass(frozen=True)
class Outcome:
    """A run's outputs of the host program, arrays to present, and figures."""

    outputs: Outputs
    presented_arrays: Outputs
    report: Report


def run_pattern(
    engine: Engine,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    param_values: Mapping[str, Any],
    report_progress: ProgressCallback,
    *,
    with_reference: bool = True,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    frames: Frames | None = None,
) -> Outcome:
    """Run one variant and, with `with_reference`, compare its result with the reference result.

    On a GPU, a compared run is repeated for its time: the report's times are medians, and its `timing` contains the
    spread.

    Parameters
    ----------
    engine : Engine
    pattern : Pattern
    variant : Variant
    inputs : mapping of str to array
        If empty, the pattern generates them from its parameters and `seed`.
    param_values : mapping
        Parameters; missing ones have their defaults.
    report_progress : callable
        Called with the progress.
    with_reference : bool
    sources : mapping of str to str, or None
        Kernel texts by file name that replace the project's.
    seed : int
    frames : Frames or None
        Takes pictures between launches, if the pattern offers any.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile or fails.
    """
    params = pattern.check(param_values)
    inputs = pattern.prepare_inputs(inputs, params, seed)
    validate_inputs(pattern, variant, inputs, params)
    refuse_missing_features(variant, engine.device)
    engine.sources = dict(sources or {})
    engine.take_times()
    try:
        outputs = run_host_program(engine, variant, inputs, params, report_progress, frames)
        executed, times = (frames or Frames()).finish(engine)
        timing = None
        if with_reference and engine.device.executor == "gpu":
            report_progress(Progress(None, "repeating the run to time it"))
            timing, times = _repeat_run_times(engine, pattern, variant, inputs, params, times)
    finally:
        engine.sources = {}
    presented = {**pattern.present(inputs, params, outputs), **(frames.collect_arrays() if frames is not None else {})}
    deviation, verified = None, None
    if with_reference:
        report_progress(Progress(None, "comparing with the reference result"))
        result, reference = verification.prepare_comparison(pattern, variant, inputs, params, outputs)
        deviation, verified = verification.compare_results(result, reference, pattern.tolerance(inputs, params))
        if isinstance(pattern.presentation, ArrayPresentation) and result.shape == reference.shape:
            presented.update(present_error(result, reference))
    device = engine.device
    cost = pattern.cost(inputs, params)
    return Outcome(
        outputs,
        presented,
        Report(
            pattern=pattern.name,
            engine=device.engine,
            executor=executed.executor,
            device=device.name,
            variant=variant.name,
            time_ms=times,
            throughput=compute_throughput(pattern.work(inputs, params), times),
            deviation=deviation,
            verified=verified,
            fallback=executed.reason,
            least_bytes=cost.bytes_read + cost.bytes_written,
            timing=timing,
        ),
    )


def _repeat_run_times(
    engine: Engine, pattern: Pattern, variant: Variant, inputs: Inputs, params: Params, first_times: PhaseTimes
) -> tuple[Timing, PhaseTimes]:
    """Repeat a run for its times; the result that is verified and shown is the first run's."""

    def run_once() -> None:
        run_host_program(engine, variant, inputs, params, lambda progress: None)

    warm_times, consecutive_times = repeat_run(engine, run_once, first_times)
    parameter, size, enough = pattern.comparison_sizes(inputs, params, engine.device)
    timing = summarize_timing(
        warm_times,
        consecutive_times,
        empty_launch=engine.launch_ms(),
        size_parameter=parameter,
        size=size,
        comparable_from=enough,
    )
    return timing, compute_median_times(warm_times)


def compute_throughput(work: Work, times: PhaseTimes) -> Throughput:
    """Return the work per second of kernel time, in thousands of the work's unit prefix; 0 without a measured time."""
    per_second = work.amount / (times.kernel / 1e3) if times.kernel > 0 else 0.0
    return Throughput(per_second / {"M": 1e6, "G": 1e9}[work.prefix], f"{work.prefix}{work.unit}/s")


def record_pattern(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    param_values: Mapping[str, Any],
    report_progress: ProgressCallback,
    *,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    schedule: str = ROUND_ROBIN,
) -> Recording:
    """Run one variant on the simulator and return the recording of all its launches.

    An error of a kernel while it runs ends the recording, which contains the message.

    Parameters
    ----------
    pattern : Pattern
    variant : Variant
    inputs : mapping of str to array
        Reduced to a size that can be watched; if empty, the pattern generates them.
    param_values : mapping
        Parameters; missing ones have their defaults.
    report_progress : callable
        Called with the progress.
    sources : mapping of str to str, or None
        Kernel texts by file name that replace the project's.
    seed : int
    schedule : str

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile, or its launch is not valid on any GPU.
    """
    from gpu.engines.tracing_engine import TracingEngine  # imports its compiler, which a GPU's process does not need

    params = pattern.check(param_values)
    refuse_library(variant)
    inputs = pattern.prepare_inputs(pattern.step_input(inputs) if inputs else inputs, params, seed)
    validate_inputs(pattern, variant, inputs, params)
    engine = TracingEngine(schedule)
    engine.sources = dict(sources or {})
    failure = ""
    with closing(engine):
        try:
            run_host_program(engine, variant, inputs, params, report_progress)
        except LaunchError as error:
            if not engine.has_launches:
                raise
            failure = error.message
        return engine.build_recording(failure)
