"""Launches: unpack the arguments, run the kernel, and add an entry to the journal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, LockstepError
from gpu.base.findings import Finding, build_error_finding, sort_findings
from gpu.files import file_access
from gpu.hosts.driver import machine_code
from gpu.hosts.driver.faults import (
    INVALID_VALUE,
    NOT_SUPPORTED,
    DriverError,
    DriverLaunchError,
    HostWaitError,
    build_logic_error,
    format_failure,
)
from gpu.hosts.driver.journal import Journal, LaunchEntry, current_journal
from gpu.hosts.driver.memory import GlobalMemory, mark_all_written, mark_complete_memories
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.checkers.memory.heap import HeapRecords
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.trials import collect_findings
from gpu.simulator.counting.counters import Counters
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Struct, Type

_ROUTINE = "cuLaunchKernel"
_REASONS = {
    "out-of-bounds": "an illegal memory access was encountered",
    "null-pointer": "an illegal memory access was encountered",
    "invalid-pointer": "an illegal memory access was encountered",
    "use-after-free": "an illegal memory access was encountered",
    "use-after-scope": "an illegal memory access was encountered",
    "misaligned": "misaligned address",
    "assertion": "device-side assert triggered",
    "endless": "the launch timed out and was terminated",
    "unfinished": "the launch timed out and was terminated",
    "residency": "too many blocks in cooperative launch",
}


def alignment_of(type: Type) -> int:
    """Return the alignment of a parameter in the packed arguments."""
    match type:
        case Struct():
            return type.alignment
        case ArrayOf():
            return alignment_of(type.element)
    return type.size


def compute_parameter_layout(kernel: SimulatedKernel) -> tuple[list[int], int]:
    """Return the offsets of the parameters in the packed arguments, and their total size."""
    offsets, end = [], 0
    for _, type in kernel.parameters:
        start = -(-end // alignment_of(type)) * alignment_of(type)
        offsets.append(start)
        end = start + type.size
    return offsets, end


def _unpack(kernel: SimulatedKernel, packed: bytes) -> list[Any]:
    offsets, size = compute_parameter_layout(kernel)
    if len(packed) < size:
        declaration = ", ".join(f"{type} {name}" for name, type in kernel.parameters) or "nothing"
        raise build_logic_error(
            _ROUTINE,
            INVALID_VALUE,
            f"{kernel.name} needs {size} bytes of arguments ({declaration}), but got {len(packed)}",
        )
    values: list[Any] = []
    for offset, (_, type) in zip(offsets, kernel.parameters, strict=True):
        raw = packed[offset : offset + type.size]
        if isinstance(type, Scalar):
            values.append(np.frombuffer(raw, type.dtype)[0])
        elif isinstance(type, Pointer):
            values.append(to_pointer(np.frombuffer(raw, np.int64)[0]))
        else:
            values.append(np.frombuffer(raw, f"V{type.size}")[0])
    return values


def _name_memories(kernel: SimulatedKernel, values: Sequence[Any]) -> list[GlobalMemory]:
    """Name allocations after the kernel's parameters, and return them."""
    memories: list[GlobalMemory] = []
    for (parameter, type), argument in zip(kernel.parameters, values, strict=True):
        for name, pointer_type, value in _iterate_pointers(parameter, type, argument):
            memory = value.memory
            if isinstance(memory, GlobalMemory) and memory not in memories:
                memory.name, memory.element_bytes = name, pointer_type.element.size if value.offset == 0 else 0
                memories.append(memory)
    return memories


def _iterate_pointers(name: str, type: Type, value: Any) -> Iterator[tuple[str, Pointer, PointerValue]]:
    """Yield an argument's pointers, including members of structs and captures of lambdas."""
    if isinstance(type, Pointer) and isinstance(value, PointerValue):
        yield name, type, value
    elif isinstance(type, Struct) and not type.is_union:
        raw = bytes(value)
        for member in type.fields:
            part = raw[member.offset : member.offset + member.type.size]
            inner = name if member.is_anonymous else f"{name}.{member.name}"
            if isinstance(member.type, Pointer):
                yield inner, member.type, to_pointer(np.frombuffer(part, np.int64)[0])
            else:
                yield from _iterate_pointers(inner, member.type, part)


