"""The CUDA engine: PyCUDA on the first NVIDIA GPU, with its primary context in the engine's process."""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.devices.architecture import explain_missing_warpgroups, target_architecture
from gpu.base.devices.probe import find_device_runtime, find_nvcc
from gpu.base.errors import (
    CompileError,
    EngineLostError,
    EngineUnavailableError,
    KernelError,
    LaunchError,
    SourcePosition,
)
from gpu.base.installation import OR_MAKE_SETUP, format_install_command
from gpu.base.paths import KERNELS
from gpu.engines.base import (
    OVERLAPPED,
    Argument,
    Array,
    Buffer,
    Device,
    EngineSettings,
    ExecutorChoice,
    Extent,
    Kernel,
    PhaseTimes,
    Routine,
    TensorMap,
    inline_headers,
    kernel_text,
)
from gpu.engines.cuda import libraries, tensor_maps, textures
from gpu.engines.cuda.kept_transfers import KeptTransfers
from gpu.engines.cuda.memory_pool import FreedMemoryPool, IpcMemoryCache
from gpu.files.sources import format_macros
from gpu.simulator.executor.state.memory import POISON

# A kernel's first launch must not wait for its code to be loaded, because its time is displayed.
os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")

try:
    import pycuda.driver as cuda
    from pycuda.compiler import DynamicSourceModule
    from pycuda.compiler import compile as compile_source
    from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

    from gpu.engines.cuda.lead import LeadKernel
    from gpu.engines.cuda.streams import SideStream
except ImportError as error:
    raise EngineUnavailableError(
        f"PyCUDA does not load: {error}.",
        advice=f"With an NVIDIA driver and the CUDA toolkit, run {format_install_command('cuda')}{OR_MAKE_SETUP}.",
    ) from error

_EMPTY_LAUNCHES = 21
_MAX_LEADS = 64
"""Lead kernels before a sequence, one for each launch: the CPU queues a launch in less time than one takes."""
_COMPILER_OPTIONS = ["-std=c++17", "-O3"]


@dataclass(eq=False)
class CudaBuffer:
    """An array in the GPU's memory."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    memory: Any
    textures: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True)
class CudaKernel:
    """A function of a loaded module, and its cubin; empty if it was linked with the device runtime.

    An `overlapped` one may begin before the previous launch has ended, for whose end it waits itself.
    """

    name: str
    function: Any
    image: bytes = field(default=b"", repr=False)
    load_handle: Callable[[str], ctypes.c_void_p] | None = field(default=None, repr=False)
    overlapped: bool = False


class CudaModule:
    """A compiled kernel file, loaded into the context."""

    def __init__(self, file: str, module: Any, image: bytes = b"", *, overlapped: bool = False) -> None:
        self._file = file
        self._module = module
        self._image = image
        self._overlapped = overlapped
        self._constants: dict[str, bytes] = {}
        self._handles: dict[str, ctypes.c_void_p] = {}

    def kernel(self, name: str) -> CudaKernel:
        try:
            function = self._module.get_function(name)
            return CudaKernel(name, function, self._image, self._load_handle, self._overlapped)
        except cuda.LogicError:
            raise KernelError(f"{self._file} has no kernel {name!r}.") from None

    def _load_handle(self, name: str) -> ctypes.c_void_p:
        """Return the driver's handle of a function, for launches with tensor maps or attributes."""
        if name not in self._handles:
            self._handles[name] = tensor_maps.load_function(self._image, name)
        return self._handles[name]

    def set_constant(self, name: str, values: Array) -> None:
        try:
            address, size = self._module.get_global(name)
        except cuda.LogicError:
            raise KernelError(f"{self._file} has no __constant__ variable {name!r}.") from None
        data = np.ascontiguousarray(values)
        if data.nbytes > size:
            raise KernelError(f"{name} holds {size} bytes; {data.nbytes} do not fit.")
        content = data.tobytes()
        if self._constants.get(name) != content:  # a copy waits for all streams
            cuda.memcpy_htod(address, data)
            self._constants[name] = content


