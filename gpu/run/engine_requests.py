"""Execute requests on an engine, in the calling process."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.arrays import present_error
from gpu.declaration.pattern import Array, Inputs, Outputs, Params, Pattern, Progress, Variant, Work
from gpu.declaration.presentation import ATOMICS, ArrayPresentation
from gpu.engines.base import KERNELS, Engine, PhaseTimes
from gpu.errors import (
    CompileError,
    EngineUnavailableError,
    KernelError,
    LaunchError,
    LockstepError,
)
from gpu.messages.programs import SCRIPT_SUFFIX
from gpu.messages.requests import (
    AdvanceBodies,
    CheckPattern,
    CheckSource,
    CountKernel,
    CountPattern,
    DescribeKernels,
    EngineRequest,
    Failure,
    FindWriter,
    LoadArray,
    LoadBodies,
    LoadImage,
    LoadText,
    ModelKernel,
    ModelPattern,
    PickBody,
    Report,
    Result,
    RunKernel,
    RunProgram,
    SaveArray,
    SaveBodies,
    StepKernel,
    StepPattern,
    StepWriter,
    StudyAtomics,
    Throughput,
    TimelineKernel,
    TimelinePattern,
)
from gpu.messages.shared_arrays import SharedArray, SharedFolder
from gpu.messages.timelines import RunTimelines
from gpu.messages.timing import Timing, summarize_timing
from gpu.patterns import find_pattern, pattern_with_lesson
from gpu.run import bodies as execute_bodies
from gpu.run import verification
from gpu.run.frames import Frames
from gpu.run.host_program import (
    ProgressCallback,
    refuse_library,
    refuse_missing_features,
    run_host_program,
    validate_inputs,
)
from gpu.run.kernel_check import execute_check_request
from gpu.run.repetition import compute_median_times, repeat_run
from gpu.run.request_inputs import open_inputs
from gpu.run.work_count import execute_count_request
from gpu.schedules import ROUND_ROBIN
from gpu.stepping.recording import Recording


@dataclass(frozen=True)
class Outcome:
    """A run's outputs of the host program, arrays to present, and figures."""

    outputs: Outputs
    presented_arrays: Outputs
    report: Report


def execute_request(
    engine: Engine, request: EngineRequest, folder: SharedFolder, report_progress: ProgressCallback
) -> Result:
    """Execute a request; the result's arrays are new ones in `folder`."""
    match request:
        case LoadImage(path):
            return Result(share_arrays(_load_image(path), folder))
        case LoadArray(path, dimensions):
            from gpu.files import arrays as array_files

            return Result(share_arrays({"values": array_files.read_array(path, dimensions)}, folder))
        case LoadText(path):
            from gpu.files import text as text_files

            characters = text_files.read_text(path).encode("latin-1", "replace")
            return Result(share_arrays({"text": np.frombuffer(characters, np.uint8)}, folder))
        case SaveArray(path, array, maxval):
            from gpu.run import export

            export.save_array(path, array.open(), maxval=maxval)
            return Result({})
        case CheckSource(file, text) if file.endswith(SCRIPT_SUFFIX):
            from gpu.pycuda.script import diagnose_script

            return Result({}, diagnostics=diagnose_script(text))
        case CheckSource(file, text, defines):
            from gpu.simulator.frontend.editor_diagnostics import diagnose

            return Result({}, diagnostics=diagnose(text, KERNELS / file, defines))
        case CheckPattern():
            return Result({}, check=execute_check_request(request, report_progress))
        case CountPattern():
            return Result({}, counts=execute_count_request(request, report_progress))
        case StepPattern():
            return _record_request(request, folder, report_progress)
        case FindWriter():
            from gpu.run.writer_search import find_writer

            return Result({}, written_element=find_writer(request, report_progress))
        case StepWriter():
            from gpu.run.writer_search import record_writer

            return share_recording(record_writer(request, report_progress), folder)
        case StudyAtomics(params, shared, seed):
            from gpu.run.atomics import study_atomics

            arrays = {name: handle.open() for name, handle in shared.items()}
            return Result(
                {}, atomics=study_atomics(pattern_with_lesson(ATOMICS), arrays, params, report_progress, seed=seed)
            )
        case DescribeKernels(file, text, defines, instances, include_dirs):
            from gpu.kernel.signatures import read_signatures

            return Result({}, kernels=read_signatures(text, Path(file), defines, instances, include_dirs))
        case RunKernel(launch):
            from gpu.run.kernel_launch import run_kernel

            arrays, simulated = run_kernel(launch)
            return Result(share_arrays(arrays, folder), simulation=simulated)
        case CountKernel(launch):
            from gpu.run.kernel_launch import count_kernel

            arrays, counted_launch = count_kernel(launch)
            return Result(share_arrays(arrays, folder), kernel_counts=counted_launch)
        case StepKernel(launch, schedule):
            from gpu.run.kernel_launch import record_kernel

            return share_recording(record_kernel(launch, schedule), folder)
        case ModelPattern():
            from gpu.run.timing_model_requests import execute_model_pattern

            return Result({}, modeled_time=execute_model_pattern(request, report_progress))
        case ModelKernel():
            from gpu.run.timing_model_requests import execute_model_kernel

            return Result({}, modeled_time=execute_model_kernel(request))
        case TimelinePattern():
            from gpu.run.timelines import model_pattern_timelines

            return _share_timelines(model_pattern_timelines(request), folder)
        case TimelineKernel(launch, gpu):
            from gpu.run.timelines import model_kernel_timelines

            return _share_timelines(model_kernel_timelines(launch, gpu), folder)
        case RunProgram():
            from gpu.run.programs.child_runner import run_program

            return Result({}, program_end=run_program(request, report_progress))
        case LoadBodies() | SaveBodies() | AdvanceBodies() | PickBody():
            return execute_bodies.execute_body_request(engine, request, folder, report_progress)
    pattern = find_pattern(request.pattern)
    inputs = open_inputs(request.inputs, request.side)
    outcome = run_pattern(
        engine,
        pattern,
        pattern.variant(request.variant),
        inputs,
        request.params,
        report_progress,
        with_reference=request.verify,
        sources=request.sources,
        seed=request.seed,
        frames=Frames() if request.frames else None,
    )
    return Result(share_arrays({**outcome.outputs, **outcome.presented_arrays}, folder), outcome.report)


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


