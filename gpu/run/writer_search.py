"""Find the thread that wrote an element of a run's result: rerun on the simulator, then search the last launches.

Machine code narrows the search down to a block, by running ever fewer blocks while the element's value changes among
them; that block's threads are then observed in lockstep.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.base.errors import InputError, KernelError, LaunchError
from gpu.declaration.pattern import Progress
from gpu.engines.base import kernel_text
from gpu.engines.rewinding_engine import BufferFill, Origin, RewindingEngine, RewoundLaunch, SavedLaunch
from gpu.engines.simulator import SimulatedBuffer, replace_buffer
from gpu.engines.tracing_engine import TracingEngine
from gpu.messages.runs.writer import MAX_STATEMENTS, FindWriter, StepWriter, Writer, WrittenElement
from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.host_program import ProgressCallback, run_host_program, validate_inputs
from gpu.run.request_inputs import open_inputs
from gpu.simulator.counting.writers import ObservedWrite, Writers

TIME_LIMIT_S = 2.0
"""Time limit of the rerun, and of the search: a user is waiting."""
_MAX_OPERATIONS = 1e11
"""Operations that take machine code here several seconds; longer runs are not started."""


class _OutOfTimeError(Exception):
    """The time limit is exceeded."""


@dataclass(frozen=True)
class _LaunchWrites:
    """Writes to an element in one launch; `is_complete` is whether all of its blocks were observed."""

    first: ObservedWrite
    last: ObservedWrite
    writes: int
    threads: int
    blocks: int
    is_complete: bool
    statements: int


def find_writer(
    request: FindWriter, report_progress: ProgressCallback, seconds: float = TIME_LIMIT_S
) -> WrittenElement:
    """Return the last writer of an element.

    Parameters
    ----------
    seconds : float
        Time limit of the rerun, without compiling, and of the search.

    Raises
    ------
    InputError
        The run is not valid for the pattern, or its result has no such element.
    KernelError
        A kernel does not compile or fails.
    """
    about = WrittenElement(request.output, request.element)
    with closing(RewindingEngine(request.device)) as engine:
        try:
            result = _rerun(engine, request, report_progress, seconds)
        except _OutOfTimeError:
            return replace(
                about, unknown_reason=f"The writer is unknown: to repeat the run takes more than {seconds:g} s here."
            )
        about = replace(about, launches=engine.launches)
        origin = engine.find_origin(result, request.element)
        if origin is None:
            return replace(about, unknown_reason="No thread wrote it: the host program computed it.")
        report_progress(Progress(None, "searching for the thread"))
        return _search_launches(engine, origin, about, time.monotonic() + seconds, seconds)


def record_writer(request: StepWriter, report_progress: ProgressCallback) -> Recording:
    """Return the recording of the block that wrote an element, at the run's full size.

    Raises
    ------
    InputError, KernelError
        As in `find_writer`.
    """
    writer = request.writer
    with (
        closing(RewindingEngine(request.request.device)) as engine,
        closing(TracingEngine(max_lane_events=2 * MAX_STATEMENTS)) as tracing,
    ):
        result = _rerun(engine, request.request, report_progress, np.inf)
        origin = engine.find_origin(result, request.request.element)
        launches = [
            saved_operation
            for saved_operation in engine.saved_operations
            if isinstance(saved_operation, SavedLaunch) and saved_operation.number == writer.launch
        ]
        if origin is None or not launches:
            raise InputError("The launch that wrote it was not kept: there are too many launches.")
        (kept,) = launches
        report_progress(Progress(None, "recording its block"))
        rewound = RewoundLaunch(kept, lambda: None)
        rewound.run(range(writer.block_number))
        tracing.sources = engine.sources
        module = tracing.build(kept.kernel.file, kept.kernel.defines)
        kernel = module.kernel(kept.kernel.name)
        for name, data in rewound.copy_variables().items():
            with suppress(KernelError):  # lowering may add variables that the other module names differently
                module.set_constant(name, data)
        buffers = {
            buffer: SimulatedBuffer(buffer.shape, buffer.dtype, rewound.current_contents(buffer))
            for buffer in kept.buffers
            if buffer is not None
        }
        arguments = [replace_buffer(argument, buffers.__getitem__) for argument in kept.arguments]
        failure = ""
        try:
            tracing.launch(
                kernel,
                kept.grid,
                kept.block,
                *arguments,
                shared_bytes=kept.shared_bytes,
                blocks=range(writer.block_number, writer.block_number + 1),
            )
        except LaunchError as error:
            if not tracing.has_launches:
                raise
            failure = error.message
        return tracing.build_recording(failure)


def _rerun(
    engine: RewindingEngine, request: FindWriter, report_progress: ProgressCallback, seconds: float
) -> np.ndarray[Any, Any]:
    """Run the host program and return its output."""
    run = request.run
    pattern = find_pattern(run.pattern)
    variant = pattern.variant(run.variant)
    if variant.library:
        raise InputError(f"The thread is unknown: {variant.library} is a library without source code.")
    arrays = open_inputs(run.inputs, run.side)
    params = pattern.check(run.params)
    inputs = pattern.prepare_inputs(arrays, params, run.seed)
    validate_inputs(pattern, variant, inputs, params)
    if pattern.cost(inputs, params).flops > _MAX_OPERATIONS:
        raise _OutOfTimeError
    engine.sources = dict(run.sources)

    def on_progress(progress: Progress) -> None:
        if engine.elapsed_s > seconds:
            raise _OutOfTimeError
        report_progress(progress)

    outputs = run_host_program(engine, variant, inputs, params, on_progress)
    result = outputs.get(request.output)
    has_rank = result is not None and len(request.element) == result.ndim
    if (
        result is None
        or not has_rank
        or not all(0 <= index < size for index, size in zip(request.element, result.shape, strict=True))
    ):
        raise InputError(f"{request.output} of {pattern.title} has no element {request.element}.")
    return result


def _search_launches(
    engine: RewindingEngine, origin: Origin, written_element: WrittenElement, deadline: float, seconds: float
) -> WrittenElement:
    """Search the launches for the writer, the last launch first."""

    def on_progress() -> None:
        if time.monotonic() > deadline:
            raise _OutOfTimeError

    for kept in reversed(engine.saved_operations):
        if isinstance(kept, BufferFill):
            if kept.buffer is origin.buffer:
                return replace(
                    written_element,
                    unknown_reason="No thread wrote it: the host program filled the array with this value.",
                )
            continue
        if origin.buffer not in kept.buffers:
            continue
        try:
            writes = _writes_in_launch(RewoundLaunch(kept, on_progress), origin, on_progress)
        except _OutOfTimeError:
            reason = "A single thread runs" if kept.threads == 1 else "A block has too much work to observe"
            launch = f"{kept.kernel.name}, launch {kept.number + 1} of {engine.launches}"
            return replace(written_element, unknown_reason=f"Not found in {seconds:g} s. {reason} in {launch}.")
        if writes is not None:
            return replace(
                written_element,
                array=_find_parameter_name(kept, origin.buffer),
                index=origin.start // origin.buffer.dtype.itemsize,
                writer=_describe_writer(writes.last, kept, engine),
                first=_describe_writer(writes.first, kept, engine),
                writes=writes.writes,
                threads=writes.threads,
                blocks=writes.blocks,
                is_complete=writes.is_complete,
                shape=origin.buffer.shape,
                statements=writes.statements,
            )
    if not engine.complete:
        return replace(
            written_element, unknown_reason="Not found: there are too many launches to keep the inputs of all of them."
        )
    return replace(written_element, unknown_reason="No thread wrote it: the host program put this value there.")


def _writes_in_launch(rewound: RewoundLaunch, origin: Origin, on_progress: Any) -> _LaunchWrites | None:
    """Return a launch's writes to an element; None without any."""
    kept = rewound.saved_launch
    all_blocks = range(kept.blocks)

    def observe(blocks: range) -> Writers:
        watch = Writers(rewound.current_contents(origin.buffer), origin.start, origin.size, on_progress)
        rewound.run_observed(blocks, watch)
        return watch

    if not kept.compiled or kept.blocks == 1:
        return _summarize_writes(observe(all_blocks), len(all_blocks), is_complete=True)
    start = rewound.save()
    block = _find_first_changing_block(rewound, origin)
    block_writes = _summarize_writes(observe(range(block, block + 1)), 1, is_complete=False)
    is_last = (
        block_writes is not None
        and not block_writes.last.atomic
        and _is_unchanged_by(rewound, origin, range(block + 1, kept.blocks))
    )
    if block_writes is not None and is_last:
        return block_writes
    rewound.restore(start)
    try:
        return _summarize_writes(observe(all_blocks), len(all_blocks), is_complete=True)
    except _OutOfTimeError:
        if block_writes is None:
            raise
        return block_writes


