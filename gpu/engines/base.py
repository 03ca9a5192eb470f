"""The protocol that every engine implements, and the only interface that host programs in `gpu/patterns/` use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gpu.base.errors import KernelError, LaunchError
from gpu.base.paths import KERNELS

Array = npt.NDArray[Any]


OVERLAPPED = "OVERLAPPED"
"""Macro of files whose kernels may all begin while the previous launch ends, and wait for its end.

By `griddepcontrol.wait`, before any access to memory (programmatic dependent launch, compute capability 9.0).
"""

SIMULATION_TIME_LABEL = "to simulate on this CPU"
"""Label of the simulator's times, which are not a GPU's."""

_HEADER = re.compile(r'\s*#\s*include\s*"([^"]+\.cuh)"')


def kernel_text(file: str, sources: Mapping[str, str]) -> str:
    """Return a kernel file's text, from `sources` if it is edited; raise KernelError if there is no such file."""
    if file in sources:
        return sources[file]
    try:
        return (KERNELS / file).read_text(encoding="utf-8")
    except OSError:
        raise KernelError(f"There is no kernel file {file}.") from None


def inline_headers(file: str, text: str) -> str:
    """Return a kernel file's text with its own headers inlined; #line directives keep file names and line numbers.

    A compiler's cache can then use the text as its key without running the preprocessor.
    """
    lines = [f'#line 1 "{file}"']
    for number, line in enumerate(text.split("\n"), 1):
        included = _HEADER.match(line)
        header = KERNELS / included[1] if included else None
        if header is not None and header.is_file():
            lines += [inline_headers(header.name, header.read_text(encoding="utf-8")), f'#line {number + 1} "{file}"']
        else:
            lines.append(line)
    return "\n".join(lines)


@dataclass(frozen=True)
class Device:
    """The device of an engine, and its limits.

    Parameters
    ----------
    engine : str
        "cuda", "simulator" or "null".
    name : str
        Its name from the driver or the operating system.
    executor : str
        "gpu", "compiled", "lockstep" or "null".
    max_threads_per_block, shared_bytes_per_block, multiprocessors : int
        Limits by which host programs choose their launch configurations.
    peak_gflops : float
        Modeled peak rate in 1e9 float32 operations per second, for one multiply-add per lane and cycle; 0 if unknown.
    no_library : str
        Sentence why library routines cannot be called on it; empty if they can.
    has_clusters : bool
        Whether it supports clusters of blocks.
    no_warpgroups : str
        Sentence why it does not support warpgroup instructions; empty if it does.
    shared_bytes_opt_in : int
        The most shared memory per block in bytes with opt-in by the launch; 0 if that is no more than without.
    place : str
        The GPU's PCI bus ID; "" if it is not a GPU.
    """

    engine: str
    name: str
    executor: str
    max_threads_per_block: int
    shared_bytes_per_block: int
    multiprocessors: int
    peak_gflops: float = 0.0
    no_library: str = ""
    has_clusters: bool = False
    no_warpgroups: str = ""
    shared_bytes_opt_in: int = 0
    place: str = ""

    @property
    def max_shared_bytes(self) -> int:
        """The most shared memory per block, in bytes."""
        return max(self.shared_bytes_per_block, self.shared_bytes_opt_in)


@dataclass(frozen=True)
class ExecutorChoice:
    """The executor of the launches since `take_times`, as in `Device.executor`, and why it was not a faster one."""

    executor: str
    reason: str = ""


@dataclass(frozen=True)
class PhaseTimes:
    """Milliseconds spent in each phase, measured by device events on a GPU and by a clock on the simulator.

    For a GPU also the number of launches and fills, and, if launches were not timed separately, the milliseconds
    between consecutive ones.
    """

    upload: float = 0.0
    kernel: float = 0.0
    download: float = 0.0
    launches: int = 0
    gaps: float = 0.0

    def __add__(self, other: PhaseTimes) -> PhaseTimes:
        return PhaseTimes(
            self.upload + other.upload,
            self.kernel + other.kernel,
            self.download + other.download,
            self.launches + other.launches,
            self.gaps + other.gaps,
        )


class Buffer(Protocol):
    """An array in the device's memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...


class Kernel(Protocol):
    """A `__global__` function of a built module."""

    @property
    def name(self) -> str: ...


class Module(Protocol):
    """A built kernel file."""

    def kernel(self, name: str) -> Kernel:
        """Return a `__global__` function; raise KernelError if there is none of that name."""
        ...

    def set_constant(self, name: str, values: Array) -> None:
        """Copy `values` to the beginning of a `__constant__` variable; raise KernelError if they do not fit."""
        ...


@dataclass(frozen=True, eq=False)
class TensorMap:
    """An argument for a parameter `const __grid_constant__ CUtensorMap`: a matrix, and a box for bulk tensor copies.

    The box is stored with the 128-byte swizzle, and its elements outside of the matrix are zeros. Tensor maps are the
    first arguments of a launch, since a parameter of this type is aligned to its size.

    Parameters
    ----------
    buffer : Buffer
        The matrix, row-major; the bytes of a row are a multiple of 16.
    box_rows : int
        Rows of the box, up to 256; its rows have 128 bytes.

    Raises
    ------
    LaunchError
        The buffer or the box does not meet these requirements.
    """

    buffer: Buffer
    box_rows: int

    def __post_init__(self) -> None:
        shape, itemsize = self.buffer.shape, self.buffer.dtype.itemsize
        if len(shape) != 2 or 0 in shape or shape[1] * itemsize % 16 or not 0 < self.box_rows <= 256:
            raise LaunchError(
                f"A tensor map needs a matrix with rows of a multiple of 16 bytes and a box of 1 to 256 rows, not "
                f"shape {shape} of {self.buffer.dtype} and {self.box_rows} rows."
            )


Argument = Buffer | TensorMap | np.generic
Routine = Callable[..., None]
"""`routine(library, *arrays)`: the library is CuPy, with NumPy's interface; the arrays are modified in place."""

