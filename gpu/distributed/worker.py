"""The inside of a worker: one engine, used by the worker's one thread, and the tasks that it carries out."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from distributed import WorkerPlugin, get_worker

from gpu import __version__, engines
from gpu.declaration.distributed import OnWorker, Piece, Step
from gpu.declaration.pattern import Pattern
from gpu.devices.probe import look_from_outside
from gpu.distributed.chunks import Chunk, ChunkInParts, PartsOfChunk
from gpu.distributed.resident import Resident, settle
from gpu.distributed.told import tell
from gpu.engines.base import Buffer, Device, Engine, KeepingEngine, SharingEngine
from gpu.errors import EngineLostError, EngineUnavailableError, InputError, LockstepError
from gpu.messages.distributed import Fetch, Taken, TaskRecord
from gpu.patterns import find_pattern

PLUGIN = "lockstep"

_LET_IT_BE_TOLD = 0.3
"""Seconds in which the scheduler hears why a worker ends."""

_CLOSE_S = 2.0

_TOLD_BYTES = 2**14
"""Of a result that is told with a task's record, at most: the scheduler keeps the last thousand."""

_MOST_FETCHES = 1024
"""Of a worker, looked through for those of a task."""

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ON_GPUS = ("auto", "cuda")
_OFFERED = (0, 1, 2, 3)


@dataclass
class ProcessEngine:
    """The engine of this process, the thread that it belongs to, and what is to be freed there."""

    engine: Engine | None = None
    thread: int | None = None
    discarded: deque[Buffer] = field(default_factory=deque)


_engines: dict[str, ProcessEngine] = {}
"""By names: whoever asks this worker later finds an engine that is warm, with what it has compiled."""


class EnginePlugin(WorkerPlugin):  # type: ignore[misc]
    """Gives a worker its engine, which is made in the thread that uses it.

    Parameters
    ----------
    engine : str
        As `gpu.engines.create` takes it.
    ordinals : mapping of str to (int, int)
        By workers' names, which of its machine's GPUs each takes, counted from 0, and how many there are for all.
    gpus : int
        How many GPUs each worker's machine has; 0 where that is not known, and every worker looks.
    version : str
        Of the Lockstep that asks.
    """

    name = PLUGIN

    def __init__(
        self, engine: str, ordinals: Mapping[str, tuple[int, int]], gpus: int = 0, version: str = __version__
    ) -> None:
        self._engine_name = engine
        self._ordinals = dict(ordinals)
        self._gpus = gpus
        self._version = version

    def setup(self, worker: Any) -> None:
        if self._version != __version__:
            raise EngineUnavailableError(
                f"A worker has Lockstep {__version__}, and this is {self._version}.",
                advice="Start the workers from the same version.",
            )
        self._worker = worker
        self._here = _engines.setdefault(self._engine_name, ProcessEngine())
        self.shares = False
        self.run = ""
        self.offered: Buffer | None = None
        settle(self)

    async def teardown(self, worker: Any) -> None:
        """Close the engine where the worker ends; one that is asked anew goes on with it."""
        if worker.status.name != "closing" or self._here.engine is None:
            return
        closed = worker.executors["default"].submit(self._close)
        with suppress(TimeoutError):  # as where a kernel does not end
            await asyncio.wait_for(asyncio.wrap_future(closed), _CLOSE_S)

    def _close(self) -> None:
        # PyCUDA ends a process by force whose thread has gone with a context.
        self.engine.close()
        self._here.engine = None

    @property
    def engine(self) -> Engine:
        """The engine, in its own thread, with what nobody asks for any more freed."""
        here = self._here
        if here.engine is None:
            ordinal, workers = self._ordinals.get(str(self._worker.name), (0, 1))
            if workers > 1 and self._engine_name in _ON_GPUS:
                # To look takes a process a second.
                gpus = self._gpus or len(look_from_outside().gpus)
                if gpus > 1:
                    os.environ[_VISIBLE] = rotated(os.environ.get(_VISIBLE, ""), ordinal, gpus)
            here.engine, here.thread = engines.create(self._engine_name), threading.get_ident()
            # On somebody's own cluster others may wait for memory.
            if workers <= self._gpus and isinstance(here.engine, KeepingEngine):
                here.engine.keep_memory()
        assert here.thread == threading.get_ident(), "an engine belongs to the thread that made it"
        while here.discarded:
            here.engine.free(here.discarded.popleft())
        return here.engine

    def exchange(self, change: Callable[[Engine], Engine]) -> None:
        """Put another engine in the engine's place, in its thread."""
        self._here.engine = change(self.engine)

    def in_engines_thread(self, action: Callable[[Engine], Any]) -> Any:
        if self._here.thread == threading.get_ident():
            return action(self.engine)
        executor = self._worker.executors["default"]
        try:
            return executor.submit(lambda: action(self.engine)).result()
        except Exception as error:
            # Dask tries again for ever what it brings from worker to worker, or waits for it.
            if self.run:
                tell(self._worker, self.run, {"unmoved": str(error)})
            raise

    def discard(self, buffer: Buffer) -> None:
        self._here.discarded.append(buffer)


