"""Messages between the window and the engine's process: frozen requests, and events that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.declaration.pattern import Progress
from gpu.engines.base import Device, PhaseTimes
from gpu.errors import Diagnostic, SourcePosition
from gpu.messages.atomics import AtomicsStudy
from gpu.messages.bodies import BodyFigures, Camera
from gpu.messages.distributed_run import DistributedRun, WorkerStatus
from gpu.messages.judgments import Judgment
from gpu.messages.kernels import CountedLaunch, KernelLaunch, Signature, SimulationResult
from gpu.messages.lessons import LessonRequest, LessonShelf, StepScene
from gpu.messages.modeled_time import ModeledTime
from gpu.messages.programs import ProgramEnd, WholeProgram
from gpu.messages.run_counts import RunCounts
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.timelines import RunTimelines
from gpu.messages.timing import Timing
from gpu.messages.verdicts import Check
from gpu.messages.writer import Writer, WrittenElement
from gpu.schedules import ROUND_ROBIN
from gpu.timing.gpus import UNSCALED, GpuScaling


@dataclass(frozen=True)
class LoadImage:
    """Read an image file.

    The Result's arrays are `image` (with the file's values: uint8 or uint16, (height, width) or (height, width, 3)),
    `maxval` (a 0-d array with the value of white) and `picture` (uint8, for display).
    """

    path: str


@dataclass(frozen=True)
class LoadArray:
    """Read a file of numbers: .npy, or text with one number per line or, for two dimensions, one row per line.

    The Result's array is `values`: int64 if every number is an integer, else float64; it may be empty.
    """

    path: str
    dimensions: int = 1


@dataclass(frozen=True)
class LoadText:
    """Read a text file.

    The Result's array is `text`: uint8, its characters in Latin-1; others are replaced by question marks.
    """

    path: str


@dataclass(frozen=True)
class SaveArray:
    """Write an array to a file in the format of its extension: an image (.pgm, .ppm, .png), .npy or .csv.

    `maxval` is the value of white; None means the largest value of the array's type.
    """

    path: str
    array: SharedArray
    maxval: int | None = None


@dataclass(frozen=True)
class RunPattern:
    """Run one variant of a pattern.

    Parameters
    ----------
    pattern, variant : str
        Names in the declaration.
    params : mapping
        Values of the pattern's parameters; omitted ones have their defaults.
    inputs : mapping of str to SharedArray
        For image patterns: `image` and `maxval`, from LoadImage. For array patterns: `values`, from LoadArray, or
        nothing; then the input is generated from `params` and `seed`.
    seed : int
        Random seed of generated inputs.
    verify : bool
        Whether to compute the reference result and compare.
    sources : mapping of str to str
        Text of edited kernel files, by file name.
    frames : bool
        Whether to record frames between launches, if the pattern supports them.
    side : int
        Rows and columns to which an image is cropped or tiled; 0 leaves it unchanged.
    chunks : tuple of int
        For several devices, as in `gpu.distributed.distributed_run.run_distributed`; unused with one device.

    The Result's arrays are the host program's outputs and their presentation: `picture` for display; `image` with the
    input's levels if the result is an image; outlines of an array pattern's `input` and `output`; `frames`, `captions`
    and `partials`, as in `gpu.run.frames`; with `verify`, `right` and `error` from
    `gpu.declaration.arrays.present_error`.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    verify: bool = True
    sources: Mapping[str, str] = field(default_factory=dict)
    frames: bool = False
    side: int = 0
    chunks: tuple[int, ...] = ()


