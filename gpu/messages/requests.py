"""What crosses the border between the window and the engine's process: frozen requests in, events out, plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.declaration.pattern import Progress
from gpu.engines.base import Device, PhaseTimes
from gpu.errors import Diagnostic, SourcePosition
from gpu.messages.atomics import AtomicsStudy
from gpu.messages.bodies import BodyFigures, Camera
from gpu.messages.counted import RunCounts
from gpu.messages.distributed import DistributedRun, WorkerStatus
from gpu.messages.judgments import Judgment
from gpu.messages.kernels import CountedLaunch, KernelLaunch, Signature, Simulated
from gpu.messages.lessons import LessonRequest, LessonShelf, ShownScene
from gpu.messages.modeled import ModeledTime
from gpu.messages.programs import ProgramEnd, WholeProgram
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.timelines import RunTimelines
from gpu.messages.timing import Timing
from gpu.messages.verdicts import Check
from gpu.messages.writer import Writer, WrittenElement
from gpu.schedules import ROUND_ROBIN
from gpu.timing.gpus import AS_DESCRIBED, Supposed


@dataclass(frozen=True)
class LoadImage:
    """Read an image file.

    The Result's arrays are `image` (as it is in the file: uint8 or uint16, (height, width) or (height, width, 3)),
    `maxval` (a 0-d array: the value of white) and `picture` (uint8, for a screen).
    """

    path: str


@dataclass(frozen=True)
class LoadArray:
    """Read a file of numbers: .npy, or text with one number a line, for two dimensions one row.

    The Result's array is `values`: int64 where every number is whole, else float64; perhaps empty.
    """

    path: str
    dimensions: int = 1


@dataclass(frozen=True)
class LoadText:
    """Read a file of text.

    The Result's array is `text`: uint8, its characters in Latin-1, question marks for those that are not in it.
    """

    path: str


@dataclass(frozen=True)
class SaveArray:
    """Write an array to a file, its format chosen by the extension: an image (.pgm, .ppm, .png), .npy or .csv.

    `maxval` is the value of white, where that is not the largest of the array's type.
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
        Names of the declaration.
    params : mapping
        Values of the pattern's parameters; those left out take their defaults.
    inputs : mapping of str to SharedArray
        For the image patterns: `image` and `maxval`, as a LoadImage gave them. For the array patterns: `values`, as a
        LoadArray gave them, or nothing: then the input is made from `params` and `seed`.
    seed : int
        What random inputs grow from.
    verify : bool
        Whether to compute the reference and compare.
    sources : mapping of str to str
        Edited kernel files: text by file name.
    frames : bool
        Whether to take pictures between launches, where the pattern offers them.
    side : int
        Rows and columns that an image is cut or repeated to; 0 leaves it as it is.
    chunks : tuple of int
        On several devices, as `gpu.distributed.run.run_distributed` takes them; one device has no chunks.

    The Result's arrays are the host program's outputs, and what the pattern presents of them: `picture` for a screen,
    `image` with the input's levels where the result is an image; outlines of an array pattern's `input` and `output`;
    `frames`, `captions` and `partials`, as `gpu.run.frames` has them; with `verify`, `right` and `error` as
    `gpu.declaration.arrays.present_error` gives them.
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
    """Count the atomics of the histogram's variants on the simulator, and race two threads in all their orders.

    The Result's `atomics` is what was found. It takes the simulator's process, whatever the engine that runs.

    Parameters
    ----------
    params, inputs, seed
        As of a RunPattern of the histogram.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class CheckSource:
    """Say what is wrong with a kernel's text, without running anything.

    `file` is a name under `kernels/` or an absolute path; `text` is checked in its place. The Result's `diagnostics`
    are clang's errors and warnings; where there is no error, also what the simulator does not support. It takes the
    simulator's process, whatever the engine that runs the kernel.
    """

    file: str
    text: str
    defines: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckPattern:
    """Run one variant of a pattern on the simulator, on a small part of its input, before the eyes of the checkers.

    The Result's `check` is what they find in the pattern's kernel file, and whether several orders of threads agree.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As of a RunPattern.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CountPattern:
    """Run one variant of a pattern on the simulator, on a small part of its input, and count what its launches do.

    The Result's `counts` is what was counted. It takes the simulator's process.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As of a RunPattern.
    whole : bool
        Whether all of the input is counted.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    side: int = 0


@dataclass(frozen=True)
class FindWriter:
    """Say which thread wrote an element of a run's result: the Result's `written`. It takes the simulator's process.

    Parameters
    ----------
    run : RunPattern
        The run, as it was asked for.
    output : str
        One of its outputs.
    element : tuple of int
        An index there.
    device : Device or None
        What it ran on, by whose limits host programs shape their launches; None for the simulator.
    """

    run: RunPattern
    output: str
    element: tuple[int, ...]
    device: Device | None = None


@dataclass(frozen=True)
class StepWriter:
    """Record the block that wrote an element, in its launch at true size: the Result's `path`, as of a StepPattern.

    Parameters
    ----------
    find : FindWriter
        What was asked.
    written : WrittenElement
        What was found, with its writer.
    """

    find: FindWriter
    written: WrittenElement

    @property
    def writer(self) -> Writer:
        """The thread that wrote the element."""
        assert self.written.writer is not None
        return self.written.writer


@dataclass(frozen=True)
class StepPattern:
    """Run one variant of a pattern on the simulator and record every step of every launch.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As of a RunPattern.
    schedule : str
        The order in which warps and lanes run: one of `gpu.schedules.NAMES`.

    The Result's `path` names the file of a `gpu.stepping.recording.Recording`. A launch that ends at a kernel's mistake
    is recorded up to there; the recording says which.
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
    """Say which kernels a text has, and what they take: the Result's `kernels`.

    `instances` are instantiations of its templates that are wanted too.
    """

    file: str
    text: str
    defines: Mapping[str, str] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunKernel:
    """Run any kernel on the simulator: the Result's `simulated`, and `arrays` by the arguments' numbers."""

    launch: KernelLaunch