Extent = Sequence[int]


class Engine(Protocol):
    """Builds kernels, manages their memory, launches and times them.

    `sources` maps a kernel file's name to text that replaces the file's, for edited kernels. `on_progress` is called
    with a fraction in 0..1 during a long launch, if the engine knows it; `on_compiling` with a kernel's name when a
    launch has to wait for its compilation.

    With `isolates_launches`, each launch is timed separately: on a busy GPU and with a cold cache. Without, launches
    follow each other as in a program, and `PhaseTimes.gaps` has the time between them.
    """

    device: Device
    executor_choice: ExecutorChoice
    sources: dict[str, str]
    on_progress: Callable[[float], None]
    on_compiling: Callable[[str], None]
    isolates_launches: bool

    def build(self, file: str, defines: Mapping[str, int | str] = ...) -> Module:
        """Compile `kernels/<file>` with `-D` constants, or return it from the cache.

        CompileError contains the compiler's log and the position in our source.
        """
        ...

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        """Return an uninitialized buffer; raise LaunchError if it does not fit in the device's memory."""
        ...

    def upload(self, values: Array) -> Buffer:
        """Return a buffer with a copy of `values`."""
        ...

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        """Return a copy of a buffer's contents; with `count` of its first elements, as one dimension."""
        ...

    def fill(self, buffer: Buffer, value: float) -> None:
        """Set every element of a buffer."""
        ...

    def free(self, *buffers: Buffer) -> None:
        """Free the memory of buffers immediately."""
        ...

    def texture(self, buffer: Buffer) -> Argument:
        """Return a texture object over a buffer of integers or float32.

        It is valid as long as the buffer. Raise LaunchError, with the reason, if it cannot be created.
        """
        ...

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        """Run a kernel.

        Parameters
        ----------
        kernel : Kernel
            A kernel of a module that this engine built.
        grid, block : sequence of int
            Blocks of the grid and threads of a block, along x, y and z.
        *arguments : Buffer or NumPy scalar
            A scalar has exactly the parameter's type, such as `numpy.int32` for `int`.
        shared_bytes : int
            Dynamic shared memory per block.

        Raises
        ------
        LaunchError
            The launch is invalid, or it fails; an asynchronous engine may raise it in a later call.
        """
        ...

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        """Call a library's routine on buffers, passed as the library's arrays; its time counts as a kernel's.

        Raise LaunchError if it fails, or if the device does not support libraries (`device.no_library`).
        """
        ...

    def take_times(self) -> PhaseTimes:
        """Wait for the device, return the phase times since the last call, and reset them."""
        ...

    def launch_ms(self) -> float:
        """Return the milliseconds of an empty launch, as `take_times` would measure it; 0 if it is not measured."""
        ...

    def close(self) -> None:
        """Release all resources of the engine."""
        ...


class EngineSettings:
    """The attributes of an `Engine` that its users may change, with their defaults."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.on_progress: Callable[[float], None] = lambda fraction: None
        self.on_compiling: Callable[[str], None] = lambda name: None
        self.isolates_launches = True


def download_and_free(engine: Engine, buffer: Buffer) -> Array:
    """Return a copy of a buffer's contents, and free the buffer."""
    contents = engine.download(buffer)
    engine.free(buffer)
    return contents


@runtime_checkable
class OverlappingEngine(Engine, Protocol):
    """An engine that can overlap copies with launches."""

    def on_stream(self, number: int) -> AbstractContextManager[None]:
        """Queue all operations within the context on one of two streams, 0 or 1.

        Only a download waits, and only for its own stream. A buffer must be used on the stream that created it.
        """
        ...

    def join_streams(self) -> None:
        """Wait for both streams, and free the memory that they no longer need."""
        ...


@runtime_checkable
class SequencingEngine(Engine, Protocol):
    """An engine that can time several launches as one."""

    def time_as_sequence(self) -> AbstractContextManager[None]:
        """Queue all fills and launches of the context at its end, and time them as one, gaps included.

        Only before the first one is the cache cold; nothing else separates them, as in a program. Errors of launches
        are raised at the end. Routines of libraries cannot be called within.
        """
        ...


@runtime_checkable
class RepeatingEngine(Engine, Protocol):
    """An engine that can repeat a run without copying its large arrays again."""

    def reuse_transfers(self) -> AbstractContextManager[Callable[[], None]]:
        """Keep the large arrays that the first run within the context copies, for its repetitions.

        The context's value is called before each repetition. In a repetition, an upload copies the array from the
        device's own memory, and a download returns the first run's array. If the device's memory does not suffice for
        the kept arrays, they are freed, and repetitions copy them.
        """
        ...


@runtime_checkable
class SharingEngine(Engine, Protocol):
    """An engine with buffers that other processes on this machine can copy from device to device."""

    def share(self, buffer: Buffer) -> bytes:
        """Return a handle by which another process can copy a buffer until it is freed."""
        ...

    def copy_shared(self, handle: bytes, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        """Return a new buffer with a copy of another process's shared buffer; raise OSError if that fails."""
        ...


@runtime_checkable
class PoolingEngine(Engine, Protocol):
    """An engine that can reuse freed memory for later allocations."""

    def enable_memory_pool(self) -> None:
        """Return freed memory to the driver only when an allocation fails, and at the end.

        For processes that are the only user of the device: others could not allocate that memory.
        """
        ...
