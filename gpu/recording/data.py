"""The data of a trace: tables and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpu.errors import SourcePosition
from gpu.recording.memory import TraceMemory
from gpu.recording.packing import Array, PackedIntegers, PackedMasks, PackedValues
from gpu.recording.statements import ExecutedStatement, TraceFunction
from gpu.recording.types import TraceFinding, TraceLaunch


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
        The tables, of the types in `gpu.recording.tables`.
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