@dataclass(frozen=True)
class CountKernel:
    """Run any kernel on the simulator and count what it does: the Result's `counted`, and `arrays` as of RunKernel."""

    launch: KernelLaunch


@dataclass(frozen=True)
class StepKernel:
    """Run any kernel on the simulator and record every step of it: the Result's `path`, as of a StepPattern."""

    launch: KernelLaunch
    schedule: str = ROUND_ROBIN


@dataclass(frozen=True)
class ModelPattern:
    """Say how long one variant of a pattern would take on a GPU that is described: the Result's `modeled`.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As of a RunPattern.
    gpu : str
        A key of `gpu.timing.gpus`.
    supposed : Supposed
        What that GPU has otherwise.
    operations : bool
        Whether operations are counted where the pattern does not say how many there are.
    """

    pattern: str
    variant: str
    gpu: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    side: int = 0
    supposed: Supposed = AS_DESCRIBED
    operations: bool = False


@dataclass(frozen=True)
class ModelKernel:
    """Say how long a launch of any kernel would take on a GPU that is described: the Result's `modeled`.

    `supposed` and `operations` are as of a ModelPattern.
    """

    launch: KernelLaunch
    gpu: str
    supposed: Supposed = AS_DESCRIBED
    operations: bool = False


@dataclass(frozen=True)
class TimelinePattern:
    """Say when the warps of a run would issue on a GPU: the Result's `timelines`, their spans its array `spans`.

    It takes the simulator's process, whatever the engine that runs.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources, side
        As of a RunPattern.
    gpu : str
        A key, as of `gpu.timing.gpus.find_gpu`.
    launch : int or None
        Which of the launches, counted with fills; None for that which would take longest.
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
    """Say when the warps of any kernel's launch would issue on a GPU: as of a TimelinePattern."""

    kernel: KernelLaunch
    gpu: str


@dataclass(frozen=True)
class RunProgram:
    """Run a whole program on the simulator: its news come as ProgramNews, and how it ended is the Result's `ended`.

    Parameters
    ----------
    program : WholeProgram
    folder : str
        A folder that is there and empty: for what is made of the program, and the recordings of its launches.
    schedule : str
        One of `gpu.schedules.NAMES`.
    only : int or None
        The number of the only launch that is recorded, without checking the others; None checks all, and records those
        that are small.
    gpu : str
        A key, as of `gpu.timing.gpus.find_gpu`, of the GPU that launches are modeled for, and that the device says it
        is; "" models none, and the device is the simulator's own.
    """

    program: WholeProgram
    folder: str
    schedule: str = ROUND_ROBIN
    only: int | None = None
    gpu: str = ""


@dataclass(frozen=True)
class LoadBodies:
    """Read a file of bodies: .csv, or tipsy (.tipsy, .bin).

    The Result's array is `bodies`: float32, shape (n, 7), in columns x y z vx vy vz m.
    """

    path: str


@dataclass(frozen=True)
class SaveBodies:
    """Write the bodies of the simulation that goes on, as they are now, to a file: .csv, .tipsy, .bin or .npy."""

    path: str
    simulation: int