def rotated(visible: str, ordinal: int, count: int) -> str:
    """Return CUDA_VISIBLE_DEVICES with another GPU first, and all others still there: data comes from them.

    Parameters
    ----------
    visible : str
        What it is now; "" where it is not set.
    ordinal : int
        The worker's, among those of its machine; there may be more of them than GPUs.
    count : int
        How many GPUs CUDA sees now: of a list, those before the first one that there is not.
    """
    devices = [each.strip() for each in visible.split(",") if each.strip()][:count] or list(map(str, range(count)))
    first = ordinal % len(devices)
    return ",".join(devices[first:] + devices[:first])


@dataclass(frozen=True)
class TaskCall:
    """A step of a run, as a worker is told of it.

    Parameters
    ----------
    run : str
        Which it is of.
    name : str
    step : Step
    pattern, variant : str
    params : mapping
    sources : mapping of str to str
        Texts for kernel files, where they are edited.
    place : int
    taken : tuple of Taken
    accept : bool
        Whether the pattern has not seen the chunk's input yet.
    following : tuple or None
        A step that takes what this one makes, of which nothing else is kept, and so many of the last values; or one of
        several things, by its name, and all others are kept.
    elsewhere : collection of str
        The parts of what is made that other workers are to take; "" is all of it.
    wanted : bool
        Whether who has the run waits for it.
    """

    run: str
    name: str
    step: Step
    pattern: str
    variant: str
    params: Mapping[str, Any]
    sources: Mapping[str, str]
    place: int
    taken: tuple[Taken, ...] = field(default=())
    accept: bool = False
    following: tuple[Step, int, str] | None = None
    elsewhere: Collection[str] = ()
    wanted: bool = False


def carry_out(call: TaskCall, *values: Any) -> Any:
    """Run a step on this worker's engine, in the worker's thread, and tell the scheduler what it did."""
    worker = get_worker()
    plugin = worker.plugins[PLUGIN]
    plugin.run = call.run
    begin = time.time()
    engine = plugin.engine
    engine.sources = dict(call.sources)
    engine.take_times()
    pattern = find_pattern(call.pattern)
    read: list[Piece | PartsOfChunk] = []
    variant = pattern.variant(call.variant)
    try:
        on_worker = OnWorker(engine, call.params, call.variant, variant.run)
        following, count, part = call.following or (None, 0, "")
        own = len(values) - count
        result = call.step(on_worker, *(_opened(value, call, plugin, engine, read) for value in values[:own]))
        held = sum(piece.nbytes for piece in read) + sum(size for _, size in _sizes(result)) + worker.state.nbytes
        if following is not None:
            more = [_opened(value, call, plugin, engine, read) for value in values[own:]]
            made = following(on_worker, result[part] if part else result, *more)
            result = {**result, part: made} if part else made
        times = engine.take_times()
    except EngineLostError as error:
        # The device's context is ruined, and only a new process has another: the chunk is done again there.
        tell(worker, call.run, {"lost": worker.address, "why": error.message})
        time.sleep(_LET_IT_BE_TOLD)
        os._exit(1)
    kept = _kept(plugin, engine, result, call.elsewhere)
    elements = (read[0].start, read[0].stop) if read else None
    step = call.step.__name__.strip("_").replace("_", " ")
    record = TaskRecord(
        call.name,
        step,
        call.place,
        worker.address,
        begin,
        time.time(),
        times,
        _sizes(result),
        call.taken,
        elements,
        held,
        _fetched(worker),
    )
    told = _as_told(kept) if call.wanted else None
    tell(worker, call.run, {"record": record.data(), "result": told})
    return kept


def _as_told(kept: Any) -> tuple[str, tuple[int, ...], bytes] | None:
    """Return a small array of numbers as its type, shape and bytes; None for all else."""
    if isinstance(kept, np.ndarray) and kept.nbytes <= _TOLD_BYTES and kept.dtype.kind in "biuf":
        return kept.dtype.str, kept.shape, kept.tobytes()
    return None


def _fetched(worker: Any) -> tuple[Fetch, ...]:
    """Return how what the task that runs here took came from other workers."""
    taken = {each.key for each in worker.state.tasks[worker.get_current_task()].dependencies}
    # Dask tells when by the scheduler's clock, and all else here goes by this machine's.
    by = worker.scheduler_delay
    return tuple(
        Fetch(each["who"], each["start"] - by, each["stop"] - by)
        for each in islice(reversed(worker.transfer_incoming_log), _MOST_FETCHES)
        if not taken.isdisjoint(each["keys"])
    )


