"""A launch: its arguments are taken out of the bytes that were packed, and it is run and taken down."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpu.driver import machine_code
from gpu.driver.faults import INVALID_VALUE, DriverLaunchError, said, wrong
from gpu.driver.journal import Journal, LaunchEntry, journal
from gpu.driver.memory import GlobalMemory
from gpu.errors import LaunchError, LockstepError
from gpu.files import opening
from gpu.simulator.checkers.every import every_checker
from gpu.simulator.checkers.findings import Finding, finding_of, in_order
from gpu.simulator.checkers.heap import HeapRecords
from gpu.simulator.counting.counters import Counters
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.pointers import PointerValue, from_number
from gpu.simulator.module import SimulatedModule
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Struct, Type

_ROUTINE = "cuLaunchKernel"
_REASONS = {
    "out-of-bounds": "an illegal memory access was encountered",
    "null-pointer": "an illegal memory access was encountered",
    "use-after-scope": "an illegal memory access was encountered",
    "misaligned": "misaligned address",
    "assertion": "device-side assert triggered",
    "endless": "the launch timed out and was terminated",
}


def alignment_of(type: Type) -> int:
    """Return what a parameter's offset is a multiple of."""
    match type:
        case Struct():
            return type.alignment
        case ArrayOf():
            return alignment_of(type.element)
    return type.size


