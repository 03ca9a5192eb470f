"""The data of a trace: tables and descriptions, gathered after a launch was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.trace.functions import TraceFunction, describe_function
from gpu.simulator.trace.memory import TraceMemory
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.recorded_memory import RecordedMemory
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.terms import ExecutedStatement, convert_statement
from gpu.simulator.trace.types import TraceFinding, TraceLaunch
from gpu.simulator.trace.vectors import PackedIntegers, PackedMasks, PackedValues


@dataclass(frozen=True)
class LaunchRecord:
    """The description of a launch, and its outcome.

    Parameters
    ----------
    kernel : str
        The name as requested, such as "fill<int, 3>".
    source, file : str
        The source text, and its file.
    defines : mapping of str to str
        The macros of the compilation.
    schedule : str
        The schedule, one of `gpu.schedules.NAMES`.
    failure : str
        The error that ended the launch; "" if it succeeded.
    findings : tuple of TraceFinding
        The findings of the checkers.
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
    """The data of a trace.

    Parameters
    ----------
    launch : LaunchRecord
        The description of the launch.
    stop_reason : str
        Why the recording ended before the launch did; "" if it did not.
    lane_events : int
        The number of recorded statements of single lanes.
    launches : tuple of TraceLaunch
        The host's launch, and the child launches.
    functions, statements, memories, positions, kinds, operators, pointer_names : tuple
        The objects that the tables refer to by number.
    events, accesses, registers, pointers, operations, barriers, batches, calls, inputs : arrays
        The tables, of the types in `gpu.simulator.trace.tables`.
    integers, values, masks : PackedIntegers, PackedValues, PackedMasks
        The vectors and masks that the tables refer to by number.
    """

    launch: LaunchRecord
    stop_reason: str
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


def gather_trace_data(recorder: Recorder, launch: LaunchRecord) -> TraceData:
    """Gather the data of a recorder after a launch."""
    return TraceData(
        launch,
        recorder.stop_reason,
        recorder.lane_events,
        tuple(recorder.launches),
        tuple(describe_function(function, recorder.positions.numbers) for function in recorder.functions),
        tuple(map(convert_statement, recorder.statements)),
        tuple(map(_memory, recorder.memories)),
        recorder.positions.objects,
        recorder.kinds.objects,
        recorder.operators.objects,
        recorder.pointer_names.objects,
        recorder.events.array(),
        recorder.accesses.array(),
        recorder.registers.array(),
        recorder.pointers.array(),
        recorder.operations.array(),
        recorder.barriers.array(),
        recorder.batches.array(),
        recorder.calls.array(),
        recorder.inputs.array(),
        recorder.integers.pack(),
        recorder.values.pack(),
        recorder.masks.pack(),
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