@dataclass(frozen=True)
class AdvanceBodies:
    """Advance a simulation of bodies by `steps` time steps, then draw it.

    Parameters
    ----------
    simulation : int
        A number that the engine's process does not know yet begins a simulation, of which there is one at a time; the
        same number goes on with it. Everything else may change from request to request.
    variant : str
        Of the pattern `nbody`: the force kernel.
    params : mapping
        Values of the pattern's parameters; those left out take their defaults. `dt` and `softening` count for these
        steps; what makes bodies (`preset`, `bodies`) counts when a simulation begins.
    bodies : SharedArray or None
        What a simulation begins with: float32, shape (n, 7), in columns x y z vx vy vz m, as LoadBodies gives them;
        None makes them from `params` and `seed`.
    steps : int
        0 only draws.
    camera : Camera
    width, height : int
        Pixels of the picture; with 0 of them none is drawn.
    color : {"speed", "origin"}
        By what bodies are colored.
    exposure : float
        A factor of the light.
    measure : bool
        Whether to measure what should be conserved: the potential energy costs as much as a step.
    seed : int
        What generated bodies grow from.
    sources : mapping of str to str
        Edited kernel files: text by file name.

    The Result's array is `picture` (uint8, (height, width, 3)), and `bodies` its figures.
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
    """Say which body of the simulation that goes on is seen at a place of its picture.

    The Result's arrays are `picked`, the body's number as a 0-d array, -1 where there is none near, and `bodies`, as
    they are now and as of LoadBodies.

    Parameters
    ----------
    simulation, camera, width, height
        As of the AdvanceBodies that has drawn it.
    x, y : float
        In pixels from the picture's top left.
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
    """Work done per second of kernel time, such as 812.5 "Mpixel/s"."""

    value: float
    unit: str


@dataclass(frozen=True)
class Deviation:
    """The largest difference from the reference: absolute, and relative to the reference's largest magnitude."""

    max_abs: float
    max_rel: float


@dataclass(frozen=True)
class Report:
    """What a run measured. `deviation` and `verified` are None where no reference was computed.

    `fallback` says why a slower executor than the device's own ran it. `least_bytes` is what the pattern must read and
    write, whatever the variant. `timing` says how a run on a GPU was repeated, of which `time_ms` is the median; None
    where it was not.
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
        """Whether its times are what a CPU took to simulate it: no GPU's."""
        return self.engine == "simulator"


@dataclass(frozen=True)
class Ready:
    """The engine's process is up.

    Parameters
    ----------
    device : Device
        What it runs on; of several devices the first worker's, and their names.
    note : str
        What it has to say of this user's folders, or "".
    workers : tuple of WorkerStatus
        Of a cluster; of one device none.
    dashboard : str
        Where Dask's own page on that cluster is; "" where it has none.
    """

    device: Device
    note: str = ""
    workers: tuple[WorkerStatus, ...] = ()
    dashboard: str = ""


@dataclass(frozen=True)
class Halted:
    """The engine's process, of this number, was stopped from outside in the middle of work; None: it goes on."""

    process: int | None


@dataclass(frozen=True)
class Result:
    """A request succeeded.

    Parameters
    ----------
    arrays : mapping of str to SharedArray
    report : Report or None
        Of a RunPattern.
    distributed : DistributedRun or None
        Of a RunPattern on several devices.
    path : str
        Of a StepPattern the file of the recording, which is there for as long as its handle in `arrays`.
    diagnostics : tuple of Diagnostic
        Of a CheckSource.
    check : Check or None
        Of a CheckPattern.
    counts : RunCounts or None
        Of a CountPattern.
    kernels : tuple of Signature
        Of a DescribeKernels.
    simulated : Simulated or None
        Of a RunKernel.
    counted : CountedLaunch or None
        Of a CountKernel.
    bodies : BodyFigures or None
        Of an AdvanceBodies.
    atomics : AtomicsStudy or None
        Of a StudyAtomics.
    modeled : ModeledTime or None
        Of a ModelPattern or a ModelKernel.
    timelines : RunTimelines or None
        Of a TimelinePattern or a TimelineKernel.
    written : WrittenElement or None
        Of a FindWriter.
    ended : ProgramEnd or None
        Of a RunProgram.
    shelf : LessonShelf or None
        Of a ReadLessons.
    scene : ShownScene or None
        Of a ShowStep or a StepJudged.
    judgment : Judgment or None
        Of a JudgeTask.
    """

    arrays: Mapping[str, SharedArray]
    report: Report | None = None
    distributed: DistributedRun | None = None
    path: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    check: Check | None = None
    counts: RunCounts | None = None
    kernels: tuple[Signature, ...] = ()
    simulated: Simulated | None = None
    counted: CountedLaunch | None = None
    bodies: BodyFigures | None = None
    atomics: AtomicsStudy | None = None
    modeled: ModeledTime | None = None
    timelines: RunTimelines | None = None
    written: WrittenElement | None = None
    ended: ProgramEnd | None = None
    shelf: LessonShelf | None = None
    scene: ShownScene | None = None
    judgment: Judgment | None = None


@dataclass(frozen=True)
class Failure:
    """A request failed; nothing of it remains and the next request is welcome.

    Parameters
    ----------
    kind : {"input", "compile", "launch", "engine", "crash", "cancelled", "bug"}
        Who can mend it: the input, the kernel's source, the kernel's run, the machine's set-up; or the engine's
        process died, the user stopped it, or Lockstep itself is at fault.
    message, advice, detail : str
        One sentence; what to do; evidence of any length.
    position : SourcePosition or None
        Where in a kernel's source.
    """

    kind: str
    message: str
    advice: str = ""
    detail: str = ""
    position: SourcePosition | None = None


Event = Ready | Halted | Progress | Result | Failure
