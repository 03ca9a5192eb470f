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
from gpu.messages.programs import SCRIPT
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
from gpu.messages.timing import Timing, timing_of
from gpu.patterns import find_pattern, pattern_with_lesson
from gpu.run import bodies as execute_bodies
from gpu.run import verify
from gpu.run.check import check_request
from gpu.run.count import count_request
from gpu.run.drive import Tell, accept, drive, refuse_library, refuse_missing
from gpu.run.frames import Frames
from gpu.run.repeat import phases_of, repeat
from gpu.run.sized import opened
from gpu.schedules import ROUND_ROBIN
from gpu.stepping.recording import Recording


@dataclass(frozen=True)
class Outcome:
    """A run's outputs of the host program, arrays to present, and figures."""

    outputs: Outputs
    presented: Outputs
    report: Report


def execute(engine: Engine, request: EngineRequest, folder: SharedFolder, tell: Tell) -> Result:
    """Execute a request; the result's arrays are new ones in `folder`."""
    match request:
        case LoadImage(path):
            return Result(share_arrays(_load(path), folder))
        case LoadArray(path, dimensions):
            from gpu.files import arrays as array_files

            return Result(share_arrays({"values": array_files.read_array(path, dimensions)}, folder))
        case LoadText(path):
            from gpu.files import text as text_files

            characters = text_files.read_text(path).encode("latin-1", "replace")
            return Result(share_arrays({"text": np.frombuffer(characters, np.uint8)}, folder))
        case SaveArray(path, array, maxval):
            from gpu.run import export

            export.save(path, array.open(), maxval=maxval)
            return Result({})
        case CheckSource(file, text) if file.endswith(SCRIPT):
            from gpu.pycuda.script import diagnose_script

            return Result({}, diagnostics=diagnose_script(text))
        case CheckSource(file, text, defines):
            from gpu.simulator.frontend.diagnose import diagnose

            return Result({}, diagnostics=diagnose(text, KERNELS / file, defines))
        case CheckPattern():
            return Result({}, check=check_request(request, tell))
        case CountPattern():
            return Result({}, counts=count_request(request, tell))
        case StepPattern():
            return _record(request, folder, tell)
        case FindWriter():
            from gpu.run.writer import find_writer

            return Result({}, written=find_writer(request, tell))
        case StepWriter():
            from gpu.run.writer import record_writer

            return shared_recording(record_writer(request, tell), folder)
        case StudyAtomics(params, shared, seed):
            from gpu.run.atomics import study

            arrays = {name: handle.open() for name, handle in shared.items()}
            return Result({}, atomics=study(pattern_with_lesson(ATOMICS), arrays, params, tell, seed=seed))
        case DescribeKernels(file, text, defines, instances, include_dirs):
            from gpu.kernel.signatures import signatures

            return Result({}, kernels=signatures(text, Path(file), defines, instances, include_dirs))
        case RunKernel(launch):
            from gpu.run.kernel import run_kernel

            arrays, simulated = run_kernel(launch)
            return Result(share_arrays(arrays, folder), simulated=simulated)
        case CountKernel(launch):
            from gpu.run.kernel import count_kernel

            arrays, counted_launch = count_kernel(launch)
            return Result(share_arrays(arrays, folder), counted=counted_launch)
        case StepKernel(launch, schedule):
            from gpu.run.kernel import record_kernel

            return shared_recording(record_kernel(launch, schedule), folder)
        case ModelPattern():
            from gpu.run.modeled import model_of_pattern

            return Result({}, modeled=model_of_pattern(request, tell))
        case ModelKernel():
            from gpu.run.modeled import model_of_kernel

            return Result({}, modeled=model_of_kernel(request))
        case TimelinePattern():
            from gpu.run.timelines import pattern_timelines

            return _timelines(pattern_timelines(request), folder)
        case TimelineKernel(launch, gpu):
            from gpu.run.timelines import kernel_timelines

            return _timelines(kernel_timelines(launch, gpu), folder)
        case RunProgram():
            from gpu.run.programs.running import run_program

            return Result({}, ended=run_program(request, tell))
        case LoadBodies() | SaveBodies() | AdvanceBodies() | PickBody():
            return execute_bodies.execute(engine, request, folder, tell)
    pattern = find_pattern(request.pattern)
    inputs = opened(request.inputs, request.side)
    outcome = run_pattern(
        engine,
        pattern,
        pattern.variant(request.variant),
        inputs,
        request.params,
        tell,
        with_reference=request.verify,
        sources=request.sources,
        seed=request.seed,
        frames=Frames() if request.frames else None,
    )
    return Result(share_arrays({**outcome.outputs, **outcome.presented}, folder), outcome.report)