@dataclass(frozen=True)
class StudyAtomics:
    """Count the atomic operations of the histogram's variants, and run two threads in all interleavings.

    The Result has `atomics`. It runs in the simulator's process for every engine.

    Parameters
    ----------
    params, inputs, seed
        As in RunPattern, for the histogram.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class CheckSource:
    """Check a kernel's text without running anything.

    `file` is a name under `kernels/` or an absolute path; `text` replaces its content. The Result's `diagnostics` are
    clang's errors and warnings and, without errors, features that the simulator does not support. It runs in the
    simulator's process for every engine.
    """

    file: str
    text: str
    defines: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckPattern:
    """Check one variant of a pattern: run it in the simulator with checkers on a small part of its input.

    The Result's `check` has the findings in the pattern's kernel file, and whether several schedules agree.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in RunPattern.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CountPattern:
    """Count the operations and memory traffic of a variant's launches, on a small part of its input.

    The Result has `counts`. It runs in the simulator's process.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As in RunPattern.
    full_input : bool
        Whether to use the whole input.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    full_input: bool = False
    side: int = 0


@dataclass(frozen=True)
class FindWriter:
    """Find the thread that wrote an element of a run's result; the Result has `written_element`.

    It runs in the simulator's process.

    Parameters
    ----------
    run : RunPattern
        The run that computed the result.
    output : str
        One of its outputs.
    element : tuple of int
        Index of the element.
    device : Device or None
        Device of the run, which determines the host program's launches; None for the simulator.
    """

    run: RunPattern
    output: str
    element: tuple[int, ...]
    device: Device | None = None


@dataclass(frozen=True)
class StepWriter:
    """Record the block that wrote an element, in its launch at full size; the Result has `path`, as for StepPattern.

    Parameters
    ----------
    request : FindWriter
        The request that found the writer.
    written_element : WrittenElement
        Its result, with a known writer.
    """

    request: FindWriter
    written_element: WrittenElement

    @property
    def writer(self) -> Writer:
        """The thread that wrote the element."""
        assert self.written_element.writer is not None
        return self.written_element.writer


@dataclass(frozen=True)
class StepPattern:
    """Run one variant of a pattern in the simulator and record every step of every launch.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in RunPattern.
    schedule : str
        One of `gpu.schedules.NAMES`.

    The Result's `path` is the file of a `gpu.stepping.recording.Recording`. If a kernel's error ends a launch, the
    recording ends there and contains the error.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    schedule: str = ROUND_ROBIN
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DescribeKernels:
    """List a text's kernels with their parameters; the Result has `kernels`.

    `instances` are template instantiations to include.
    """

    file: str
    text: str
    defines: Mapping[str, str] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunKernel:
    """Run any kernel in the simulator; the Result has `simulation`, and `arrays` by the arguments' numbers."""

    launch: KernelLaunch


@dataclass(frozen=True)
class CountKernel:
    """Run any kernel in the simulator with counters; the Result has `kernel_counts`, and `arrays` as for RunKernel."""

    launch: KernelLaunch


@dataclass(frozen=True)
class StepKernel:
    """Run any kernel in the simulator and record every step; the Result has `path`, as for StepPattern."""

    launch: KernelLaunch
    schedule: str = ROUND_ROBIN


@dataclass(frozen=True)
class ModelPattern:
    """Model the time of one variant of a pattern on a described GPU; the Result has `modeled_time`.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As in RunPattern.
    gpu : str
        A key of `gpu.timing.gpus`.
    gpu_scaling : GpuScaling
        Changes to the GPU description.
    count_operations : bool
        Whether to count operations if the pattern does not declare them.
    """

    pattern: str
    variant: str
    gpu: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    side: int = 0
    gpu_scaling: GpuScaling = UNSCALED
    count_operations: bool = False


@dataclass(frozen=True)
class ModelKernel:
    """Model the time of any kernel's launch on a described GPU; the Result has `modeled_time`.

    `gpu_scaling` and `count_operations` are as in ModelPattern.
    """

    launch: KernelLaunch
    gpu: str
    gpu_scaling: GpuScaling = UNSCALED
    count_operations: bool = False


@dataclass(frozen=True)
class TimelinePattern:
    """Model when the warps of a run issue on a GPU; the Result has `timelines`, with spans in its array `spans`.

    It runs in the simulator's process for every engine.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As in RunPattern.
    gpu : str
        Key, as in `gpu.timing.gpus.find_gpu`.
    launch : int or None
        Index of the launch, with fills counted; None for the longest.
    """

    pattern: str
    variant: str
    gpu: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    side: int = 0
    launch: int | None = None


@dataclass(frozen=True)
class TimelineKernel:
    """Model when the warps of any kernel's launch issue on a GPU; the Result is as for TimelinePattern."""

    kernel: KernelLaunch
    gpu: str