def to_failure(error: Exception) -> Failure:
    """Turn an exception into plain data; call this while the exception is being handled."""
    match error:
        case LockstepError():
            position = error.position if isinstance(error, KernelError) else None
            return Failure(_find_failure_kind(error), error.message, error.advice, error.detail, position)
        case MemoryError():
            return Failure(
                "input",
                "There is not enough memory for this.",
                "Use a smaller input, or close other programs.",
                traceback.format_exc(),
            )
    return Failure(
        "bug",
        f"Internal error in Lockstep: {type(error).__name__}: {error}",
        "Please report it, with the details.",
        traceback.format_exc(),
    )


def _find_failure_kind(error: LockstepError) -> str:
    match error:
        case CompileError():
            return "compile"
        case KernelError():
            return "launch"
        case EngineUnavailableError():
            return "engine"
    return "input"


def _record_request(request: StepPattern, folder: SharedFolder, report_progress: ProgressCallback) -> Result:
    pattern = find_pattern(request.pattern)
    inputs = {name: handle.open() for name, handle in request.inputs.items()}
    variant = pattern.variant(request.variant)
    recording = record_pattern(
        pattern,
        variant,
        inputs,
        request.params,
        report_progress,
        sources=request.sources,
        seed=request.seed,
        schedule=request.schedule,
    )
    return share_recording(recording, folder)


def share_recording(recording: Recording, folder: SharedFolder) -> Result:
    """Return a recording as a result, stored in a new file of `folder`."""
    file = BytesIO()
    recording.save(file)
    handle = folder.put(np.frombuffer(file.getbuffer(), np.uint8))
    return Result({"recording": handle}, path=handle.path)


def _share_timelines(timelines: RunTimelines, folder: SharedFolder) -> Result:
    bare, arrays = timelines.split_spans()
    return Result(share_arrays(arrays, folder), timelines=bare)


def _load_image(path: str) -> dict[str, Array]:
    from gpu.files import images

    image = images.read_image(path)
    return {
        "image": image.pixels,
        "maxval": np.array(image.maxval, image.pixels.dtype),
        "picture": images.convert_for_display(image),
    }


def share_arrays(arrays: Mapping[str, Array], folder: SharedFolder) -> dict[str, SharedArray]:
    """Copy arrays into the folder, an array with two names once; on an error, remove all copies."""
    handles: dict[int, SharedArray] = {}
    try:
        for values in arrays.values():
            if id(values) not in handles:
                handles[id(values)] = folder.put(values)
    except BaseException:
        for handle in handles.values():
            folder.discard(handle)
        raise
    return {name: handles[id(values)] for name, values in arrays.items()}