def _summarize_writes(block_writers: Writers, blocks: int, *, is_complete: bool) -> _LaunchWrites | None:
    if block_writers.first is None or block_writers.last is None:
        return None
    return _LaunchWrites(
        block_writers.first,
        block_writers.last,
        block_writers.writes,
        block_writers.threads,
        block_writers.blocks,
        is_complete,
        block_writers.statements // blocks,
    )


def _read_element(rewound: RewoundLaunch, origin: Origin) -> bytes:
    return rewound.current_contents(origin.buffer)[origin.start : origin.start + origin.size].tobytes()


def _find_first_changing_block(rewound: RewoundLaunch, origin: Origin) -> int:
    """Return the first block that changes an element, else the last one; leave the memory as before that block."""
    before = _read_element(rewound, origin)
    low, high = 0, rewound.saved_launch.blocks
    while high - low > 1:
        middle = (low + high) // 2
        saved = rewound.save()
        rewound.run(range(low, middle))
        if _read_element(rewound, origin) == before:
            low = middle
        else:
            high = middle
            rewound.restore(saved)
    return low


def _is_unchanged_by(rewound: RewoundLaunch, origin: Origin, blocks: range) -> bool:
    """Return whether an element is unchanged after further blocks."""
    before = _read_element(rewound, origin)
    rewound.run(blocks)
    return _read_element(rewound, origin) == before


def _find_parameter_name(saved_launch: SavedLaunch, buffer: SimulatedBuffer) -> str:
    """Return a kernel's name of a buffer: the first parameter that points to it, as in recordings."""
    return saved_launch.kernel.simulator_kernel.lockstep.parameters[saved_launch.buffers.index(buffer)][0]


def _describe_writer(write: ObservedWrite, saved_launch: SavedLaunch, engine: RewindingEngine) -> Writer:
    file, line = write.position.file, write.position.line
    text = ""
    with suppress(KernelError):  # the text of a header from elsewhere is not available
        lines = kernel_text(file, engine.sources).splitlines()
        text = lines[line - 1].strip() if line <= len(lines) else ""
    return Writer(
        write.kernel,
        saved_launch.number,
        write.grid,
        write.block_shape,
        write.block,
        write.thread,
        file,
        line,
        text,
        write.atomic,
        write.lanes,
        write.sectors,
        write.ideal_sectors,
        write.queue,
    )