def layout(kernel: SimulatedKernel) -> tuple[list[int], int]:
    """Return where each parameter lies in the bytes of the arguments, and how many they are."""
    offsets, end = [], 0
    for _, type in kernel.parameters:
        start = -(-end // alignment_of(type)) * alignment_of(type)
        offsets.append(start)
        end = start + type.size
    return offsets, end


def _unpacked(kernel: SimulatedKernel, packed: bytes) -> list[Any]:
    offsets, size = layout(kernel)
    if len(packed) < size:
        wanted = ", ".join(f"{type} {name}" for name, type in kernel.parameters) or "nothing"
        raise wrong(
            _ROUTINE,
            INVALID_VALUE,
            f"{kernel.name} takes {size} bytes of arguments ({wanted}), and {len(packed)} are given",
        )
    values: list[Any] = []
    for offset, (_, type) in zip(offsets, kernel.parameters, strict=True):
        raw = packed[offset : offset + type.size]
        if isinstance(type, Scalar):
            values.append(np.frombuffer(raw, type.dtype)[0])
        elif isinstance(type, Pointer):
            values.append(from_number(np.frombuffer(raw, np.int64)[0]))
        else:
            values.append(np.frombuffer(raw, f"V{type.size}")[0])
    return values


def _named(kernel: SimulatedKernel, values: Sequence[Any]) -> tuple[list[GlobalMemory], list[str]]:
    """Call the allocations what the kernel's parameters do; return them, and the names of those without values."""
    memories: list[GlobalMemory] = []
    for (parameter, declared), given in zip(kernel.parameters, values, strict=True):
        for name, type, value in _pointers(parameter, declared, given):
            memory = value.memory
            if isinstance(memory, GlobalMemory) and memory not in memories:
                memory.name, memory.element_bytes = name, type.element.size if value.offset == 0 else 0
                memories.append(memory)
    return memories, [memory.name for memory in memories if not memory.written]


def _pointers(name: str, type: Type, value: Any) -> Iterator[tuple[str, Pointer, PointerValue]]:
    """Yield the pointers that an argument is, or that are members of it: what a lambda has captured too."""
    if isinstance(type, Pointer) and isinstance(value, PointerValue):
        yield name, type, value
    elif isinstance(type, Struct) and not type.is_union:
        raw = bytes(value)
        for member in type.fields:
            part = raw[member.offset : member.offset + member.type.size]
            inner = name if member.is_anonymous else f"{name}.{member.name}"
            if isinstance(member.type, Pointer):
                yield inner, member.type, from_number(np.frombuffer(part, np.int64)[0])
            else:
                yield from _pointers(inner, member.type, part)


class LoadedModule:
    """A module, with what its launches leave to the next ones."""

    def __init__(self, module: SimulatedModule, text: str) -> None:
        self.module = module
        self._heaps = HeapRecords()
        texts = journal().texts
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
        place: str = "",
        cluster: Sequence[int] | None = None,
    ) -> None:
        """Run a kernel; `place` is the line that launches it: "script.py:12".

        Its blocks may be in clusters of so many along x, y and z.

        Raises
        ------
        DriverLaunchError
            The kernel does something wrong.
        DriverLogicError
            It is no launch that a GPU takes.
        """
        clusters = _extents(cluster) if cluster is not None else None
        kernel = self.module.kernel(name, clusters)
        extents = (_extents(grid), _extents(block))
        values = _unpacked(kernel, packed)
        memories, unwritten = _named(kernel, values)
        taking = journal()
        counters = Counters()
        found: list[Finding] = []
        failure: Finding | None = None
        target: Path | None = None
        refused = False
        taking.begun(name, place)
        modeled_us = taking.modeled(self.module, name, *extents, shared_bytes, values)
        begun = time.perf_counter()
        try:
            if taking.traces is not None and taking.recorded(len(taking.entries) + 1, _threads(*extents)):
                target = _trace_file(taking, taking.traces, name)
                found = self._record(name, extents, values, shared_bytes, unwritten, counters, target, clusters)
            else:
                checkers = every_checker(unwritten, self._heaps) if taking.checked else ()
                if taking.fast and machine_code.ran(self.module, kernel, name, extents, values, shared_bytes, clusters):
                    return
                try:
                    kernel.launch(
                        *extents,
                        values,
                        shared_bytes=shared_bytes,
                        observers=(counters, *checkers) if taking.checked else (),
                        schedule=taking.schedule,
                    )
                finally:
                    found = in_order(each for checker in checkers for each in checker.findings)
        except LaunchError as error:
            if not error.kind:
                refused = True
                raise wrong(_ROUTINE, INVALID_VALUE, f"{error.message} {error.advice}".strip()) from None
            failure = finding_of(error)
            reason = _REASONS.get(error.kind, "unspecified launch failure")
            raise DriverLaunchError(said(_ROUTINE, reason, f"{error.message} {error.advice}".strip())) from None
        finally:
            sys.stdout.flush()
            for memory in memories:
                memory.written = True
            milliseconds = 1e3 * (time.perf_counter() - begun)
            counted = taking.checked or target is not None
            entry = LaunchEntry(
                name,
                self._text,
                place,
                *extents,
                shared_bytes,
                milliseconds,
                (*([failure] if failure else []), *found),
                counters.total() if counted and failure is None else {},
                target,
                modeled_us,
            )
            if not refused:
                taking.entries.append(entry)
                taking.entered()

    def _record(
        self,
        name: str,
        extents: tuple[tuple[int, ...], tuple[int, ...]],
        values: Sequence[Any],
        shared_bytes: int,
        unwritten: Sequence[str],
        counters: Counters,
        target: Path,
        cluster: tuple[int, int, int] | None,
    ) -> list[Finding]:
        taking = journal()
        trace = self.module.trace(
            name,
            *extents,
            values,
            shared_bytes=shared_bytes,
            max_lane_events=taking.max_lane_events or MAXIMUM_LANE_EVENTS,
            schedule=taking.schedule,
            uninitialized=unwritten,
            observers=(counters,),
            cluster=cluster,
        )
        try:
            with opening.replacing(target) as file:
                trace.save(file)
        except LockstepError as error:
            raise wrong(_ROUTINE, "the recording cannot be saved", error.message) from None
        findings = [each.finding for each in trace.findings]
        if trace.failure:
            last = findings.pop()
            raise LaunchError(trace.failure, kind=last.kind, position=(*last.positions, None)[0])
        return in_order(findings)


def _extents(given: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*(int(extent) for extent in given), 1, 1)[:3]
    return x, y, z


def _threads(grid: Sequence[int], block: Sequence[int]) -> int:
    return math.prod(grid) * math.prod(block)


def _trace_file(taking: Journal, folder: Path, name: str) -> Path:
    plain = "".join(letter if letter.isalnum() else "_" for letter in name)
    return folder / f"{len(taking.entries) + 1:04}-{plain}.trace"