def run_pattern(
    engine: Engine,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    tell: Tell,
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
    given : mapping
        Parameters; missing ones have their defaults.
    tell : callable
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
    params = pattern.check(given)
    inputs = pattern.inputs(inputs, params, seed)
    accept(pattern, variant, inputs, params)
    refuse_missing(variant, engine.device)
    engine.sources = dict(sources or {})
    engine.take_times()
    try:
        outputs = drive(engine, variant, inputs, params, tell, frames)
        executed, times = (frames or Frames()).finish(engine)
        timing = None
        if with_reference and engine.device.executor == "gpu":
            tell(Progress(None, "repeating the run to time it"))
            timing, times = _repeated_times(engine, pattern, variant, inputs, params, times)
    finally:
        engine.sources = {}
    presented = {**pattern.present(inputs, params, outputs), **(frames.presented() if frames is not None else {})}
    deviation, verified = None, None
    if with_reference:
        tell(Progress(None, "comparing with the reference result"))
        result, reference = verify.comparable(pattern, variant, inputs, params, outputs)
        deviation, verified = verify.compare(result, reference, pattern.tolerance(inputs, params))
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
            throughput=throughput(pattern.work(inputs, params), times),
            deviation=deviation,
            verified=verified,
            fallback=executed.reason,
            least_bytes=cost.bytes_read + cost.bytes_written,
            timing=timing,
        ),
    )


def _repeated_times(
    engine: Engine, pattern: Pattern, variant: Variant, inputs: Inputs, params: Params, first: PhaseTimes
) -> tuple[Timing, PhaseTimes]:
    """Repeat a run for its times; the result that is verified and shown is the first run's."""

    def once() -> None:
        drive(engine, variant, inputs, params, lambda progress: None)

    warm_times, consecutive_times = repeat(engine, once, first)
    parameter, size, enough = pattern.comparable(inputs, params, engine.device)
    timing = timing_of(
        warm_times, consecutive_times, launch=engine.launch_ms(), of=parameter, size=size, comparable_from=enough
    )
    return timing, phases_of(warm_times)


def throughput(work: Work, times: PhaseTimes) -> Throughput:
    """Return the work per second of kernel time, in thousands of the work's unit prefix; 0 without a measured time."""
    per_second = work.amount / (times.kernel / 1e3) if times.kernel > 0 else 0.0
    return Throughput(per_second / {"M": 1e6, "G": 1e9}[work.prefix], f"{work.prefix}{work.unit}/s")


def record(
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    given: Mapping[str, Any],
    tell: Tell,
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
    given : mapping
        Parameters; missing ones have their defaults.
    tell : callable
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
    from gpu.engines.tracing import TracingEngine  # imports its compiler, which a GPU's process does not need

    params = pattern.check(given)
    refuse_library(variant)
    inputs = pattern.inputs(pattern.step_input(inputs) if inputs else inputs, params, seed)
    accept(pattern, variant, inputs, params)
    engine = TracingEngine(schedule)
    engine.sources = dict(sources or {})
    failure = ""
    with closing(engine):
        try:
            drive(engine, variant, inputs, params, tell)
        except LaunchError as error:
            if not engine.launched:
                raise
            failure = error.message
        return engine.recording(failure)


def failure_of(error: Exception) -> Failure:
    """Turn an exception into plain data; call this while the exception is being handled."""
    match error:
        case LockstepError():
            position = error.position if isinstance(error, KernelError) else None
            return Failure(_kind(error), error.message, error.advice, error.detail, position)
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


def _kind(error: LockstepError) -> str:
    match error:
        case CompileError():
            return "compile"
        case KernelError():
            return "launch"
        case EngineUnavailableError():
            return "engine"
    return "input"


def _record(request: StepPattern, folder: SharedFolder, tell: Tell) -> Result:
    pattern = find_pattern(request.pattern)
    inputs = {name: handle.open() for name, handle in request.inputs.items()}
    variant = pattern.variant(request.variant)
    recording = record(
        pattern,
        variant,
        inputs,
        request.params,
        tell,
        sources=request.sources,
        seed=request.seed,
        schedule=request.schedule,
    )
    return shared_recording(recording, folder)


def shared_recording(recording: Recording, folder: SharedFolder) -> Result:
    """Return a recording as a result, stored in a new file of `folder`."""
    file = BytesIO()
    recording.save(file)
    handle = folder.put(np.frombuffer(file.getbuffer(), np.uint8))
    return Result({"recording": handle}, path=handle.path)


def _timelines(timelines: RunTimelines, folder: SharedFolder) -> Result:
    bare, arrays = timelines.apart()
    return Result(share_arrays(arrays, folder), timelines=bare)


def _load(path: str) -> dict[str, Array]:
    from gpu.files import images

    image = images.read_image(path)
    return {
        "image": image.pixels,
        "maxval": np.array(image.maxval, image.pixels.dtype),
        "picture": images.picture(image),
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