def _opened(value: Any, call: TaskCall, plugin: EnginePlugin, engine: Engine, read: list[Piece | PartsOfChunk]) -> Any:
    """Return what a step takes for what Dask gives; chunks are read, or will be, and stand in `read` too."""

    def look_at(piece: Piece) -> None:
        if call.accept:
            _accept(find_pattern(call.pattern), call.variant, piece, call.params)

    match value:
        case Chunk():
            piece = value.read()
            look_at(piece)
            read.append(piece)
            return piece
        case ChunkInParts():
            parts = PartsOfChunk(value, look_at)
            read.append(parts)
            return parts
        case Resident():
            return value.on(plugin, engine)
        case list():
            return [_opened(each, call, plugin, engine, read) for each in value]
    return value


def _sizes(result: Any) -> tuple[tuple[str, int], ...]:
    """Return names and bytes of what a step returned."""
    named = result if isinstance(result, Mapping) else {"": result}
    return tuple((name, _nbytes(each)) for name, each in named.items())


def _nbytes(made: Any) -> int:
    if isinstance(made, Mapping):
        return sum(map(_nbytes, made.values()))
    return int(math.prod(made.shape) * made.dtype.itemsize)


def _accept(pattern: Pattern, variant: str, piece: Piece, params: Mapping[str, Any]) -> None:
    """Raise InputError where a chunk is none that a pattern takes, by its first element's place, or none for a rung."""
    try:
        pattern.accept(piece.inputs, params)
    except InputError as error:
        first = piece.start - piece.before
        raise InputError(f"In the chunk from {first} on: {error.message}", advice=error.advice) from None
    if obstacle := pattern.variant(variant).obstacle(piece.inputs, params):
        raise InputError(obstacle)


def _kept(plugin: EnginePlugin, engine: Engine, result: Any, elsewhere: Collection[str], part: str = "") -> Any:
    """Return what a step returned, as Dask keeps it: arrays as they are, buffers so that they are freed in time."""
    if isinstance(result, Mapping):
        return {name: _kept(plugin, engine, each, elsewhere, name) for name, each in result.items()}
    if isinstance(result, np.ndarray):
        return result
    # Its handle is made here, as who asks for it later would wait for the engine's thread. What others ask for none the
    # less, as when a worker is lost, comes to them as an array.
    goes = plugin.shares and not {"", part}.isdisjoint(elsewhere)
    return Resident(plugin, result, engine.share(result) if goes and isinstance(engine, SharingEngine) else b"")


def pick(made: Mapping[str, Any], name: str) -> Any:
    """Return one of several things that a task made."""
    return made[name]


def offer() -> bytes | None:
    """Share something small with whoever wants to try; None where this engine shares nothing."""
    plugin = get_worker().plugins[PLUGIN]
    engine: Engine = plugin.engine
    if not isinstance(engine, SharingEngine):
        return None
    plugin.offered = engine.upload(np.array(_OFFERED, np.int32))
    try:
        return engine.share(plugin.offered)
    except LockstepError:  # as on Windows, and in some containers
        return None


def reach(handles: Sequence[bytes]) -> bool:
    """Whether what other workers offer can be copied to this one's device."""
    engine = get_worker().plugins[PLUGIN].engine
    return isinstance(engine, SharingEngine) and all(_reaches(engine, handle) for handle in handles)


def _reaches(engine: SharingEngine, handle: bytes) -> bool:
    try:
        buffer = engine.copy_shared(handle, (len(_OFFERED),), np.int32)
        found = engine.download(buffer).tolist()
        engine.free(buffer)
    except (OSError, LockstepError):
        return False
    return bool(found == [*_OFFERED])


def share_from_now_on(shares: bool, dask_worker: Any) -> None:
    """Have what this worker keeps go to others from device to device, or not; what it offered is withdrawn.

    One that writes what it keeps to a disk, when memory is short, would find there a handle of what is freed.
    """
    plugin = dask_worker.plugins[PLUGIN]
    plugin.shares = shares and type(dask_worker.data) is dict
    if plugin.offered is not None:
        plugin.discard(plugin.offered)
        plugin.offered = None


def describe() -> tuple[str, Device]:
    """Make this worker's engine; return the worker's name and what the engine runs on."""
    worker = get_worker()
    return str(worker.name), worker.plugins[PLUGIN].engine.device


def exchange_engine(change: Callable[[Engine], Engine]) -> None:
    """Put another engine in the place of this worker's."""
    get_worker().plugins[PLUGIN].exchange(change)


def in_task() -> bool:
    """Whether this thread carries out a task, rather than sends what one has made."""
    try:
        get_worker()
    except ValueError:
        return False
    return True


def with_engine(action: Callable[..., Any], *values: Any) -> Any:
    """Do something with this worker's engine, in its thread, and return what comes of it."""
    return action(get_worker().plugins[PLUGIN].engine, *values)
