"""Which thread wrote an element of a run's result: it runs again on the simulator, its last launches block by block.

A block is found by machine code, which runs ever fewer blocks while the element's value changes among them; what that
block's threads do is then watched in lockstep.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.declaration.pattern import Progress
from gpu.engines.base import kernel_text
from gpu.engines.rewinding import Filled, KeptLaunch, Origin, RewindingEngine, Rewound
from gpu.engines.simulator import SimulatedBuffer
from gpu.engines.tracing import TracingEngine
from gpu.errors import InputError, KernelError, LaunchError
from gpu.messages.requests import FindWriter, StepWriter
from gpu.messages.writer import MOST_STATEMENTS, Writer, WrittenElement
from gpu.patterns import find_pattern
from gpu.run.drive import Tell, accept, drive
from gpu.run.sized import opened
from gpu.simulator.counting.writers import SeenWrite, Writers
from gpu.stepping.recording import Recording

SECONDS = 2.0
"""How long the run may take, and how long the search: somebody waits."""
_MOST_OPERATIONS = 1e11
"""Operations of a run that machine code here takes some seconds for: a longer one is not begun."""


class _OutOfTimeError(Exception):
    """The search has had its time."""


@dataclass(frozen=True)
class _Found:
    """What was seen of the writes to an element in one launch; `whole`: of all its blocks."""

    first: SeenWrite
    last: SeenWrite
    writes: int
    threads: int
    blocks: int
    whole: bool
    statements: int


def find_writer(request: FindWriter, tell: Tell, seconds: float = SECONDS) -> WrittenElement:
    """Return who wrote an element last.

    Parameters
    ----------
    request : FindWriter
    tell : callable
    seconds : float
        How long the run may take, compilers left out, and how long the search.

    Raises
    ------
    InputError
        Where the run is not one that the pattern takes, or its result has no such element.
    KernelError
        Where a kernel does not compile, or fails while it runs.
    """
    about = WrittenElement(request.output, request.element)
    with closing(RewindingEngine(request.device)) as engine:
        try:
            result = _run(engine, request, tell, seconds)
        except _OutOfTimeError:
            return replace(about, unknown=f"It is not known: to run it again takes more than {seconds:g} s here.")
        about = replace(about, launches=engine.launches)
        origin = engine.origin(result, request.element)
        if origin is None:
            return replace(about, unknown="No thread wrote it: the host program worked it out.")
        tell(Progress(None, "looking for its thread"))
        return _searched(engine, origin, about, time.monotonic() + seconds, seconds)


def record_writer(request: StepWriter, tell: Tell) -> Recording:
    """Return the recording of the block that wrote an element, at true size.

    Raises
    ------
    InputError, KernelError
        As of `find_writer`.
    """
    writer = request.writer
    with (
        closing(RewindingEngine(request.find.device)) as engine,
        closing(TracingEngine(max_lane_events=2 * MOST_STATEMENTS)) as tracing,
    ):
        result = _run(engine, request.find, tell, np.inf)
        origin = engine.origin(result, request.find.element)
        launches = [each for each in engine.kept if isinstance(each, KeptLaunch) and each.number == writer.launch]
        if origin is None or not launches:
            raise InputError("The launch that wrote it is not kept: it is one of too many.")
        (kept,) = launches
        tell(Progress(None, "recording its block"))
        rewound = Rewound(kept, lambda: None)
        rewound.run(range(writer.block_number))
        tracing.sources = engine.sources
        module = tracing.build(kept.kernel.file, kept.kernel.defines)
        kernel = module.kernel(kept.kernel.name)
        for name, data in rewound.variables().items():
            with suppress(KernelError):  # what lowering adds has a name of its own
                module.set_constant(name, data)
        buffers: dict[SimulatedBuffer, SimulatedBuffer] = {}
        for each in kept.arguments:
            if isinstance(each, SimulatedBuffer):
                buffers.setdefault(each, SimulatedBuffer(each.shape, each.dtype, rewound.memory(each)))
        arguments = [buffers[each] if isinstance(each, SimulatedBuffer) else each for each in kept.arguments]
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
            if not tracing.launched:
                raise
            failure = error.message
        return tracing.recording(failure)


def _run(engine: RewindingEngine, request: FindWriter, tell: Tell, seconds: float) -> np.ndarray[Any, Any]:
    """Run the host program, and return its output."""
    run = request.run
    pattern = find_pattern(run.pattern)
    variant = pattern.variant(run.variant)
    if variant.library:
        raise InputError(f"No thread is known: {variant.library} is a library, which comes without its source.")
    given = opened(run.inputs, run.side)
    params = pattern.check(run.params)
    inputs = pattern.inputs(given, params, run.seed)
    accept(pattern, variant, inputs, params)
    if pattern.cost(inputs, params).flops > _MOST_OPERATIONS:
        raise _OutOfTimeError
    engine.sources = dict(run.sources)

    def told(progress: Progress) -> None:
        if engine.spent_s > seconds:
            raise _OutOfTimeError
        tell(progress)

    outputs = drive(engine, variant, inputs, params, told)
    result = outputs.get(request.output)
    inside = result is not None and len(request.element) == result.ndim
    if (
        result is None
        or not inside
        or not all(0 <= at < of for at, of in zip(request.element, result.shape, strict=True))
    ):
        raise InputError(f"{request.output} of {pattern.title} has no element {request.element}.")
    return result


def _searched(
    engine: RewindingEngine, origin: Origin, about: WrittenElement, deadline: float, seconds: float
) -> WrittenElement:
    """Look through the launches, the last one first."""

    def on_progress() -> None:
        if time.monotonic() > deadline:
            raise _OutOfTimeError

    for kept in reversed(engine.kept):
        if isinstance(kept, Filled):
            if kept.buffer is origin.buffer:
                return replace(about, unknown="No thread wrote it: the host program filled the array with this value.")
            continue
        if origin.buffer not in kept.arguments:
            continue
        try:
            found = _in_launch(Rewound(kept, on_progress), origin, on_progress)
        except _OutOfTimeError:
            who = "One thread alone runs" if kept.threads == 1 else "A block has too much to watch"
            which = f"{kept.kernel.name}, launch {kept.number + 1} of {engine.launches}"
            return replace(about, unknown=f"It is not found in {seconds:g} s. {who} in {which}.")
        if found is not None:
            return replace(
                about,
                array=_name(kept, origin.buffer),
                index=origin.start // origin.buffer.dtype.itemsize,
                writer=_writer(found.last, kept, engine),
                first=_writer(found.first, kept, engine),
                writes=found.writes,
                threads=found.threads,
                blocks=found.blocks,
                whole=found.whole,
                shape=origin.buffer.shape,
                statements=found.statements,
            )
    if not engine.complete:
        return replace(about, unknown="It is not found: there are too many launches to keep what all of them found.")
    return replace(about, unknown="No thread wrote it: it is as the host program put it there.")


def _in_launch(rewound: Rewound, origin: Origin, on_progress: Any) -> _Found | None:
    """Return what a launch wrote to an element; None where it wrote nothing."""
    kept = rewound.kept
    every = range(kept.blocks)

    def watched(blocks: range) -> Writers:
        watch = Writers(rewound.memory(origin.buffer), origin.start, origin.size, on_progress)
        rewound.watch(blocks, watch)
        return watch

    if not kept.compiled or kept.blocks == 1:
        return _found(watched(every), len(every), whole=True)
    start = rewound.save()
    block = _first_to_change(rewound, origin)
    one = _found(watched(range(block, block + 1)), 1, whole=False)
    alone = one is not None and not one.last.atomic and _stays(rewound, origin, range(block + 1, kept.blocks))
    if one is not None and alone:
        return one
    rewound.restore(start)
    try:
        return _found(watched(every), len(every), whole=True)
    except _OutOfTimeError:
        if one is None:
            raise
        return one


def _found(watch: Writers, blocks: int, *, whole: bool) -> _Found | None:
    if watch.first is None or watch.last is None:
        return None
    return _Found(watch.first, watch.last, watch.writes, watch.threads, watch.blocks, whole, watch.statements // blocks)


def _held(rewound: Rewound, origin: Origin) -> bytes:
    return rewound.memory(origin.buffer)[origin.start : origin.start + origin.size].tobytes()


def _first_to_change(rewound: Rewound, origin: Origin) -> int:
    """Return the first block that changes an element, and leave all as it is before that block; else the last one."""
    before = _held(rewound, origin)
    low, high = 0, rewound.kept.blocks
    while high - low > 1:
        middle = (low + high) // 2
        saved = rewound.save()
        rewound.run(range(low, middle))
        if _held(rewound, origin) == before:
            low = middle
        else:
            high = middle
            rewound.restore(saved)
    return low


def _stays(rewound: Rewound, origin: Origin, blocks: range) -> bool:
    """Whether an element is the same after some more blocks."""
    before = _held(rewound, origin)
    rewound.run(blocks)
    return _held(rewound, origin) == before


def _name(kept: KeptLaunch, buffer: SimulatedBuffer) -> str:
    """Return what a kernel calls a buffer: the first parameter that points to it, as recordings have it."""
    return kept.kernel.plain.lockstep.parameters[kept.arguments.index(buffer)][0]


def _writer(seen: SeenWrite, kept: KeptLaunch, engine: RewindingEngine) -> Writer:
    file, line = seen.position.file, seen.position.line
    text = ""
    with suppress(KernelError):  # a header from elsewhere has no text
        lines = kernel_text(file, engine.sources).splitlines()
        text = lines[line - 1].strip() if line <= len(lines) else ""
    return Writer(
        seen.kernel,
        kept.number,
        seen.grid,
        seen.block_shape,
        seen.block,
        seen.thread,
        file,
        line,
        text,
        seen.atomic,
        seen.lanes,
        seen.sectors,
        seen.ideal_sectors,
        seen.queue,
    )
