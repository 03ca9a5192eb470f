"""Runtime API of a program's host code: routines called by name and executed by the simulator."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import CompileError, KernelError, LaunchError, LockstepError
from gpu.base.resource_limits import limit_resources
from gpu.hosts.driver.attributes import VALUE_BY_NUMBER, device_name
from gpu.hosts.driver.faults import INVALID_VALUE as INVALID
from gpu.hosts.driver.faults import DriverError, DriverLaunchError, DriverMemoryError
from gpu.hosts.driver.launches import LoadedModule, compute_parameter_layout
from gpu.hosts.driver.memory import (
    GlobalMemory,
    address_of,
    bytes_at,
    copy_device_bytes,
    free_memory,
    new_memory,
    total_memory,
    writable_bytes_at,
)
from gpu.hosts.program import errors
from gpu.hosts.program.delayed_streams import ASYNCHRONOUS_ROUTINES, UNORDERED_ROUTINES, DelayedStreams
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.graphs import LEGACY_ROUTINES, NON_BLOCKING, GraphStep, Operation, ProgramGraphs
from gpu.hosts.program.mapped_memory import MappedMemories, access_host, host_view
from gpu.hosts.program.modules import ProgramModules
from gpu.hosts.program.names import kernel_name
from gpu.hosts.program.overlaps import OverlapChecker
from gpu.hosts.program.program_units import ProgramUnit, link_units
from gpu.hosts.program.textures import ProgramTextures
from gpu.simulator.checkers.races.footprints import Span
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import to_pointer
from gpu.simulator.limits import LIMITS
from gpu.simulator.simulated_module import SimulatedModule

Array = npt.NDArray[Any]
Arguments = Sequence[int]

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_longlong, ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong), ctypes.c_int)

_FROM_DEVICE, _TO_DEVICE = (2, 3), (1, 3)
_DEFAULT = 4
_PITCH = 512
_HOST, _DEVICE, _MANAGED = 1, 2, 3
_DYNAMIC_SHARED_BYTES, _CARVEOUT = 8, 9
_KERNEL_ATTRIBUTES = (_DYNAMIC_SHARED_BYTES, _CARVEOUT, *range(10, 16))
"""Numbers of `cudaFuncAttribute` that can be set."""
_PROGRAM_ATTRIBUTES = {95: 1, 96: 0, 102: 1}
"""Values of attributes by number: launches whose blocks wait for each other, on several devices; virtual memory."""
_GREATEST_PRIORITY = -5
"""The greatest priority of a stream, as of recent GPUs; priorities do not change the order of operations here."""
_INTERNAL_ERROR = 70
"""Exit code of an internal error, as in sysexits.h."""
_ERROR_NUMBERS = {text: number for number, (_, text) in errors.ERRORS.items()}


@dataclass
class _Variable:
    """A device variable with its counterpart on the host."""

    unit: int
    name: str
    address: int
    size: int
    managed: bool


@dataclass
class Runtime:
    """Runtime API of a program.

    Parameters
    ----------
    units : sequence of ProgramUnit
        The program's files, by number.
    on_launch : callable
        Called after each launch, with whether the simulator has refused a kernel.
    delayed : DelayedStreams or None
        Streams whose operations run as late as the program allows; None if they run at once.
    overlaps : OverlapChecker or None
        Compares operations that may run at the same time; its streams are `delayed`.
    """

    units: Sequence[ProgramUnit]
    on_launch: Callable[[bool], None] = lambda refused: None
    delayed: DelayedStreams | None = None
    overlaps: OverlapChecker | None = None
    reported_errors: list[str] = field(default_factory=list)
    _modules: dict[int, LoadedModule] = field(default_factory=dict)
    _linked: dict[int, LoadedModule | None] = field(default_factory=dict)
    _kernels: dict[tuple[int, int, str], tuple[LoadedModule, str, SimulatedKernel]] = field(default_factory=dict)
    _memories: dict[int, FlatMemory] = field(default_factory=dict)
    _mapped: MappedMemories = field(default_factory=MappedMemories)
    _registered: dict[int, GlobalMemory] = field(default_factory=dict)
    _variables: dict[int, _Variable] = field(default_factory=dict)
    _events: dict[int, float] = field(default_factory=dict)
    _priorities: dict[int, int] = field(default_factory=dict)
    _handles: itertools.count[int] = field(default_factory=lambda: itertools.count(0x1000, 0x10))
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _last_error: int = 0
    _sticky_error: int = 0
    _warned: set[str] = field(default_factory=set)
    _depth: int = 0
    """The number of routines that run: more than one if host functions of streams call them."""

    def __post_init__(self) -> None:
        self._textures = ProgramTextures(self._view_array_side)
        self._graphs = ProgramGraphs(self._bind_operation)
        folders = dict.fromkeys(unit.path.parent for unit in self.units)
        self._program_modules = ProgramModules(self.add_module, self.module, tuple(folders))

    def execute_routine(self, name: bytes, arguments: Any, count: int) -> int:
        """Execute a routine; return its error number. Threads of the program take turns."""
        with self._lock:
            if self.overlaps is None or self._depth:
                return self._execute_routine(name.decode(), arguments, count)
            self.overlaps.begin_routine()
            self._depth += 1
            try:
                return self._execute_routine(name.decode(), arguments, count)
            finally:
                self._depth -= 1
                self.overlaps.end_routine()

    def _execute_routine(self, routine: str, arguments: Any, count: int) -> int:
        try:
            if self.delayed is not None:
                self._finish_delayed(self.delayed, routine, arguments)
            if self._sticky_error and routine not in _ALLOWED_AFTER_ERROR:
                raise RefusedRoutineError(self._sticky_error)
            self._graphs.check_routine(routine)
            implementation = self.find_implementation(routine)
            if self.overlaps is not None and routine in LEGACY_ROUTINES:
                self.overlaps.streams.submit(0, partial(implementation, *arguments[:count]))
                self.overlaps.streams.finish_stream(0)
                return 0
            result: int | None = implementation(*arguments[:count])
            return result or 0
        except RefusedRoutineError as refused:
            code = refused.code
        except DriverMemoryError as error:
            self._warn_once("memory", f"{error}. Use smaller sizes.")
            code = errors.NO_MEMORY
        except DriverError as error:
            code = _ERROR_NUMBERS.get(error.reason, errors.INVALID_VALUE)
        except LockstepError as error:
            self._report_error(error)
            code = errors.INVALID_FUNCTION
        except MemoryError:
            code = errors.NO_MEMORY
        except Exception:
            # There is only the program above, which could not report the error.
            self.report_internal_error(traceback.format_exc())
            os._exit(_INTERNAL_ERROR)
        self._last_error = code
        return code

    def report_internal_error(self, trace: str) -> None:
        """Report an error of Lockstep, not of the program, which ends then."""
        sys.stderr.write(trace)

    def _finish_delayed(self, delayed: DelayedStreams, routine: str, arguments: Any) -> None:
        """Run the delayed operations for which a routine waits."""
        if routine in UNORDERED_ROUTINES:
            return
        if routine == "stream_synchronize":
            delayed.finish_stream(arguments[0])
        elif routine == "event_synchronize":
            delayed.finish_event(arguments[0])
        elif routine == "event_elapsed":
            delayed.finish_event(arguments[1])
            delayed.finish_event(arguments[2])
        elif routine in LEGACY_ROUTINES:
            delayed.finish_stream(0)
        else:
            delayed.finish_all()

    def watch_host(self, shared_object: str) -> None:
        """Compare accesses of the program, a shared object, to mapped memory with operations on the device."""
        if self.overlaps is not None:
            self.overlaps.watch_host(self._mapped, shared_object, lambda: self.on_launch(bool(self.reported_errors)))

    @property
    def allocation_count(self) -> int:
        """The number of allocations of device memory that have not been freed."""
        return len(self._memories)

    @property
    def memories(self) -> list[FlatMemory]:
        """The memory that kernels can access: allocations of the device, and mapped and registered memory."""
        return [*self._memories.values(), *self._mapped.memories.values(), *self._registered.values()]

    def find_implementation(self, routine: str) -> Callable[..., int | None]:
        """Return the method that executes a routine."""
        owners = (self, self._textures, self._graphs, self._program_modules)
        owner = next(each for each in owners if hasattr(each, f"do_{routine}"))
        method: Callable[..., int | None] = getattr(owner, f"do_{routine}")
        return method

    def report_refused_launch(self, location: str, reason: str) -> None:
        """Report a launch with an invalid configuration; `location` is its file and line, "scale.cu:12"."""
        self._warn_once("launch", f"The launch at {location} fails. {reason}")

    def _warn_once(self, subject: str, text: str) -> None:
        """Print the first failure of a subject, which many programs ignore; it is no error of a kernel."""
        if subject not in self._warned:
            self._warned.add(subject)
            print(f"lockstep: {text}", file=sys.stderr, flush=True)

    def _report_error(self, error: LockstepError) -> None:
        text = f"{error.message} {error.advice}".strip()
        if text not in self.reported_errors:
            self.reported_errors.append(text)
            print(f"lockstep: {text}", file=sys.stderr, flush=True)
            self.on_launch(True)

    def add_module(self, unit: int, module: LoadedModule) -> None:
        """Use a module that was compiled before."""
        self._modules[unit] = module

    def module(self, unit: int) -> LoadedModule:
        """Return a file's module, compiled at first use."""
        if unit not in self._modules:
            self._modules[unit] = self.units[unit].load()
        return self._modules[unit]

    # Memory

    def do_malloc(self, target: int, size: int) -> None:
        result = access_host(ctypes.c_longlong, target)
        if size == 0:
            result.value = 0
            return
        if size < 0:  # as a size_t, more than any memory
            raise RefusedRoutineError(errors.NO_MEMORY)
        memory = new_memory(size, "cudaMalloc")
        self._memories[address_of(memory)] = memory
        result.value = address_of(memory)

    def do_malloc_pitch(self, target: int, pitch: int, width: int, height: int) -> None:
        """Execute `cudaMallocPitch`.

        Parameters
        ----------
        target : int
            The address at which the address of the memory is written.
        pitch : int
            The address at which the pitch in bytes is written, a multiple of 512.
        width : int
            Bytes per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverMemoryError
            If there is not enough free memory.
        """
        if min(width, height) < 0:
            raise RefusedRoutineError(errors.NO_MEMORY)
        row = -(-width // _PITCH) * _PITCH
        _write(pitch, row)
        self.do_malloc(target, row * height)

    def do_malloc_mapped(self, target: int, size: int, managed: int) -> None:
        result = access_host(ctypes.c_longlong, target)
        address = self._mapped.allocate(size or 1, managed=bool(managed))
        if address is None:
            raise RefusedRoutineError(errors.NO_MEMORY)
        result.value = address

    def do_free(self, address: int) -> None:
        if self._graphs.owns_memory(address):
            return
        if address and self._memories.pop(address, None) is None and not self._mapped.free(address):
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_free_host(self, address: int) -> None:
        if address and not self._mapped.free(address):
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_host_register(self, address: int, size: int) -> None:
        if not address or size <= 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if any(first < address + size and address < first + each.data.size for first, each in self._registered.items()):
            raise RefusedRoutineError(errors.ALREADY_REGISTERED)
        self._registered[address] = GlobalMemory(host_view(address, size), written=True)

    def do_host_unregister(self, address: int) -> None:
        if not address:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if self._registered.pop(address, None) is None:
            raise RefusedRoutineError(errors.NOT_REGISTERED)

    def do_check_managed(self, address: int) -> None:
        """Refuse a prefetch of memory, or advice about memory, that is not managed; ignore others."""
        owner = self._mapped.find_memory(address)
        if owner is None or not owner.managed:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_host_device_pointer(self, target: int, address: int) -> None:
        if address in self._registered:
            _write(target, address_of(self._registered[address]))
        elif self._mapped.find_memory(address) is not None:
            _write(target, address)
        else:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_mem_info(self, free: int, total: int) -> None:
        if not free and not total:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for target, size in ((free, free_memory()), (total, total_memory())):
            if target:
                _write(target, size)

    def do_pointer_attributes(self, address: int, kind: int, device: int) -> None:
        owner = self._mapped.find_memory(address)
        if owner is not None:
            _write_int(kind, _MANAGED if owner.managed else _HOST)
        else:
            _write_int(kind, _DEVICE if _is_device_address(address) else 0)
        if owner is not None or _is_device_address(address):
            _write(device, address)

    def do_memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        """Execute `cudaMemcpy`.

        Parameters
        ----------
        target, source : int
            Addresses on the host or on the device.
        size : int
            Bytes to copy; 0 does nothing.
        kind : int
            The direction as a `cudaMemcpyKind`; 4 derives it from the addresses.

        Raises
        ------
        RefusedRoutineError
            The direction is invalid or does not match an address.
        DriverLogicError
            The bytes on the device are not all in one allocation.
        """
        _check_extents(size)
        if not size:
            return
        data = self._view_side(source, size, kind, _FROM_DEVICE, "cudaMemcpy")
        self._note_span(data, "cudaMemcpy")
        if _is_device_address(source) and _is_device_address(target):
            destination = self._view_side(target, size, kind, _TO_DEVICE, "cudaMemcpy")
            self._note_span(destination, "cudaMemcpy", writes=True)
            copy_device_bytes(target, source, size, "cudaMemcpy")
            return
        destination = self._view_side(target, size, kind, _TO_DEVICE, "cudaMemcpy", written=True)
        self._note_span(destination, "cudaMemcpy", writes=True)
        ctypes.memmove(destination.ctypes.data, data.ctypes.data, size)

    def do_memcpy_2d(
        self, target: int, target_pitch: int, source: int, source_pitch: int, width: int, height: int, kind: int
    ) -> None:
        """Execute `cudaMemcpy2D`.

        Parameters
        ----------
        target, source : int
            Addresses of the first rows, on the host or on the device.
        target_pitch, source_pitch : int
            The distances between the starts of consecutive rows in bytes, at least `width`.
        width : int
            Bytes to copy per row.
        height : int
            The number of rows.
        kind : int
            As of `do_memcpy`.

        Raises
        ------
        RefusedRoutineError, DriverLogicError
            A pitch is too small; or as of `do_memcpy`.
        """
        _check_extents(width, height)
        if width > target_pitch or width > source_pitch:
            raise RefusedRoutineError(12)
        for row in range(height):
            self.do_memcpy(target + row * target_pitch, source + row * source_pitch, width, kind)

    def _note_span(self, data: Array, routine: str, *, writes: bool = False) -> None:
        """Compare bytes that a copy or fill reads or writes with operations that may run at the same time."""
        span = Span(data.ctypes.data, data.size, writes, routine, data)
        if self.overlaps is not None and data.size and self.overlaps.add_span(span):
            self.on_launch(bool(self.reported_errors))

    def do_memset(self, target: int, value: int, size: int) -> None:
        _check_extents(size)
        if size:
            filled = writable_bytes_at(target, size, "cudaMemset")
            self._note_span(filled, "cudaMemset", writes=True)
            filled[:] = value & 0xFF

    def do_memset_elements(self, target: int, pitch: int, value: int, size: int, width: int, height: int) -> None:
        """Fill rows on the device, as a node of `cudaGraphAddMemsetNode` does.

        Parameters
        ----------
        target : int
            The address of the first row.
        pitch : int
            The distance between the starts of consecutive rows in bytes; the rows are contiguous if it is smaller.
        value : int
            The value, of which the lowest `size` bytes are used.
        size : int
            Bytes per element: 1, 2 or 4.
        width : int
            Elements per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverLogicError
            A row is not in one allocation.
        """
        _check_extents(width, height)
        row = np.frombuffer((value & 0xFFFF_FFFF).to_bytes(4, "little")[:size] * width, np.uint8)
        for start in range(target, target + max(pitch, row.size) * height, max(pitch, row.size) or 1):
            filled = writable_bytes_at(start, row.size, "cudaGraphAddMemsetNode")
            self._note_span(filled, "a memset node", writes=True)
            filled[:] = row

    def do_memset_2d(self, target: int, pitch: int, value: int, width: int, height: int) -> None:
        """Execute `cudaMemset2D`.

        Parameters
        ----------
        target : int
            The address of the first row on the device.
        pitch : int
            The distance between the starts of consecutive rows in bytes.
        value : int
            The value of each byte, of which the lowest 8 bits are used.
        width : int
            Bytes to fill per row.
        height : int
            The number of rows.

        Raises
        ------
        DriverLogicError
            A row is not in one allocation.
        """
        _check_extents(width, height)
        if width > pitch and height > 1:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for row in range(height):
            self.do_memset(target + row * pitch, value, width)

    def _view_side(
        self, address: int, size: int, kind: int, device_kinds: Sequence[int], routine: str, *, written: bool = False
    ) -> Array:
        """Return a view of the bytes of one side of a copy."""
        if kind not in range(5):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        on_device = _is_device_address(address)
        if kind in device_kinds and not on_device:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if kind not in device_kinds and kind != _DEFAULT and on_device and self._mapped.find_memory(address) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if on_device:
            return (writable_bytes_at if written else bytes_at)(address, size, routine)
        if not address:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        return self.view_host(address, size)

    def view_host(self, address: int, size: int) -> Array:
        """Return a view of the host memory that a copy accesses, without checks."""
        return host_view(address, size)

    def _view_array_side(
        self, address: int, size: int, kind: int, device_kinds: tuple[int, ...], written: bool
    ) -> Array:
        return self._view_side(address, size, kind, device_kinds, "cudaMemcpy2DToArray", written=written)

    # Variables

    def do_variable(self, unit: int, name: int, address: int, size: int, managed: int) -> None:
        """Register a device variable; the constructors of the program's static objects call this before `main`.

        Parameters
        ----------
        unit : int
            The number of the source file.
        name : int
            The address of the variable's name, without namespaces.
        address : int
            The address of the variable in the host code, which identifies it in later calls.
        size : int
            Bytes of the variable.
        managed : int
            1 if host and device share the memory at `address`, as for `__managed__`, otherwise 0.
        """
        self._variables[address] = _Variable(unit, ctypes.string_at(name).decode(), address, size, bool(managed))

    def do_is_symbol(self, address: int) -> int:
        return int(address in self._variables)

    def _variable_memory(self, address: int) -> FlatMemory:
        variable = self._variables.get(address)
        if variable is None:
            raise RefusedRoutineError(errors.INVALID_SYMBOL)
        module = self.module(variable.unit).module
        names = [name for name in module.variables if name == variable.name or name.endswith(f"::{variable.name}")]
        if not names:
            raise RefusedRoutineError(errors.INVALID_SYMBOL)
        return module.variable(names[0])

    def _symbol_bytes(self, address: int, size: int, offset: int) -> Array:
        data = self._variable_memory(address).data
        if min(offset, size) < 0 or offset + size > data.size:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        return data[offset : offset + size]

    def do_to_symbol(self, address: int, source: int, size: int, offset: int, kind: int) -> None:
        """Execute `cudaMemcpyToSymbol`.

        Parameters
        ----------
        address : int
            The address of the device variable in the host code.
        source : int
            The address of the data, on the host or on the device.
        size : int
            Bytes to copy.
        offset : int
            The offset in the variable, in bytes.
        kind : int
            As of `do_memcpy`.

        Raises
        ------
        RefusedRoutineError
            There is no such variable, the bytes exceed it, or the direction does not match.
        """
        data = self._symbol_bytes(address, size, offset)
        if kind not in (1, 3, _DEFAULT):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        if size:
            read = self._view_side(source, size, kind, _FROM_DEVICE, "cudaMemcpyToSymbol")
            self._note_span(read, "cudaMemcpyToSymbol")
            self._note_span(data, "cudaMemcpyToSymbol", writes=True)
            data[:] = read

    def do_from_symbol(self, target: int, address: int, size: int, offset: int, kind: int) -> None:
        """Execute `cudaMemcpyFromSymbol`.

        Parameters
        ----------
        target : int
            The address for the data, on the host or on the device.
        address, size, offset, kind : int
            As of `do_to_symbol`.

        Raises
        ------
        RefusedRoutineError
            As of `do_to_symbol`.
        """
        data = self._symbol_bytes(address, size, offset)
        if kind not in (2, 3, _DEFAULT):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        if size:
            written = self._view_side(target, size, kind, (3,), "cudaMemcpyFromSymbol", written=True)
            self._note_span(data, "cudaMemcpyFromSymbol")
            self._note_span(written, "cudaMemcpyFromSymbol", writes=True)
            written[:] = data

    def do_symbol_address(self, target: int, address: int) -> None:
        _write(target, address_of(self._variable_memory(address)))

    def do_symbol_size(self, target: int, address: int) -> None:
        _write(target, self._variable_memory(address).data.size)

    # The device

    def do_device_count(self, target: int) -> None:
        _write_int(target, 1)

    def do_get_device(self, target: int) -> None:
        _write_int(target, 0)

    def do_set_device(self, device: int) -> None:
        if device:
            raise RefusedRoutineError(errors.INVALID_DEVICE)

    def do_device_attribute(self, target: int, number: int, device: int) -> None:
        self.do_set_device(device)
        value = VALUE_BY_NUMBER.get(number, _PROGRAM_ATTRIBUTES.get(number))
        if value is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        _write_int(target, value)

    def do_device_name(self, target: int, room: int, device: int) -> None:
        self.do_set_device(device)
        _write_text(target, room, device_name())

    def do_version(self, target: int) -> None:
        _write_int(target, 13_000)

    def do_priorities(self, least: int, greatest: int) -> None:
        for target, priority in ((least, 0), (greatest, _GREATEST_PRIORITY)):
            if target:
                _write_int(target, priority)

    def do_no_peer(self, target: int, device: int, peer: int) -> None:
        _write_int(target, 0)
        self.do_set_device(device | peer)

    def do_refuse_peer(self, peer: int) -> None:
        self.do_set_device(peer)
        raise RefusedRoutineError(errors.PEER_ACCESS_UNSUPPORTED)

    def do_get_limit(self, target: int, limit: int) -> None:
        _write(target, {0: 1024, 1: 1 << 20, 2: 8 << 20}.get(limit, 2))

    def do_synchronize(self) -> None:
        """Do nothing: all work is complete."""

    def do_nothing(self) -> None:
        """Ignore advice and preferences."""

    def do_invalid_value(self) -> None:
        raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_not_supported(self) -> None:
        raise RefusedRoutineError(errors.NOT_SUPPORTED)

    def do_reset(self) -> None:
        self._memories.clear()
        for address in list(self._mapped.memories):
            self._mapped.free(address)
        self._modules.clear()
        self._kernels.clear()
        self._last_error = self._sticky_error = 0

    def do_last_error(self, forget: int) -> int:
        code = self._last_error
        if forget and code == self._last_error:
            self._last_error = 0
        return code

    def do_error_name(self, number: int, target: int, room: int) -> None:
        _write_text(target, room, errors.ERRORS.get(number, ("unrecognized error code", ""))[0])

    def do_error_text(self, number: int, target: int, room: int) -> None:
        _write_text(target, room, errors.ERRORS.get(number, ("", "unrecognized error code"))[1])

    # Streams and events

    def do_on_stream(self, stream: int, routine: int, *arguments: int) -> None:
        """Execute a routine, or capture it if the stream is capturing."""
        name = ctypes.string_at(routine).decode()
        if self._graphs.capture_routine(stream, name, arguments):
            return
        if self.delayed is None or name == "malloc":  # the address is needed at once
            self.find_implementation(name)(*arguments)
            return
        self.delayed.submit(stream, self._skip_after_error(self._bind_operation(name, arguments)))
        if not self._is_asynchronous(name, arguments):
            self.delayed.finish_stream(stream)

    def _skip_after_error(self, operation: Operation) -> Operation:
        """Return an operation that does nothing after an error that made the context unusable."""
        return lambda: None if self._sticky_error else operation()

    def _is_asynchronous(self, routine: str, arguments: Arguments) -> bool:
        """Return whether a routine may return before its work is done: copies need pinned memory on the host."""
        if routine in ("memcpy", "memcpy_2d"):
            sides = (arguments[0], arguments[1 if routine == "memcpy" else 2])
            return all(map(self._is_pinned, sides))
        return routine in ASYNCHRONOUS_ROUTINES

    def _is_pinned(self, address: int) -> bool:
        """Return whether an address is on the device, or in page-locked memory on the host."""
        return (
            _is_device_address(address)
            or self._mapped.find_memory(address) is not None
            or any(first <= address < first + memory.data.size for first, memory in self._registered.items())
        )

    def _bind_operation(self, routine: str, arguments: Arguments) -> Operation:
        if routine == "launch":
            return self._prepare_launch(*arguments)
        return partial(self.find_implementation(routine), *arguments)

    def do_host_function(self, function: int, data: int) -> None:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(data)

    def do_graph_launch(self, executable: int) -> None:
        def iterate_steps() -> Iterator[GraphStep]:
            for step in self._graphs.iterate_operations(executable):
                yield step
                if self._sticky_error:
                    break

        if self.overlaps is not None:
            self.overlaps.streams.run_graph(iterate_steps())
            return
        for execute, _, _ in iterate_steps():
            execute()

    def do_stream_create(self, target: int, flags: int) -> None:
        stream = next(self._handles)
        self._graphs.register_stream(stream, flags)
        if self.delayed is not None:
            self.delayed.add_stream(stream, is_non_blocking=bool(flags & NON_BLOCKING))
        _write(target, stream)

    def do_set_stream_priority(self, stream: int, priority: int) -> None:
        self._priorities[stream] = min(max(priority, _GREATEST_PRIORITY), 0)

    def do_stream_priority(self, stream: int, target: int) -> None:
        _write_int(target, self._priorities.get(stream, 0))

    def do_event_record(self, event: int, stream: int) -> None:
        if self._graphs.record_event(event, stream):
            return
        if self.delayed is None:
            self._note_event(event)
        else:
            self.delayed.record_event(event, stream, partial(self._note_event, event))

    def _note_event(self, event: int) -> None:
        self._events[event] = time.perf_counter()

    def do_stream_query(self, stream: int) -> None:
        """Refuse with `NOT_READY` the first time that a stream has delayed operations; then run them."""
        self._graphs.do_stream_synchronize(stream)
        if self.delayed is not None and not self.delayed.query_stream(stream):
            raise RefusedRoutineError(errors.NOT_READY)

    def do_event_query(self, event: int) -> None:
        """Refuse with `NOT_READY` the first time that an event is delayed; then let it occur."""
        self._graphs.do_event_synchronize(event)
        if self.delayed is not None and not self.delayed.query_event(event):
            raise RefusedRoutineError(errors.NOT_READY)

    def do_wait_event(self, stream: int, event: int) -> None:
        self._graphs.do_wait_event(stream, event)
        if self.delayed is not None:
            self.delayed.wait_for_event(stream, event)

    def do_event_elapsed(self, target: int, first: int, second: int) -> None:
        if first not in self._events or second not in self._events:
            raise RefusedRoutineError(errors.INVALID_HANDLE)
        access_host(ctypes.c_float, target).value = 1e3 * (self._events[second] - self._events[first])

    # Kernels

    def _load_kernel(
        self, unit: int, line: int, parameters: int, pretty: int
    ) -> tuple[LoadedModule, str, SimulatedKernel]:
        if not pretty:
            raise RefusedRoutineError(errors.INVALID_FUNCTION)
        text = ctypes.string_at(pretty).decode()
        key = unit, line, text
        if key not in self._kernels:
            wanted = kernel_name(text, parameters)
            try:
                self._kernels[key] = _load_from(self.module(unit), wanted, line)
            except CompileError:
                linked = self._link_module(unit)
                if linked is None:
                    raise
                self._kernels[key] = _load_from(linked, wanted, line)
            self._attach_managed(unit, self.module(unit).module)
        return self._kernels[key]

    def _link_module(self, unit: int) -> LoadedModule | None:
        """Return a file's module with the device code of the program's other files; None if there is no other."""
        if unit >= len(self.units):  # a module of the driver API
            return None
        if unit not in self._linked:
            self._linked[unit] = link_units(self.units, unit, self.module)
            if self._linked[unit] is not None:
                for number, loaded in self._modules.items():
                    self._attach_managed(number, loaded.module)
        return self._linked[unit]

    def _attach_managed(self, unit: int, module: SimulatedModule) -> None:
        """Map managed variables of a module to their memory in the host code."""
        for variable in self._variables.values():
            if variable.managed and variable.unit == unit and variable.name in module.variables:
                memory = module.variable(variable.name)
                view = host_view(variable.address, variable.size)
                if memory.data.ctypes.data != view.ctypes.data:
                    memory.replace_data(view)

    def do_launch(self, *arguments: int) -> None:
        self._prepare_launch(*arguments)()

    def _prepare_launch(self, unit: int, line: int, parameters: int, pretty: int, *rest: int) -> Callable[[], None]:
        """Return a function that launches a kernel with the current arguments.

        Raises
        ------
        RefusedRoutineError
            If the launch configuration is invalid.
        """
        grid, block, (shared_bytes, data, size, arguments, file, at) = rest[:3], rest[3:6], rest[6:12]
        cluster = rest[12:15] if any(rest[12:15]) else None
        loaded, name, kernel = self._load_kernel(unit, line, parameters, pretty)
        packed = _pack_arguments(kernel, arguments) if arguments else ctypes.string_at(data, size)
        location = f"{Path(ctypes.string_at(file).decode()).name}:{at}"
        try:
            kernel.check_launch(grid, block, shared_bytes)
        except LaunchError as error:
            self.report_refused_launch(location, error.message)
            is_too_much = shared_bytes > kernel.dynamic_shared_limit
            raise RefusedRoutineError(errors.INVALID_VALUE if is_too_much else errors.INVALID_CONFIGURATION) from None
        declared = kernel.function.cluster
        if cluster is not None and (declared not in (None, cluster) or LIMITS.find_cluster_violation(grid, cluster)):
            raise RefusedRoutineError(errors.INVALID_CONFIGURATION)

        def launch() -> None:
            try:
                self._textures.refresh()
                loaded.launch(name, grid, block, packed, shared_bytes, location, cluster)
            except DriverLaunchError as error:
                # As on a GPU, later calls report the error.
                self._sticky_error = _ERROR_NUMBERS.get(error.reason, errors.LAUNCH_FAILURE)
            except DriverError as error:
                if error.reason == INVALID:
                    # A GPU would accept the launch; the simulator does not support it, which no error number expresses.
                    self._report_error(KernelError(str(error).partition(" - ")[2]))
                    raise RefusedRoutineError(errors.INVALID_CONFIGURATION) from None
                raise
            finally:
                self.on_launch(bool(self.reported_errors))

        return launch

    def do_kernel_attributes(self, unit: int, line: int, parameters: int, pretty: int, target: int) -> None:
        """Write a kernel's attributes for `cudaFuncGetAttributes`.

        Parameters
        ----------
        unit : int
            The number of the source file.
        line : int
            The line of the kernel's definition, which distinguishes overloads.
        parameters : int
            The number of template parameters; negative if unknown.
        pretty : int
            The address of the kernel's `__PRETTY_FUNCTION__`.
        target : int
            The address for four 64-bit integers: bytes of static shared memory, bytes of all `__constant__` variables,
            the most threads per block, and the most bytes of dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError
            The function is not a kernel.
        KernelError
            The file has no such kernel, or the simulator does not support it.
        """
        loaded, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        values = (
            kernel.static_shared_bytes,
            loaded.module.constant_bytes,
            LIMITS.threads,
            kernel.dynamic_shared_limit,
        )
        for index, value in enumerate(values):
            _write(target + 8 * index, value)

    def do_set_kernel_attribute(
        self, unit: int, line: int, parameters: int, pretty: int, attribute: int, value: int
    ) -> None:
        """Set the most dynamic shared memory of a kernel's blocks; other attributes have no effect here.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        attribute : int
            The number of a `cudaFuncAttribute`.
        value : int
            Its value; for the dynamic shared memory, bytes per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            There is no such attribute, the value is invalid; or as of `do_kernel_attributes`.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if attribute == _DYNAMIC_SHARED_BYTES:
            is_valid = kernel.set_dynamic_shared_limit(value)
        else:
            is_valid = attribute in _KERNEL_ATTRIBUTES and 0 <= value <= (100 if attribute == _CARVEOUT else 2**31)
        if not is_valid:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_occupancy(
        self, unit: int, line: int, parameters: int, pretty: int, target: int, block: int, shared_bytes: int
    ) -> None:
        """Execute `cudaOccupancyMaxActiveBlocksPerMultiprocessor`.

        The result is limited by threads, shared memory and the number of blocks, but not by registers.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        target : int
            The address at which the number of resident blocks is written, 32 bits.
        block : int
            Threads per block.
        shared_bytes : int
            Dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            As of `do_kernel_attributes`; also if a block has no threads.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if block <= 0 or shared_bytes < 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        _write_int(target, _count_resident_blocks(kernel, block, shared_bytes))

    def do_check_cooperative(
        self, unit: int, line: int, parameters: int, pretty: int, blocks: int, block: int, shared_bytes: int
    ) -> None:
        """Refuse a cooperative launch whose blocks cannot all be resident, as of `do_occupancy`.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        blocks, block : int
            Blocks of the grid, and threads per block.
        shared_bytes : int
            Dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            There are too many blocks; or as of `do_kernel_attributes`.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if blocks > _count_resident_blocks(kernel, block, shared_bytes) * VALUE_BY_NUMBER[16]:
            raise RefusedRoutineError(errors.COOPERATIVE_LAUNCH_TOO_LARGE)


def _count_resident_blocks(kernel: SimulatedKernel, block: int, shared_bytes: int) -> int:
    """Return the number of blocks that a multiprocessor runs at once; 0 if a block is too large, as on a GPU."""
    used = kernel.static_shared_bytes + shared_bytes + VALUE_BY_NUMBER[111]
    by_threads = VALUE_BY_NUMBER[39] // (-(-block // 32) * 32) if block <= VALUE_BY_NUMBER[1] else 0
    return min(by_threads, VALUE_BY_NUMBER[81] // used, VALUE_BY_NUMBER[106])


_ALLOWED_AFTER_ERROR = (
    "last_error",
    "error_name",
    "error_text",
    "reset",
    "variable",
    "is_symbol",
    "device_name",
    "nothing",
)
"""Routines that work after an error that made the context unusable."""


def _load_from(loaded: LoadedModule, name: str, line: int) -> tuple[LoadedModule, str, SimulatedKernel]:
    with limit_resources():
        found, kernel = _find_kernel(loaded.module, name, line)
        compute_parameter_layout(kernel)
    return loaded, found, kernel


def _find_kernel(module: SimulatedModule, name: str, line: int) -> tuple[str, SimulatedKernel]:
    """Return a kernel and its name in the simulator; the line distinguishes kernels with the same name."""
    plain = name.partition("<")[0]
    short = name[len(plain.rpartition("::")[0]) :].removeprefix("::")
    failures: list[KernelError] = []
    for each in dict.fromkeys((name, short, f"{name}@{line}", f"{short}@{line}")):
        try:
            return each, module.kernel(each)
        except KernelError as error:
            failures.append(error)
    # An error in a kernel says more than that several have its name.
    raise next((error for error in failures if isinstance(error, CompileError)), failures[0])


def _pack_arguments(kernel: SimulatedKernel, arguments: int) -> bytes:
    """Pack the values to which an array of pointers points."""
    offsets, size = compute_parameter_layout(kernel)
    packed = bytearray(size)
    pointers = (ctypes.c_void_p * len(offsets)).from_address(arguments)
    for offset, pointer, (_, type) in zip(offsets, pointers, kernel.parameters, strict=True):
        packed[offset : offset + type.size] = ctypes.string_at(pointer, type.size)
    return bytes(packed)


def _is_device_address(address: int) -> bool:
    value = to_pointer(np.int64(address))
    return isinstance(value.memory, FlatMemory)


def _check_extents(*extents: int) -> None:
    """Refuse extents that are negative here: as a `size_t` they exceed every memory."""
    if min(extents) < 0:
        raise RefusedRoutineError(errors.INVALID_VALUE)


def _write(target: int, value: int) -> None:
    access_host(ctypes.c_longlong, target).value = value


def _write_int(target: int, value: int) -> None:
    access_host(ctypes.c_int, target).value = value


def _write_text(target: int, room: int, text: str) -> None:
    data = text.encode()[: room - 1] + b"\0"
    ctypes.memmove(target, data, len(data))
