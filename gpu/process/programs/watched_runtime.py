"""Runtime of a graded program: reports to the grader, finds results on the GPU, and withholds or fails operations."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.journal import Journal
from gpu.hosts.program import errors
from gpu.hosts.program.delayed_streams import DelayedStreams
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.overlaps import OverlapChecker
from gpu.hosts.program.program_units import ProgramUnit
from gpu.hosts.program.routines.graphs import LEGACY_STREAMS
from gpu.hosts.program.runtime import Runtime
from gpu.hosts.program.stream_order import OrderedStreams

REPORT = struct.Struct("<qqqqqq")
"""Report in shared memory: allocations of device memory, streams with operations, other streams than the legacy default
stream with launches, launches in the legacy default stream, whether an operation failed, and the most bytes that a copy
accessed past the end of a block from `new`.
"""
_FAILING_ROUTINES = {
    "allocation": ("malloc", "malloc_pitch", "malloc_mapped"),
    "copy": ("memcpy", "memcpy_2d"),
    "launch": ("launch",),
    "kernel": ("launch",),
}
_REFUSALS = {"allocation": errors.NO_MEMORY, "copy": errors.INVALID_VALUE, "launch": errors.OUT_OF_RESOURCES}
_SEARCHED_BYTES = 4 << 20
"""Bytes of each allocation in which results are searched."""
_TOLERANCE = 2e-7
"""Relative deviation of a result in memory: about the rounding of a float."""


class WatchedRuntime(Runtime):
    """Runtime that writes its report to shared memory, which remains however the program ends.

    Parameters
    ----------
    journal : Journal
        The journal of its launches.
    on_launch : callable
        As of `Runtime`.
    shared : mmap
        Memory for the report.
    case : mapping
        The run as `_Program.run` describes it.
    on_internal_error : callable
        Called with the traceback of an error of Lockstep.
    on_refused_launch : callable
        Called with a sentence about each launch with an invalid configuration.
    """

    def __init__(
        self,
        units: Sequence[ProgramUnit],
        journal: Journal,
        on_launch: Callable[[bool], None],
        shared: mmap.mmap,
        case: Mapping[str, Any],
        on_internal_error: Callable[[str], None],
        on_refused_launch: Callable[[str], None],
    ) -> None:
        order = case["streams"]
        self._on_internal_error, self._on_refused_launch = on_internal_error, on_refused_launch
        streams: DelayedStreams | None = None
        overlaps: OverlapChecker | None = None
        if order == "compared":
            streams = ordered = OrderedStreams()
            journal.watcher = overlaps = OverlapChecker(ordered, journal)
        elif order != "immediate":
            streams = DelayedStreams(order, withheld=case.get("withheld_stream", 0))
        super().__init__(units, self._finish_launch, streams, overlaps)
        self._shared, self._send_launches = shared, on_launch
        self._failing, self._failing_number = case.get("failing", ("", 0))
        self._are_launches_withheld = case.get("launches_withheld", False)
        self._results = np.array(case.get("results", ()), np.float64)
        self._calls = self._default_launches = self._overrun = 0
        self._launching_streams: set[int] = set()
        self._has_failed = False
        self.found = np.zeros(self._results.size, bool)
        journal.should_execute = self._should_execute

    def execute_routine(self, name: bytes, arguments: Any, count: int) -> int:
        result = super().execute_routine(name, arguments, count)
        streams = self.delayed.used_count if self.delayed is not None else 0
        launches = (len(self._launching_streams), self._default_launches)
        REPORT.pack_into(self._shared, 0, self.allocation_count, streams, *launches, self._has_failed, self._overrun)
        return result

    def view_host(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        count_bytes = ctypes.CDLL(None).lockstep_block_bytes
        count_bytes.argtypes, count_bytes.restype = (ctypes.c_void_p,), ctypes.c_longlong
        available = count_bytes(address)
        if available >= 0:
            self._overrun = max(self._overrun, size - available)
        return super().view_host(address, size)

    def report_internal_error(self, trace: str) -> None:
        self._on_internal_error(trace)

    def report_refused_launch(self, location: str, reason: str) -> None:
        self._on_refused_launch(f"The launch in line {location.rpartition(':')[2]} fails. {reason}")

    def do_on_stream(self, stream: int, routine: int, *arguments: int) -> None:
        if ctypes.string_at(routine) == b"launch":
            if stream in LEGACY_STREAMS:
                self._default_launches += 1
            else:
                self._launching_streams.add(stream)
        super().do_on_stream(stream, routine, *arguments)

    def find_implementation(self, routine: str) -> Callable[..., int | None]:
        implementation = super().find_implementation(routine)
        if routine not in _FAILING_ROUTINES.get(self._failing, ()):
            return implementation
        self._calls += 1
        if self._calls != self._failing_number:
            return implementation
        self._has_failed = True
        return self._fail

    def _fail(self, *arguments: int) -> None:
        """Fail as a call does, or as a kernel that is still running: then later calls report the error."""
        if self._failing in _REFUSALS:
            raise RefusedRoutineError(_REFUSALS[self._failing])
        self._sticky_error = errors.ILLEGAL_ADDRESS

    def _should_execute(self) -> bool:
        if self._are_launches_withheld:
            self._search_results()
        return not self._are_launches_withheld

    def _finish_launch(self, refused: bool) -> None:
        if not self._are_launches_withheld:
            self._search_results()
        self._send_launches(refused)

    def _search_results(self) -> None:
        """Find the results that are in memory which kernels can access."""
        if not self._results.size:
            return
        for memory in self.memories:
            data = memory.data[:_SEARCHED_BYTES]
            for kind in (np.float32, np.float64, np.int32, np.int64):
                values = data[: data.size // kind().itemsize * kind().itemsize].view(kind)
                self.found |= _contains(values.astype(np.float64), self._results)


def _contains(values: npt.NDArray[np.float64], results: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which results are among the values, up to rounding."""
    ordered = np.sort(values[np.isfinite(values)])
    if not ordered.size:
        return np.zeros(results.size, bool)
    margin = _TOLERANCE * np.abs(results)
    first = np.searchsorted(ordered, results - margin).clip(0, ordered.size - 1)
    return np.asarray(np.abs(ordered[first] - results) <= margin)