@dataclass(frozen=True)
class RunProgram:
    """Run a whole program in the simulator; its output arrives as ProgramNews, and the Result has `program_end`.

    Parameters
    ----------
    program : WholeProgram
    folder : str
        An existing, empty folder for generated files and recordings.
    schedule : str
        One of `gpu.schedules.NAMES`.
    recorded_launch : int or None
        Number of the only launch to record, without checking the others; None checks all, and records small ones.
    gpu : str
        Key, as in `gpu.timing.gpus.find_gpu`, of the GPU for which launches are modeled and whose attributes the
        device reports; "" models none, and the device reports the simulator's.
    """

    program: WholeProgram
    folder: str
    schedule: str = ROUND_ROBIN
    recorded_launch: int | None = None
    gpu: str = ""


@dataclass(frozen=True)
class LoadBodies:
    """Read a file of bodies: .csv, or tipsy (.tipsy, .bin).

    The Result's array is `bodies`: float32, shape (n, 7), in columns x y z vx vy vz m.
    """

    path: str


@dataclass(frozen=True)
class SaveBodies:
    """Write the current bodies of the simulation to a file: .csv, .tipsy, .bin or .npy."""

    path: str
    simulation: int


@dataclass(frozen=True)
class AdvanceBodies:
    """Advance a simulation of bodies by `steps` time steps, then draw it.

    Parameters
    ----------
    simulation : int
        A number that the engine's process does not know starts a new simulation, of which there is one at a time; the
        same number continues it. Everything else may change between requests.
    variant : str
        Force kernel: a variant of the pattern `nbody`.
    params : mapping
        Values of the pattern's parameters; omitted ones have their defaults. `dt` and `softening` apply to these
        steps; parameters that generate bodies (`preset`, `bodies`) apply when a simulation starts.
    bodies : SharedArray or None
        Initial bodies: float32, shape (n, 7), in columns x y z vx vy vz m, from LoadBodies; None generates them from
        `params` and `seed`.
    steps : int
        0 only draws the bodies.
    camera : Camera
    width, height : int
        Size of the picture in pixels; 0 draws none.
    color : {"speed", "origin"}
        Quantity that determines the colors.
    exposure : float
        Factor of the brightness.
    measure : bool
        Whether to measure conserved quantities; the potential energy costs as much as a step.
    seed : int
        Random seed of generated bodies.
    sources : mapping of str to str
        Text of edited kernel files, by file name.

    The Result's array is `picture` (uint8, (height, width, 3)); `bodies` has the figures.
    """

    simulation: int
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    bodies: SharedArray | None = None
    steps: int = 1
    camera: Camera = field(default_factory=Camera)
    width: int = 0
    height: int = 0
    color: str = "speed"
    exposure: float = 1.0
    measure: bool = False
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PickBody:
    """Find the body at a position of the simulation's picture.

    The Result's arrays are `picked`, the body's number as a 0-d array, or -1 if none is near, and `bodies`, the current
    bodies as from LoadBodies.

    Parameters
    ----------
    simulation, camera, width, height
        As in the AdvanceBodies that drew the picture.
    x, y : float
        Pixels from the picture's top left.
    """

    simulation: int
    camera: Camera
    width: int
    height: int
    x: float
    y: float


EngineRequest = (
    LoadImage
    | LoadArray
    | LoadText
    | SaveArray
    | RunPattern
    | CheckPattern
    | CountPattern
    | StepPattern
    | FindWriter
    | StepWriter
    | CheckSource
    | StudyAtomics
    | DescribeKernels
    | RunKernel
    | CountKernel
    | StepKernel
    | ModelPattern
    | ModelKernel
    | TimelinePattern
    | TimelineKernel
    | RunProgram
    | LoadBodies
    | SaveBodies
    | AdvanceBodies
    | PickBody
)
Request = EngineRequest | LessonRequest


@dataclass(frozen=True)
class Throughput:
    """Work per second of kernel time, such as 812.5 "Mpixel/s"."""

    value: float
    unit: str


@dataclass(frozen=True)
class Deviation:
    """The largest difference from the reference: absolute, and relative to the reference's largest magnitude."""

    max_abs: float
    max_rel: float


