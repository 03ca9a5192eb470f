"""What a recording is when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.functions import TraceFunction, describe
from gpu.simulator.trace.memory import TraceMemory
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.recorded_memory import RecordedMemory
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.terms import ExecutedStatement, statement_of
from gpu.simulator.trace.types import TraceFinding, TraceLaunch
from gpu.simulator.trace.vectors import PackedIntegers, PackedMasks, PackedValues


@dataclass(frozen=True)
class LaunchRecord:
    """What was launched, and what came of it.

    Parameters
    ----------
    kernel : str
        As it was asked for: "fill<int, 3>".
    source, file : str
        The text, and where it stands.
    defines : mapping of str to str
        The macros that it was compiled with.
    schedule : str
        The order in which warps and lanes ran, one of `gpu.schedules.NAMES`.
    failure : str
        The mistake at which the launch ended; "" where it did not.
    findings : tuple of TraceFinding
    """

    kernel: str
    source: str
    file: str
    defines: Mapping[str, str]
    schedule: str
    failure: str
    findings: tuple[TraceFinding, ...]


@dataclass(frozen=True, eq=False)
class TraceData:
    """A recording.

    Parameters
    ----------
    launch : LaunchRecord
    stopped : str
        Why the recording ended before the launch did; "" where it did not.
    lane_events : int
        How many statements of single lanes were recorded.
    launches : tuple of TraceLaunch
        The host's, and those by kernels.
    functions : tuple of TraceFunction
    statements : tuple of ExecutedStatement
        Those that ran, by the numbers that events have.
    memories : tuple of TraceMemory
    positions : tuple of SourcePosition
    kinds, operators, pointer_names : tuple of str
        What events, operations and pointers have the numbers of.
    events, accesses, registers, pointers, operations, barriers, batches, calls, inputs : arrays
        The tables, of the types in `gpu.simulator.trace.tables`.
    integers : PackedIntegers
    values : PackedValues
    masks : PackedMasks
    """

    launch: LaunchRecord
    stopped: str
    lane_events: int
    launches: tuple[TraceLaunch, ...]
    functions: tuple[TraceFunction, ...]
    statements: tuple[ExecutedStatement, ...]
    memories: tuple[TraceMemory, ...]
    positions: tuple[SourcePosition, ...]
    kinds: tuple[str, ...]
    operators: tuple[str, ...]
    pointer_names: tuple[str, ...]
    events: Array
    accesses: Array
    registers: Array
    pointers: Array
    operations: Array
    barriers: Array
    batches: Array
    calls: Array
    inputs: Array
    integers: PackedIntegers
    values: PackedValues
    masks: PackedMasks


def gather(recorder: Recorder, launch: LaunchRecord) -> TraceData:
    """Return what a recorder has seen of a launch."""
    return TraceData(
        launch,
        recorder.stopped,
        recorder.lane_events,
        tuple(recorder.launches),
        tuple(describe(function, recorder.positions.numbers) for function in recorder.functions),
        tuple(map(statement_of, recorder.statements)),
        tuple(map(_memory, recorder.memories)),
        recorder.positions.things,
        recorder.kinds.things,
        recorder.operators.things,
        recorder.pointer_names.things,
        recorder.events.array(),
        recorder.accesses.array(),
        recorder.registers.array(),
        recorder.pointers.array(),
        recorder.operations.array(),
        recorder.barriers.array(),
        recorder.batches.array(),
        recorder.calls.array(),
        recorder.inputs.array(),
        recorder.integers.packed(),
        recorder.values.packed(),
        recorder.masks.packed(),
    )


def _memory(memory: RecordedMemory) -> TraceMemory:
    unit = memory.unit or 1
    return TraceMemory(
        memory.name,
        memory.space,
        memory.size,
        memory.dtype if memory.dtype is not None else np.dtype(np.uint8),
        memory.blocks,
        memory.stride,
        memory.lanes,
        memory.batch,
        unit,
        bool(memory.unit),
        memory.base,
        memory.fill,
        memory.initial,
        memory.index.array().copy(),
        memory.nodes.array().copy(),
        memory.values.array().copy().reshape(-1, unit),
        np.array(memory.borders, np.int32),
    )
