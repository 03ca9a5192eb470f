"""Run one variant of a pattern and compare its result with the reference result, or record all its steps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace

from gpu.base.errors import LaunchError
from gpu.base.schedules import ROUND_ROBIN
from gpu.declaration.arrays import present_error
from gpu.declaration.pattern import Outputs, Progress, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.engines.base import Device, Engine, PhaseTimes, RepeatingEngine
from gpu.messages.runs.pattern_runs import Report, Throughput
from gpu.messages.runs.timing import Timing, summarize_timing
from gpu.recording.recording import Recording
from gpu.run import verification
from gpu.run.frames import Frames
from gpu.run.host_program import ProgressCallback, refuse_library, refuse_missing_features, run_host_program
from gpu.run.repetition import compute_median_times, repeat_run
from gpu.run.workload import Workload


@dataclass(frozen=True)
class Outcome:
    """A run's outputs of the host program, arrays to present, and figures."""

    outputs: Outputs
    presented_arrays: Outputs
    report: Report


def run_pattern(
    engine: Engine,
    workload: Workload,
    report_progress: ProgressCallback,
    *,
    with_reference: bool = True,
    frames: Frames | None = None,
) -> Outcome:
    """Run one variant and, with `with_reference`, compare its result with the reference result.

    On a GPU, a compared run is repeated for its time: the report's times are medians, and its `timing` contains the
    spread.

    Parameters
    ----------
    report_progress : callable
        Called with the progress.
    frames : Frames or None
        Takes pictures between launches, if the pattern offers any.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile or fails.
    """
    workload = workload.prepare()
    variant = workload.variant
    refuse_missing_features(variant, engine.device)
    engine.sources = dict(workload.sources)
    is_timed = with_reference and engine.device.executor == "gpu"
    timing = None
    engine.take_times()
    try:
        with _reuse_transfers(engine, is_timed) as begin_run:
            outputs = run_host_program(engine, variant, workload.inputs, workload.params, report_progress, frames)
            executed, times = (frames or Frames()).finish(engine)
            if is_timed:
                report_progress(Progress(None, "repeating the run to time it"))
                timing, times = _repeat_run_times(engine, workload, times, begin_run)
    finally:
        engine.sources = {}
    if with_reference:
        report_progress(Progress(None, "comparing with the reference result"))
    report = create_report(workload, replace(engine.device, executor=executed.executor), times)
    report = replace(report, fallback=executed.reason, timing=timing)
    outcome = build_outcome(workload, outputs, report, verify=with_reference)
    pictures = frames.collect_arrays() if frames is not None else {}
    return replace(outcome, presented_arrays={**outcome.presented_arrays, **pictures})


def create_report(workload: Workload, device: Device, times: PhaseTimes) -> Report:
    """Return the report of a run on a device, before its result is compared."""
    throughput = compute_throughput(workload.pattern.work(workload.inputs, workload.params), times)
    return Report(
        workload.pattern.name, device.engine, device.executor, device.name, workload.variant.name, times, throughput
    )


def build_outcome(workload: Workload, outputs: Outputs, report: Report, *, verify: bool = True) -> Outcome:
    """Return the outcome of a run that has ended.

    Parameters
    ----------
    workload : Workload
        With the complete inputs and parameters.
    outputs : mapping of str to array
        The outputs of the host program.
    report : Report
        The device and the times; the comparison and `least_bytes` are added.
    verify : bool
        Whether to compare the outputs with the reference result.
    """
    pattern, variant, inputs, params = workload.pattern, workload.variant, workload.inputs, workload.params
    with ThreadPoolExecutor(1) as pool:
        reference = pool.submit(pattern.reference, inputs, params) if verify else None
        presented = dict(pattern.present(inputs, params, outputs))
    cost = pattern.cost(inputs, params)
    report = replace(report, least_bytes=cost.bytes_read + cost.bytes_written)
    if reference is not None:
        result, expected = verification.prepare_comparison(
            pattern, variant, inputs, params, outputs, reference=reference.result()
        )
        deviation, verified = verification.compare_results(result, expected, pattern.tolerance(inputs, params))
        report = replace(report, deviation=deviation, verified=verified)
        if isinstance(pattern.presentation, ArrayPresentation) and result.shape == expected.shape:
            presented |= present_error(result, expected)
    return Outcome(outputs, presented, report)


def _reuse_transfers(engine: Engine, is_timed: bool) -> AbstractContextManager[Callable[[], None]]:
    if is_timed and isinstance(engine, RepeatingEngine):
        return engine.reuse_transfers()
    return nullcontext(lambda: None)


def _repeat_run_times(
    engine: Engine, workload: Workload, first_times: PhaseTimes, begin_run: Callable[[], None]
) -> tuple[Timing, PhaseTimes]:
    """Repeat a run for its times; the result that is verified and shown is the first run's."""
    pattern, inputs, params = workload.pattern, workload.inputs, workload.params

    def run_once() -> None:
        run_host_program(engine, workload.variant, inputs, params, lambda progress: None)

    warm_times, consecutive_times = repeat_run(engine, run_once, first_times, begin_run=begin_run)
    parameter, size, enough = pattern.comparison_sizes(inputs, params, engine.device)
    timing = summarize_timing(
        warm_times,
        consecutive_times,
        empty_launch=engine.launch_ms(),
        size_parameter=parameter,
        size=size,
        comparable_from=enough,
    )
    return timing, compute_median_times(first_times, warm_times)


def compute_throughput(work: Work, times: PhaseTimes) -> Throughput:
    """Return the work per second of kernel time, in thousands of the work's unit prefix; 0 without a measured time."""
    per_second = work.amount / (times.kernel / 1e3) if times.kernel > 0 else 0.0
    return Throughput(per_second / {"M": 1e6, "G": 1e9}[work.prefix], f"{work.prefix}{work.unit}/s")


def record_pattern(workload: Workload, report_progress: ProgressCallback, *, schedule: str = ROUND_ROBIN) -> Recording:
    """Run one variant on the simulator and return the recording of all its launches.

    An error of a kernel while it runs ends the recording, which contains the message.

    Parameters
    ----------
    workload : Workload
        Its inputs are reduced to a size that can be watched.
    report_progress : callable
        Called with the progress.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile, or its launch is not valid on any GPU.
    """
    from gpu.engines.tracing_engine import TracingEngine  # imports its compiler, which a GPU's process does not need

    refuse_library(workload.variant)
    if workload.inputs:
        workload = replace(workload, inputs=workload.pattern.step_input(workload.inputs))
    workload = workload.prepare()
    engine = TracingEngine(schedule)
    engine.sources = dict(workload.sources)
    failure = ""
    with closing(engine):
        try:
            run_host_program(engine, workload.variant, workload.inputs, workload.params, report_progress)
        except LaunchError as error:
            if not engine.has_launches:
                raise
            failure = error.message
        return engine.build_recording(failure)