@dataclass
class _Launch:
    """A launch, and what is known of it when it ends.

    Parameters
    ----------
    extents : tuple
        The blocks of the grid and the threads of a block, each along x, y and z.
    values : sequence
        The arguments.
    shared_bytes : int
        Dynamic shared memory per block.
    cluster : tuple of int or None
        Blocks of a cluster along x, y and z.
    call_site : str
        The line that launches it.
    modeled_us : float or None
        The modeled time in microseconds.
    failure : Finding or None
        The error that ended it.
    target : Path or None
        The file of its recording.
    is_observed : bool
        Whether the memory that it wrote is known.
    is_refused : bool
        Whether it is invalid, so that nothing ran.
    observer : Observer or None
        The observer of the program's watcher.
    """

    name: str
    kernel: SimulatedKernel
    extents: tuple[tuple[int, int, int], tuple[int, int, int]]
    values: Sequence[Any]
    shared_bytes: int
    cluster: tuple[int, int, int] | None
    call_site: str
    modeled_us: float | None = None
    counters: Counters = field(default_factory=Counters)
    findings: list[Finding] = field(default_factory=list)
    failure: Finding | None = None
    target: Path | None = None
    is_observed: bool = False
    is_refused: bool = False
    observer: Observer | None = None


class LoadedModule:
    """A module with the state that its launches share, such as the device heap."""

    def __init__(self, module: SimulatedModule, text: str) -> None:
        self.module = module
        self._heaps = HeapRecords()
        texts = current_journal().texts
        if text not in texts:
            texts.append(text)
        self._text = texts.index(text)

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        packed: bytes,
        shared_bytes: int = 0,
        call_site: str = "",
        cluster: Sequence[int] | None = None,
    ) -> None:
        """Run a kernel.

        Parameters
        ----------
        packed : bytes
            The arguments, with the layout of `compute_parameter_layout`.
        shared_bytes : int
            Dynamic shared memory per block.
        call_site : str
            The line that launches it: "script.py:12".
        cluster : sequence of int or None
            Blocks per cluster in x, y and z.

        Raises
        ------
        DriverLaunchError
            If the kernel fails.
        DriverLogicError
            If the launch is invalid.
        """
        clusters = _pad_extents(cluster) if cluster is not None else None
        kernel = self.module.kernel(name, clusters)
        extents = (_pad_extents(grid), _pad_extents(block))
        launch = _Launch(name, kernel, extents, _unpack(kernel, packed), shared_bytes, clusters, call_site)
        memories = _name_memories(kernel, launch.values)
        log = current_journal()
        log.on_begin(name, call_site)
        launch.modeled_us = log.model_launch(self.module, name, *launch.extents, shared_bytes, launch.values)
        if not log.should_execute():
            return
        begun = time.perf_counter()
        try:
            self._execute(launch, log, memories)
        except LaunchError as error:
            waited = self._find_host_wait(launch, log) if error.kind == "endless" else ""
            launch.is_refused = not error.kind or bool(waited)
            launch.failure = None if launch.is_refused else build_error_finding(error)
            raise (_build_wait_error(error, waited) if waited else _convert_error(error)) from None
        finally:
            self._end(launch, log, begun)

    def _end(self, launch: _Launch, log: Journal, begun: float) -> None:
        """Note what a launch wrote and, unless it was refused, add it to the journal; `begun` is in seconds."""
        sys.stdout.flush()
        if launch.observer is not None and log.watcher is not None:
            launch.findings = [*launch.findings, *log.watcher.end_launch(launch.observer)]
        if launch.is_observed:
            mark_complete_memories()
        else:
            mark_all_written()
        milliseconds = 1e3 * (time.perf_counter() - begun)
        if not launch.is_refused:
            log.entries.append(self._build_entry(launch, log, milliseconds))
            log.on_entry()

    def _find_host_wait(self, launch: _Launch, log: Journal) -> str:
        """Return the element for which an endless launch may wait until the host writes it; "" if there is none."""
        if launch.observer is None or log.watcher is None or not log.watcher.has_host_memory:
            return ""
        if waited := log.watcher.find_host_wait(launch.observer):
            return waited
        # It may be endless in a trial, which the observer does not see.
        try:
            launch.kernel.launch(
                *launch.extents,
                launch.values,
                shared_bytes=launch.shared_bytes,
                observers=(launch.observer,),
                on_print=lambda thread, text: None,
            )
        except LaunchError:
            return log.watcher.find_host_wait(launch.observer)
        return ""

    def _execute(self, launch: _Launch, log: Journal, memories: Sequence[GlobalMemory]) -> None:
        """Run a launch: recorded, as machine code, or in lockstep, as the journal's settings say."""
        if log.checked and log.watcher is not None:
            launch.observer = log.watcher.begin_launch(launch.call_site)
        others = () if launch.observer is None else (launch.observer,)
        if log.trace_folder is not None and log.should_record(len(log.entries) + 1, _count_threads(*launch.extents)):
            launch.target = _trace_path(log, log.trace_folder, launch.name)
            launch.findings = self._record(launch, launch.target, others)
            launch.is_observed = True
            return
        if log.fast and machine_code.try_launch(
            self.module, launch.kernel, launch.name, launch.extents, launch.values, launch.shared_bytes, launch.cluster
        ):
            for memory in memories:
                memory.mark_written()
            launch.is_observed = True
            return
        checkers = create_checkers(heaps=self._heaps) if log.checked else ()
        trial = RaceChecker() if log.checked else None
        try:
            launch.kernel.launch(
                *launch.extents,
                launch.values,
                shared_bytes=launch.shared_bytes,
                observers=(launch.counters, *checkers, *others) if log.checked else (),
                schedule=log.schedule,
                trial_observer=trial,
            )
            launch.is_observed = log.checked
        finally:
            launch.findings = sort_findings(collect_findings(checkers, trial))

    def _build_entry(self, launch: _Launch, log: Journal, milliseconds: float) -> LaunchEntry:
        is_counted = (log.checked or launch.target is not None) and launch.failure is None
        return LaunchEntry(
            launch.name,
            self._text,
            launch.call_site,
            *launch.extents,
            launch.shared_bytes,
            milliseconds,
            (*([launch.failure] if launch.failure else []), *launch.findings),
            launch.counters.total() if is_counted else {},
            launch.target,
            launch.modeled_us if launch.failure is None else None,
        )

    def _record(self, launch: _Launch, target: Path, observers: Sequence[Observer]) -> list[Finding]:
        log = current_journal()
        trace = self.module.trace(
            launch.name,
            *launch.extents,
            launch.values,
            TraceSettings(log.max_lane_events or MAXIMUM_LANE_EVENTS, observers=(launch.counters, *observers)),
            cluster=launch.cluster,
            shared_bytes=launch.shared_bytes,
            schedule=log.schedule,
        )
        try:
            with file_access.replace_file(target) as file:
                trace.save(file)
        except LockstepError as error:
            raise build_logic_error(_ROUTINE, "the recording cannot be saved", error.message) from None
        findings = [finding.finding for finding in trace.findings]
        if trace.failure:
            last = findings.pop()
            raise LaunchError(trace.failure, kind=last.kind, position=(*last.positions, None)[0])
        return sort_findings(findings)


def _convert_error(error: LaunchError) -> DriverError:
    """Return the driver's exception for a launch that is invalid or failed."""
    reason = f"{error.message} {error.advice}".strip()
    if not error.kind:
        return build_logic_error(_ROUTINE, INVALID_VALUE, reason)
    failure = _REASONS.get(error.kind, "unspecified launch failure")
    return DriverLaunchError(format_failure(_ROUTINE, failure, reason))


def _build_wait_error(error: LaunchError, waited: str) -> DriverError:
    """Return the driver's exception for a launch that waits until the host writes an element."""
    reason = (
        f"{error.position}: the kernel waits in this loop for {waited}, which the host may write. The simulator runs a "
        "launch to its end before the program continues, so it cannot run a kernel that waits for the host."
    )
    return HostWaitError(format_failure(_ROUTINE, NOT_SUPPORTED, reason))


def _pad_extents(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*(int(extent) for extent in extents), 1, 1)[:3]
    return x, y, z


def _count_threads(grid: Sequence[int], block: Sequence[int]) -> int:
    return math.prod(grid) * math.prod(block)


def _trace_path(log: Journal, folder: Path, name: str) -> Path:
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return folder / f"{len(log.entries) + 1:04}-{plain}.trace"
