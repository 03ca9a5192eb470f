"""The protocol that every engine implements. Host programs in `gpu/patterns/` speak nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gpu.errors import KernelError

Array = npt.NDArray[Any]

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

TO_SIMULATE = "to simulate on this CPU"
"""What is said of a time of the simulator: it is no GPU's."""

_HEADER = re.compile(r'\s*#\s*include\s*"([^"]+\.cuh)"')


def kernel_text(file: str, sources: Mapping[str, str]) -> str:
    """Return a kernel file's text: the edited one where `sources` has it. KernelError where there is no such file."""
    if file in sources:
        return sources[file]
    try:
        return (KERNELS / file).read_text(encoding="utf-8")
    except OSError:
        raise KernelError(f"There is no kernel file {file}.") from None


def whole_text(file: str, text: str) -> str:
    """Return a kernel file's text with the headers beside it written out, each line under its own file's name.

    A compiler's cache then sees all that a kernel is made of, and need not ask the preprocessor each time.
    """
    lines = [f'#line 1 "{file}"']
    for number, line in enumerate(text.split("\n"), 1):
        included = _HEADER.match(line)
        header = KERNELS / included[1] if included else None
        if header is not None and header.is_file():
            lines += [whole_text(header.name, header.read_text(encoding="utf-8")), f'#line {number + 1} "{file}"']
        else:
            lines.append(line)
    return "\n".join(lines)


@dataclass(frozen=True)
class Device:
    """What an engine runs on.

    Parameters
    ----------
    engine : str
        "cuda", "simulator" or "null".
    name : str
        As the driver or the operating system gives it.
    executor : str
        What executes a kernel: "gpu", "compiled", "lockstep" or "null".
    max_threads_per_block, shared_bytes_per_block, multiprocessors : int
        Limits that host programs shape their launches by.
    peak_gflops : float
        The roof, modeled: float32 operations a second, in 1e9, if every lane finished a multiply-add in every cycle;
        0 where that is not known.
    no_library : str
        Why a library's routine cannot be called on it, as a sentence; empty where one can.
    has_clusters : bool
        Whether blocks may be in clusters, in which they reach each other's shared memory.
    no_warpgroups : str
        Why four warps cannot multiply tiles together on it, as a sentence; empty where they can.
    shared_bytes_opt_in : int
        How much shared memory a block may have where its launch asks for so much; 0 where that is no more.
    place : str
        Which of its machine's GPUs it is, by its PCI bus; "" for what is no GPU.
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
    def most_shared_bytes(self) -> int:
        """How much shared memory a block may have at most."""
        return max(self.shared_bytes_per_block, self.shared_bytes_opt_in)


@dataclass(frozen=True)
class Executed:
    """What executed the launches since `take_times`, as in `Device.executor`; `reason` says why not a faster one."""

    executor: str
    reason: str = ""


@dataclass(frozen=True)
class PhaseTimes:
    """Milliseconds spent in each phase, measured by device events on a GPU and by a clock on the simulator.

    Of a GPU also how many launches there were, fills among them, and the milliseconds between those that follow each
    other, where they were not timed apart.
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
        """Find a `__global__` function; KernelError where there is none of that name."""
        ...

    def set_constant(self, name: str, values: Array) -> None:
        """Copy `values` to the beginning of a `__constant__` variable; KernelError where it does not fit."""
        ...


Argument = Buffer | np.generic
Routine = Callable[..., None]
"""`routine(library, *arrays)`: the library is CuPy, which has NumPy's names; the arrays are changed in place."""

Extent = Sequence[int]


class Engine(Protocol):
    """Builds kernels, holds their memory, launches and times them.

    `sources` maps a kernel file's name to text that replaces the file's, for edited kernels. `on_progress` is called
    with a fraction in 0..1 while a long launch runs, where the engine can tell; `on_compiling` with a kernel's name
    where a launch waits for its machine code.

    `apart` says that each launch is timed apart: on a GPU that is busy, with a cold cache. Without, launches follow
    each other as they do in a program, and what passes between them is told.
    """

    device: Device
    executed: Executed
    sources: dict[str, str]
    on_progress: Callable[[float], None]
    on_compiling: Callable[[str], None]
    apart: bool

    def build(self, file: str, defines: Mapping[str, int | str] = ...) -> Module:
        """Compile `kernels/<file>` with `-D` constants; cached. CompileError carries the log and our line."""
        ...

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        """Return an uninitialized buffer; LaunchError when the device's memory does not suffice."""
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

    def free(self, buffer: Buffer) -> None:
        """Give a buffer's memory back at once."""
        ...

    def texture(self, buffer: Buffer) -> Argument:
        """Return a texture object for a kernel that fetches a buffer's elements, which are integers or float32.

        It lives as long as the buffer. LaunchError where there is none, with the reason.
        """
        ...

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        """Run a kernel over `grid` blocks of `block` threads (x, y, z); scalars are NumPy scalars of the right type."""
        ...

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        """Call a library's routine on buffers, as arrays of the library's; its time counts as a kernel's.

        LaunchError where it fails, and where `device.no_library` says that there is none.
        """
        ...

    def take_times(self) -> PhaseTimes:
        """Wait for the device, return the phase times since the last call, and begin anew."""
        ...

    def launch_ms(self) -> float:
        """Return the time of a launch that does nothing, as `take_times` would give it; 0 where none is measured."""
        ...

    def close(self) -> None:
        """Give back all that the engine holds."""
        ...


@runtime_checkable
class OverlappingEngine(Engine, Protocol):
    """An engine that can copy for one launch while another runs."""

    def on_stream(self, number: int) -> AbstractContextManager[None]:
        """Queue what is asked for within the block on one of two streams, 0 or 1.

        Nothing waits for it but a download, which waits for its own stream alone. Buffers are used on the stream that
        they were made on.
        """
        ...

    def join_streams(self) -> None:
        """Wait for both, and give back what is left of them."""
        ...


@runtime_checkable
class SharingEngine(Engine, Protocol):
    """An engine whose buffers other processes of this machine can copy from device to device."""

    def share(self, buffer: Buffer) -> bytes:
        """Return by what another process finds a buffer, for as long as it is not freed."""
        ...

    def copy_shared(self, handle: bytes, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        """Return a new buffer with a copy of what another process shares; OSError where it cannot be reached."""
        ...


@runtime_checkable
class KeepingEngine(Engine, Protocol):
    """An engine that can keep what is freed for what is allocated next."""

    def keep_memory(self) -> None:
        """Give memory back to the driver when there is no room, and at the end, alone.

        It is for who has the device for itself; others would find no room.
        """
        ...