@dataclass(frozen=True)
class Report:
    """Measurements of a run. `deviation` and `verified` are None without a reference result.

    `fallback` is the reason if a slower executor than the device's own was used. `least_bytes` is the pattern's minimum
    traffic. `timing` describes the repetitions of a run on a GPU, whose median is `time_ms`; None if it was not
    repeated.
    """

    pattern: str
    engine: str
    executor: str
    device: str
    variant: str
    time_ms: PhaseTimes
    throughput: Throughput
    deviation: Deviation | None
    verified: bool | None
    fallback: str = ""
    least_bytes: int = 0
    timing: Timing | None = None

    @property
    def simulated(self) -> bool:
        """Whether its times are those of a simulation on the CPU, not of a GPU."""
        return self.engine == "simulator"


@dataclass(frozen=True)
class Ready:
    """The engine's process is up.

    Parameters
    ----------
    device : Device
        The engine's device; for several devices the first worker's, with all names.
    note : str
        Warning about this user's folders, or "".
    workers : tuple of WorkerStatus
        Workers of a cluster; empty for one device.
    dashboard : str
        URL of Dask's dashboard of the cluster; "" if it has none.
    """

    device: Device
    note: str = ""
    workers: tuple[WorkerStatus, ...] = ()
    dashboard: str = ""


@dataclass(frozen=True)
class EngineHalt:
    """The engine's process with this number was stopped from outside while busy; None if it continues."""

    process: int | None


@dataclass(frozen=True)
class Result:
    """A request succeeded.

    Parameters
    ----------
    arrays : mapping of str to SharedArray
    report : Report or None
        For RunPattern.
    distributed : DistributedRun or None
        For RunPattern on several devices.
    path : str
        For StepPattern, the file of the recording; it exists as long as its handle in `arrays`.
    diagnostics : tuple of Diagnostic
        For CheckSource.
    check : Check or None
        For CheckPattern.
    counts : RunCounts or None
        For CountPattern.
    kernels : tuple of Signature
        For DescribeKernels.
    simulation : SimulationResult or None
        For RunKernel.
    kernel_counts : CountedLaunch or None
        For CountKernel.
    bodies : BodyFigures or None
        For AdvanceBodies.
    atomics : AtomicsStudy or None
        For StudyAtomics.
    modeled_time : ModeledTime or None
        For ModelPattern and ModelKernel.
    timelines : RunTimelines or None
        For TimelinePattern and TimelineKernel.
    written_element : WrittenElement or None
        For FindWriter.
    program_end : ProgramEnd or None
        For RunProgram.
    shelf : LessonShelf or None
        For ReadLessons.
    scene : StepScene or None
        For ShowStep and StepJudged.
    judgment : Judgment or None
        For JudgeTask.
    """

    arrays: Mapping[str, SharedArray]
    report: Report | None = None
    distributed: DistributedRun | None = None
    path: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    check: Check | None = None
    counts: RunCounts | None = None
    kernels: tuple[Signature, ...] = ()
    simulation: SimulationResult | None = None
    kernel_counts: CountedLaunch | None = None
    bodies: BodyFigures | None = None
    atomics: AtomicsStudy | None = None
    modeled_time: ModeledTime | None = None
    timelines: RunTimelines | None = None
    written_element: WrittenElement | None = None
    program_end: ProgramEnd | None = None
    shelf: LessonShelf | None = None
    scene: StepScene | None = None
    judgment: Judgment | None = None


@dataclass(frozen=True)
class Failure:
    """A request failed; it has no effects, and the next request can follow.

    Parameters
    ----------
    kind : {"input", "compile", "launch", "engine", "crash", "cancelled", "bug"}
        Cause of the failure: the input, the kernel's source, the kernel's run, the machine's configuration, death of
        the engine's process, cancellation by the user, or an error in Lockstep.
    message, advice, detail : str
        One sentence; a remedy; details of any length.
    position : SourcePosition or None
        Position in a kernel's source.
    """

    kind: str
    message: str
    advice: str = ""
    detail: str = ""
    position: SourcePosition | None = None


Event = Ready | EngineHalt | Progress | Result | Failure
