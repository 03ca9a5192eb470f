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
from typing import Any

import numpy.typing as npt

from gpu.base.errors import KernelError, LockstepError
from gpu.hosts.driver.faults import INVALID_VALUE as INVALID
from gpu.hosts.driver.faults import DriverError, DriverLaunchError, DriverMemoryError, HostWaitError
from gpu.hosts.driver.launches import LoadedModule
from gpu.hosts.program import errors
from gpu.hosts.program.delayed_streams import ASYNCHRONOUS_ROUTINES, UNORDERED_ROUTINES, DelayedStreams
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import access_host, host_view, write_address, write_int
from gpu.hosts.program.overlaps import OverlapChecker
from gpu.hosts.program.program_units import LoadedUnits, ProgramUnit
from gpu.hosts.program.routines.device import GREATEST_PRIORITY, ProgramDevice
from gpu.hosts.program.routines.graphs import LEGACY_ROUTINES, NON_BLOCKING, GraphStep, Operation, ProgramGraphs
from gpu.hosts.program.routines.kernels import ProgramKernels
from gpu.hosts.program.routines.memory import ProgramMemory
from gpu.hosts.program.routines.modules import ProgramModules
from gpu.hosts.program.routines.textures import ProgramTextures
from gpu.hosts.program.routines.variables import ProgramVariables
from gpu.simulator.checkers.races.footprints import Span
from gpu.simulator.executor.state.memory import FlatMemory

Array = npt.NDArray[Any]
Arguments = Sequence[int]

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_longlong, ctypes.c_char_p, ctypes.POINTER(ctypes.c_longlong), ctypes.c_int)

_INTERNAL_ERROR = 70
"""Exit code of an internal error, as in sysexits.h."""
_UNSUPPORTED = 2
"""Exit code of a program whose kernel waits for the host."""
_ERROR_NUMBERS = {text: number for number, (_, text) in errors.ERRORS.items()}
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
        self._loaded = LoadedUnits(self.units)
        self._memory = ProgramMemory(self.view_host, self._note_span, lambda address: self._graphs.owns_memory(address))
        self._variables = ProgramVariables(self._loaded, self._memory)
        self._kernels = ProgramKernels(self._loaded, self._variables.attach_managed, self.report_refused_launch)
        self._device = ProgramDevice()
        self._textures = ProgramTextures(self._memory.view_array_side)
        self._graphs = ProgramGraphs(self._bind_operation)
        folders = dict.fromkeys(unit.path.parent for unit in self.units)
        self._program_modules = ProgramModules(self._loaded, tuple(folders))

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

    def find_implementation(self, routine: str) -> Callable[..., int | None]:
        """Return the method that executes a routine."""
        owners = (
            *(self, self._memory, self._variables, self._kernels, self._device),
            *(self._textures, self._graphs, self._program_modules),
        )
        owner = next(each for each in owners if hasattr(each, f"do_{routine}"))
        method: Callable[..., int | None] = getattr(owner, f"do_{routine}")
        return method

    def watch_host(self, shared_object: str) -> None:
        """Compare accesses of the program, a shared object, to mapped memory with operations on the device."""
        if self.overlaps is not None:
            self.overlaps.watch_host(self._memory.mapped, shared_object, self._note_launch)

    @property
    def allocation_count(self) -> int:
        """The number of allocations of device memory that have not been freed."""
        return len(self._memory.allocations)

    @property
    def memories(self) -> list[FlatMemory]:
        """The memory that kernels can access: allocations of the device, and mapped and registered memory."""
        return self._memory.memories

    def add_module(self, unit: int, module: LoadedModule) -> None:
        """Use a module that was compiled before."""
        self._loaded.add(unit, module)

    def view_host(self, address: int, size: int) -> Array:
        """Return a view of the host memory that a copy accesses, without checks."""
        return host_view(address, size)

    def _note_span(self, data: Array, routine: str, *, writes: bool = False) -> None:
        span = Span(data.ctypes.data, data.size, writes, routine, data)
        if self.overlaps is not None and data.size and self.overlaps.add_span(span):
            self._note_launch()

    def _note_launch(self) -> None:
        self.on_launch(bool(self.reported_errors))

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

    def do_launch(self, *arguments: int) -> None:
        self._prepare_launch(*arguments)()

    def _prepare_launch(self, *arguments: int) -> Callable[[], None]:
        """Return a function that launches a kernel with the current arguments, as of `ProgramKernels`."""
        execute = self._kernels.prepare_launch(*arguments)

        def launch() -> None:
            try:
                self._textures.refresh()
                execute()
            except DriverLaunchError as error:
                # As on a GPU, later calls report the error.
                self._sticky_error = _ERROR_NUMBERS.get(error.reason, errors.LAUNCH_FAILURE)
            except HostWaitError as error:
                # The program may wait for the kernel as long as the kernel for the program.
                self._report_error(KernelError(str(error).partition(" - ")[2]))
                ctypes.CDLL(None).fflush(None)
                os._exit(_UNSUPPORTED)
            except DriverError as error:
                if error.reason == INVALID:
                    # A GPU would accept the launch; the simulator does not support it, which no error number expresses.
                    self._report_error(KernelError(str(error).partition(" - ")[2]))
                    raise RefusedRoutineError(errors.INVALID_CONFIGURATION) from None
                raise
            finally:
                self._note_launch()

        return launch

    def do_reset(self) -> None:
        self._memory.free_all()
        self._loaded.clear()
        self._kernels.clear()
        self._last_error = self._sticky_error = 0

    def do_last_error(self, forget: int) -> int:
        code = self._last_error
        if forget and code == self._last_error:
            self._last_error = 0
        return code

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
            return all(map(self._memory.is_pinned, sides))
        return routine in ASYNCHRONOUS_ROUTINES

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
        write_address(target, stream)

    def do_set_stream_priority(self, stream: int, priority: int) -> None:
        self._priorities[stream] = min(max(priority, GREATEST_PRIORITY), 0)

    def do_stream_priority(self, stream: int, target: int) -> None:
        write_int(target, self._priorities.get(stream, 0))

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