def _bind_argument(argument: Argument) -> tuple[Any, Any]:
    """Return an argument's type and value for PyCUDA."""
    if isinstance(argument, CudaBuffer):
        return "P", int(argument.memory)
    assert isinstance(argument, np.generic)
    return argument.dtype, argument


def _encode_argument(argument: Argument) -> bytes:
    if isinstance(argument, TensorMap):
        buffer = argument.buffer
        assert isinstance(buffer, CudaBuffer)
        return tensor_maps.encode(int(buffer.memory), buffer.shape, buffer.dtype, argument.box_rows)
    value = np.uint64(int(argument.memory)) if isinstance(argument, CudaBuffer) else argument
    assert isinstance(value, np.generic)
    return value.tobytes()


def _float32_lanes(capability: tuple[int, int]) -> int:
    """Return float32 multiply-adds per cycle and multiprocessor (CUDA C++ Programming Guide, 8.1)."""
    return 64 if capability in ((6, 0), (7, 0), (7, 2), (7, 5), (8, 0)) else 128


class CudaEngine(EngineSettings):
    """Runs kernels on a GPU; all calls must come from the thread that created the engine and owns the context."""

    def __init__(self) -> None:
        super().__init__()
        self._nvcc = find_nvcc()
        if not self._nvcc:
            raise EngineUnavailableError(
                "nvcc, which compiles the kernels, is not installed.",
                advice=f"Install the CUDA toolkit and put its bin folder on PATH{OR_MAKE_SETUP}.",
            )
        try:
            cuda.init()
            if cuda.Device.count() == 0:
                raise EngineUnavailableError("The NVIDIA driver sees no GPU.")
            device = cuda.Device(0)
            # The primary context, because libraries use it.
            self._context = device.retain_primary_context()
            self._context.push()
        except cuda.Error as error:
            raise EngineUnavailableError(
                f"The NVIDIA driver cannot create a context: {error}.",
                advice="`nvidia-smi` shows whether the driver works and whether another program uses the GPU.",
            ) from error
        attribute = cuda.device_attribute
        self.device = Device(
            "cuda",
            device.name(),
            "gpu",
            device.get_attribute(attribute.MAX_THREADS_PER_BLOCK),
            device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK),
            device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
            device.get_attribute(attribute.MULTIPROCESSOR_COUNT)
            * _float32_lanes(device.compute_capability())
            * 2
            * device.get_attribute(attribute.CLOCK_RATE)
            / 1e6,
            libraries.explain_missing_library(),
            device.compute_capability() >= (9, 0),
            explain_missing_warpgroups("{}.{}".format(*device.compute_capability())),
            device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            device.pci_bus_id(),
        )
        self._capability = device.compute_capability()
        self.executor_choice = ExecutorChoice("gpu")
        self._modules: dict[tuple[Any, ...], CudaModule] = {}
        self._events: list[tuple[str, Any, Any]] = []
        self._last_kernel = ""
        self._launch_ms = 0.0
        self._sequence: list[Callable[[], None]] | None = None
        self._stream: SideStream | None = None
        self._kept_transfers: KeptTransfers | None = None
        self._memory = FreedMemoryPool(cuda)
        self._ipc_memory = IpcMemoryCache(cuda)

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> CudaModule:
        text = kernel_text(file, self.sources)
        key = (file, text, *sorted((defines or {}).items()))
        if key not in self._modules:
            macros = format_macros(defines or {})
            # An edited kernel may lack the wait, and its launches must not overlap then.
            waits = OVERLAPPED in (defines or {}) and file not in self.sources
            overlapped = waits and tensor_maps.has_launch_attributes()
            self._modules[key] = CudaModule(file, *self._compile(file, text, macros), overlapped=overlapped)
        return self._modules[key]

    def _compile(self, file: str, text: str, macros: list[str]) -> tuple[Any, bytes]:
        try:
            with warnings.catch_warnings():
                # PyCUDA repeats nvcc's warnings on every miss of its cache.
                warnings.filterwarnings("ignore", category=UserWarning, module="pycuda")
                warnings.filterwarnings("ignore", message="The CUDA compiler succeeded")
                options, whole = compiler_options(self._nvcc, macros), inline_headers(file, text)
                if "<<<" in text:
                    return _compile_and_link(whole, **options), b""
                image: bytes = compile_source(whole, **options, arch=target_architecture(self._capability, whole))
                return cuda.module_from_buffer(image), image
        except cuda.CompileError as error:
            log = f"{error.stdout or ''}{error.stderr or ''}".strip()
            position, message = find_first_error(log, file)
            raise CompileError(
                f"{position}: {message}" if position else f"nvcc rejects {file}: {message}",
                position=position,
                detail=f"{' '.join(map(str, error.command_line))}\n{log}",
            ) from None

    def compile_ahead(self, file: str, defines: Mapping[str, int | str]) -> None:
        """Compile a kernel file into the compiler's cache, from any thread; `build` reports errors."""
        text = kernel_text(file, self.sources)
        if "<<<" not in text:
            macros = format_macros(defines)
            whole = inline_headers(file, text)
            with suppress(cuda.CompileError):
                compile_source(
                    whole, **compiler_options(self._nvcc, macros), arch=target_architecture(self._capability, whole)
                )

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> CudaBuffer:
        # The driver may return memory that still has another run's results; poison it so that unwritten elements show.
        buffer = self._reserve(shape, dtype)
        if buffer.size:
            with self._convert_errors():
                if self._stream is not None:
                    self._stream.fill(buffer.memory, np.array([POISON], np.uint8), buffer.size)
                else:
                    cuda.memset_d8(buffer.memory, POISON, buffer.size)
        return buffer

    def _reserve(self, shape: Sequence[int], dtype: npt.DTypeLike) -> CudaBuffer:
        buffer = CudaBuffer(tuple(shape), np.dtype(dtype), None)
        try:
            try:
                buffer.memory = self._allocate_memory(buffer.size)
            except cuda.MemoryError:
                if self._kept_transfers is None:
                    raise
                self._discard_kept_transfers()
                buffer.memory = self._allocate_memory(buffer.size)
        except cuda.MemoryError:
            free, total = cuda.mem_get_info()
            raise LaunchError(
                f"There is not enough memory on the GPU for an array of {buffer.size / 2**20:.0f} MB: "
                f"{free / 2**20:.0f} of its {total / 2**20:.0f} MB are free.",
                advice="Use a smaller input, or close other programs that use the GPU.",
            ) from None
        return buffer

    def _allocate_memory(self, size: int) -> Any:
        if self._stream is None:
            return self._memory.allocate(max(size, 1))
        return self._memory.allocate_with_retry(self._stream.reserve, max(size, 1))

    def upload(self, values: Array) -> CudaBuffer:
        buffer = self._reserve(values.shape, values.dtype)
        if self._kept_transfers is None or self._stream is not None:
            self._copy_to_device(buffer, values)
            return buffer

        def upload() -> CudaBuffer:
            kept = self._reserve(values.shape, values.dtype)
            self._copy_to_device(kept, values)
            return kept

        original = self._kept_transfers.repeat("upload", values.shape, values.dtype, upload)
        if buffer.size:
            with self._convert_errors():
                cuda.memcpy_dtod_async(buffer.memory, original.memory, buffer.size)
        return buffer

    def _copy_to_device(self, buffer: CudaBuffer, values: Array) -> None:
        if buffer.size:
            with self._time_phase("upload"):
                if self._stream is not None:
                    self._stream.upload(buffer.memory, values)
                else:
                    cuda.memcpy_htod(buffer.memory, np.ascontiguousarray(values))

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        assert isinstance(buffer, CudaBuffer)
        shape = buffer.shape if count is None else (count,)
        if self._kept_transfers is None or self._stream is not None:
            return self._download(buffer, shape)
        values: Array = self._kept_transfers.repeat(
            "download", shape, buffer.dtype, lambda: self._download(buffer, shape)
        )
        return values

    def _download(self, buffer: CudaBuffer, shape: Sequence[int]) -> Array:
        values = np.empty(shape, buffer.dtype)
        if values.size:
            with self._time_phase("download"):
                if self._stream is not None:
                    self._stream.download(values, buffer.memory)
                else:
                    cuda.memcpy_dtoh(values, buffer.memory)
        return values

    @contextmanager
    def on_stream(self, number: int) -> Iterator[None]:
        self._stream = self._streams[number]
        try:
            yield
        finally:
            self._stream = None

    def join_streams(self) -> None:
        with self._convert_errors():
            for stream in self._streams:
                stream.wait()
        # Other allocations do not use this pool and could fail.
        self._device_pool.free_held()

    def enable_memory_pool(self) -> None:
        self._memory.enabled = True

    @cached_property
    def _device_pool(self) -> DeviceMemoryPool:
        return DeviceMemoryPool()

    @cached_property
    def _streams(self) -> tuple[SideStream, SideStream]:
        host = PageLockedMemoryPool()
        return SideStream(host, self._device_pool), SideStream(host, self._device_pool)

    def share(self, buffer: Buffer) -> bytes:
        assert isinstance(buffer, CudaBuffer)
        with self._convert_errors():
            self._context.synchronize()  # the other process does not wait for this one's launches
            return self._memory.share(buffer.memory)

    def copy_shared(self, handle: bytes, shape: Sequence[int], dtype: npt.DTypeLike) -> CudaBuffer:
        buffer = self._reserve(shape, dtype)
        try:
            self._ipc_memory.copy(handle, buffer.memory, buffer.size)
        except cuda.Error as error:
            self.free(buffer)
            raise OSError(f"another process's memory cannot be reached: {error}") from error
        return buffer

    def fill(self, buffer: Buffer, value: float) -> None:
        assert isinstance(buffer, CudaBuffer)
        count = buffer.size // buffer.dtype.itemsize
        if not count:
            return
        self._queue_kernel(partial(self._fill, buffer, np.array([value]).astype(buffer.dtype), count))

    def _fill(self, buffer: CudaBuffer, pattern: Array, count: int) -> None:
        if self._stream is not None:
            self._stream.fill(buffer.memory, pattern, count)
            return
        match buffer.dtype.itemsize:
            case 1:
                cuda.memset_d8(buffer.memory, int(pattern.view(np.uint8)[0]), count)
            case 2:
                cuda.memset_d16(buffer.memory, int(pattern.view(np.uint16)[0]), count)
            case 4:
                cuda.memset_d32(buffer.memory, int(pattern.view(np.uint32)[0]), count)
            case _:
                cuda.memcpy_htod(buffer.memory, np.repeat(pattern, count))

    def free(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            assert isinstance(buffer, CudaBuffer)
            self._free(buffer)

    def _free(self, buffer: CudaBuffer) -> None:
        if buffer.memory is not None and self._stream is not None and not buffer.textures:
            self._stream.discard(buffer.memory)
            buffer.memory = None
        if buffer.memory is not None:
            with self._convert_errors():
                if buffer.textures or not self._memory.enabled:
                    self._context.synchronize()  # freeing waits too, but holds Python's lock and ignores errors
                for texture in buffer.textures:
                    textures.destroy(texture)
                buffer.textures.clear()
                self._memory.release(buffer.memory)
            buffer.memory = None

    def texture(self, buffer: Buffer) -> np.uint64:
        assert isinstance(buffer, CudaBuffer)
        with self._convert_errors():
            limit = cuda.Context.get_device().get_attribute(cuda.device_attribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH)
        count = buffer.size // buffer.dtype.itemsize
        if count > limit:
            raise LaunchError(
                f"A texture over linear memory has at most {limit} elements on this GPU, not {count}.",
                advice="Use a smaller input, or a variant without textures.",
            )
        texture = textures.create(int(buffer.memory), buffer.dtype, count)
        buffer.textures.append(texture)
        return np.uint64(texture)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, CudaKernel)
        self._last_kernel = kernel.name
        if kernel.overlapped or any(isinstance(argument, TensorMap) for argument in arguments):
            self._launch_by_handle(kernel, grid, block, arguments, shared_bytes)
            return
        types, values = zip(*map(_bind_argument, arguments), strict=True) if arguments else ((), ())
        with self._convert_errors():
            kernel.function.prepare(list(types))
            attribute = cuda.function_attribute
            static_bytes = kernel.function.get_attribute(attribute.SHARED_SIZE_BYTES) if shared_bytes else 0
            if static_bytes + shared_bytes > self.device.shared_bytes_per_block:
                kernel.function.set_attribute(attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        stream = self._stream.stream if self._stream is not None else None
        launch = kernel.function.prepared_async_call
        self._queue_kernel(partial(launch, tuple(grid), tuple(block), stream, *values, shared_size=shared_bytes))

    def _launch_by_handle(
        self, kernel: CudaKernel, grid: Extent, block: Extent, arguments: Sequence[Argument], shared_bytes: int
    ) -> None:
        assert kernel.load_handle is not None
        function, values = kernel.load_handle(kernel.name), [_encode_argument(argument) for argument in arguments]
        stream = self._stream.stream.handle if self._stream is not None else 0
        run = tensor_maps.prepare_launch(
            function, grid, block, values, shared_bytes, stream, overlapped=kernel.overlapped
        )

        def launch() -> None:
            if status := run():
                raise LaunchError(f"The driver rejected {kernel.name}: error {status}.")

        self._queue_kernel(launch)

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        memories = []
        for buffer in buffers:
            assert isinstance(buffer, CudaBuffer)
            memories.append((int(buffer.memory), buffer.shape, buffer.dtype))
        self._last_kernel = "a library's kernel"
        libraries.call(routine, memories, self._time_call)

    @contextmanager
    def _time_call(self) -> Iterator[None]:
        self._queue_lead_kernel()
        with self._time_phase("kernel"):
            yield

    @cached_property
    def _lead_kernel(self) -> LeadKernel | None:
        """The lead kernel before each launch; None if it does not fit in the GPU's memory."""
        with suppress(cuda.MemoryError):
            return LeadKernel(lambda file, text: self._compile(file, text, [])[0])
        return None

    @contextmanager
    def time_as_sequence(self) -> Iterator[None]:
        # Only calls of the driver follow each other while the GPU works: all else is prepared before.
        sequence: list[Callable[[], None]] = []
        self._sequence = sequence
        try:
            yield
        finally:
            self._sequence = None
        with self._convert_errors():
            if self._lead_kernel is not None:
                for _ in range(min(len(sequence), _MAX_LEADS)):
                    self._lead_kernel.queue()
        with self._time_phase("kernel"):
            for launch in sequence:
                launch()

    def _queue_kernel(self, launch: Callable[[], None]) -> None:
        """Queue a launch or fill, which is timed; in a sequence, at its end."""
        if self._sequence is not None:
            self._sequence.append(launch)
            return
        self._queue_lead_kernel()
        with self._time_phase("kernel"):
            launch()

    def _queue_lead_kernel(self) -> None:
        if self._stream is not None:
            return  # the lead kernel's stream and these streams would wait for each other
        follows = bool(self._events) and self._events[-1][0] == "kernel"
        with self._convert_errors():
            if self._lead_kernel is not None and (self.isolates_launches or not follows):
                self._lead_kernel.queue()

    @contextmanager
    def reuse_transfers(self) -> Iterator[Callable[[], None]]:
        self._kept_transfers = transfers = KeptTransfers()
        try:
            yield transfers.begin_run
        finally:
            self._discard_kept_transfers()

    def _discard_kept_transfers(self) -> None:
        if self._kept_transfers is not None:
            transfers, self._kept_transfers = self._kept_transfers, None
            self.free(*transfers.list_kept("upload"))

    def take_times(self) -> PhaseTimes:
        with self._convert_errors():
            self._context.synchronize()
            times = {"upload": 0.0, "kernel": 0.0, "download": 0.0}
            for phase, start, end in self._events:
                times[phase] += start.time_till(end)
            launches = sum(phase == "kernel" for phase, _, _ in self._events)
            gaps = 0.0 if self.isolates_launches else self._sum_gaps()
        self._events.clear()
        return PhaseTimes(times["upload"], times["kernel"], times["download"], launches, gaps)

    def _sum_gaps(self) -> float:
        """Return the milliseconds between consecutive launches."""
        gaps: list[float] = [
            end.time_till(start)
            for (before, _, end), (phase, start, _) in pairwise(self._events)
            if before == phase == "kernel"
        ]
        return sum(gaps)

    def launch_ms(self) -> float:
        if self._lead_kernel is None:
            return 0.0
        if not self._launch_ms:
            pending, self._events = self._events, []
            times = []
            for _ in range(_EMPTY_LAUNCHES):
                self._queue_lead_kernel()
                with self._time_phase("kernel"):
                    self._lead_kernel.queue_empty_kernel()
                times.append(self.take_times().kernel)
            # A busy host can only lengthen them.
            self._launch_ms, self._events = min(times), pending
        return self._launch_ms

    def close(self) -> None:
        self._modules.clear()
        self._events.clear()
        with suppress(cuda.Error):
            self._ipc_memory.close()
        for pooled in ("_streams", "_device_pool", "_memory"):
            self.__dict__.pop(pooled, None)  # pools need the context to free their memory
        with suppress(cuda.Error):
            self._context.pop()
            self._context.detach()

    @contextmanager
    def _time_phase(self, phase: str) -> Iterator[None]:
        with self._convert_errors():
            start, end = cuda.Event(), cuda.Event()
            stream = self._stream.stream if self._stream is not None else None
            start.record(stream)
            yield
            end.record(stream)
        self._events.append((phase, start, end))

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert the driver's errors to ours; an error that destroys the context makes the engine unusable."""
        try:
            yield
        except cuda.Error as error:
            self._events.clear()
            reason = str(error).split(": ", 1)[-1].strip()
            try:
                self._context.synchronize()
            except cuda.Error:
                raise EngineLostError(
                    f"The GPU stopped {self._last_kernel or 'the run'}: {reason}.",
                    advice="Run it on the simulator, which reports the line, the thread and the index. "
                    "The engine has been restarted.",
                    detail=str(error),
                ) from None
            raise LaunchError(f"The driver rejected {self._last_kernel or 'the run'}: {reason}.") from None


def compiler_options(nvcc: str, macros: Sequence[str]) -> dict[str, Any]:
    """Return PyCUDA's options to compile a kernel file's text."""
    return {
        "nvcc": nvcc,
        "options": [*_COMPILER_OPTIONS, *macros],
        "no_extern_c": True,
        "include_dirs": [str(KERNELS)],
    }


def _compile_and_link(source: str, **options: Any) -> Any:
    """Compile kernels with child launches, and link them with the device runtime."""
    try:
        return DynamicSourceModule(source, cuda_libdir=find_device_runtime(options["nvcc"]), **options)
    except cuda.CompileError:
        raise
    except (cuda.Error, OSError) as error:
        raise CompileError(
            f"A kernel that launches kernels cannot be linked: {error}.",
            advice="It needs cudadevrt from nvcc's CUDA toolkit, in a version that the driver supports.",
        ) from None


def find_first_error(log: str, file: str) -> tuple[SourcePosition | None, str]:
    """Return the position of nvcc's first error, and its text."""
    match = re.search(r"^(\S+)\((\d+)\): (?:catastrophic |fatal )?error:? *(.*)$", log, re.MULTILINE)
    if match is None:
        return None, log.splitlines()[0] if log else "no reason given"
    return SourcePosition(Path(match[1]).name if match[1] else file, int(match[2])), match[3]
