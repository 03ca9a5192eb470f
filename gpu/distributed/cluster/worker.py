"""Code that runs inside a worker: its engine, used by one thread, and the execution of tasks."""

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
from gpu.base.devices.probe import run_probe_in_subprocess
from gpu.base.errors import EngineLostError, EngineUnavailableError, InputError, LockstepError
from gpu.declaration.distributed_program import ChunkInput, Step, WorkerContext
from gpu.declaration.pattern import Pattern
from gpu.distributed.cluster.resident_arrays import ResidentArray, set_local_owner
from gpu.distributed.cluster.run_events import publish_run_event
from gpu.distributed.data.chunks import Chunk, ChunkInParts, ChunkPartReader
from gpu.engines.base import Buffer, Device, Engine, PoolingEngine, SharingEngine
from gpu.messages.runs.distributed_run import TaskDependency, TaskRecord, Transfer
from gpu.patterns import find_pattern

PLUGIN = "lockstep"

_EVENT_DELIVERY_S = 0.3
"""Seconds for the scheduler to receive the reason before a worker exits."""

_CLOSE_TIMEOUT_S = 2.0

_RESULT_BYTES = 2**14
"""Largest result that is published with a task's record; the scheduler keeps the last thousand events."""

_MAX_TRANSFERS = 1024
"""Number of a worker's last transfers that are searched for those of a task."""

_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
_GPU_ENGINES = ("auto", "cuda")
_TEST_VALUES = (0, 1, 2, 3)


@dataclass
class ProcessEngine:
    """Engine of this process, the thread that owns it, and buffers to be freed in that thread."""

    engine: Engine | None = None
    thread: int | None = None
    discarded_buffers: deque[Buffer] = field(default_factory=deque)


_engines: dict[str, ProcessEngine] = {}
"""Engines by name: a later client reuses a warm engine with its compiled kernels."""


class EnginePlugin(WorkerPlugin):  # type: ignore[misc]
    """Dask plugin that gives a worker its engine, created in the thread that uses it.

    Parameters
    ----------
    engine : str
        As for `gpu.engines.create_engine`.
    ordinals : mapping of str to (int, int)
        For each worker's name, its ordinal among its machine's workers, which selects its GPU, and their number.
    gpus : int
        GPUs per machine; 0 if unknown, so that every worker counts them.
    version : str
        The client's version of Lockstep.
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
                f"A worker has Lockstep {__version__}, but the client has {self._version}.",
                advice="Start the workers from the same version.",
            )
        self._worker = worker
        self._process_engine = _engines.setdefault(self._engine_name, ProcessEngine())
        self.sharing_enabled = False
        self.run_id = ""
        self.test_buffer: Buffer | None = None
        set_local_owner(self)

    async def teardown(self, worker: Any) -> None:
        """Close the engine if the worker ends; if only the plugin is replaced, the new one reuses the engine."""
        if worker.status.name != "closing" or self._process_engine.engine is None:
            return
        closed = worker.executors["default"].submit(self._close_engine)
        with suppress(TimeoutError):  # for example, if a kernel does not terminate
            await asyncio.wait_for(asyncio.wrap_future(closed), _CLOSE_TIMEOUT_S)

    def _close_engine(self) -> None:
        # PyCUDA aborts a process if a thread that owns a context ends first.
        self.engine.close()
        self._process_engine.engine = None

    @property
    def engine(self) -> Engine:
        """The engine, in its own thread, after freeing discarded buffers."""
        here = self._process_engine
        if here.engine is None:
            ordinal, workers = self._ordinals.get(str(self._worker.name), (0, 1))
            if workers > 1 and self._engine_name in _GPU_ENGINES:
                # Counting GPUs starts a process and takes a second.
                gpus = self._gpus or len(run_probe_in_subprocess().gpus)
                if gpus > 1:
                    os.environ[_VISIBLE_DEVICES] = rotate_visible_devices(
                        os.environ.get(_VISIBLE_DEVICES, ""), ordinal, gpus
                    )
            here.engine, here.thread = engines.create_engine(self._engine_name), threading.get_ident()
            # On a shared cluster, other processes may need the memory.
            if workers <= self._gpus and isinstance(here.engine, PoolingEngine):
                here.engine.enable_memory_pool()
        assert here.thread == threading.get_ident(), "an engine belongs to the thread that made it"
        while here.discarded_buffers:
            here.engine.free(here.discarded_buffers.popleft())
        return here.engine

    def replace_engine(self, create_replacement: Callable[[Engine], Engine]) -> None:
        """Replace the engine, in its thread."""
        self._process_engine.engine = create_replacement(self.engine)

    def run_in_engine_thread(self, action: Callable[[Engine], Any]) -> Any:
        if self._process_engine.thread == threading.get_ident():
            return action(self.engine)
        executor = self._worker.executors["default"]
        try:
            return executor.submit(lambda: action(self.engine)).result()
        except Exception as error:
            # Dask retries or waits for a failed transfer without end.
            if self.run_id:
                publish_run_event(self._worker, self.run_id, {"unmoved": str(error)})
            raise

    def discard(self, buffer: Buffer) -> None:
        self._process_engine.discarded_buffers.append(buffer)


def rotate_visible_devices(visible_devices: str, ordinal: int, count: int) -> str:
    """Rotate CUDA_VISIBLE_DEVICES so that another GPU comes first; all stay visible for peer copies.

    Parameters
    ----------
    visible_devices : str
        The current value; "" if it is not set.
    ordinal : int
        The worker's ordinal on its machine; may exceed the number of GPUs.
    count : int
        GPUs that CUDA sees now: of a list, those before the first invalid entry.
    """
    devices = [part.strip() for part in visible_devices.split(",") if part.strip()][:count] or list(
        map(str, range(count))
    )
    first = ordinal % len(devices)
    return ",".join(devices[first:] + devices[:first])


@dataclass(frozen=True)
class TaskCall:
    """Call of a step of a run, as it is sent to a worker.

    Parameters
    ----------
    params : mapping
    sources : mapping of str to str
        Text of edited kernel files, by file name.
    check_input : bool
        Whether the chunk's input still has to be checked.
    following_step : tuple or None
        A step to run on the result, how many of the last values are its arguments, and the name of the part that it
        replaces; "" replaces the whole result.
    remote_parts : collection of str
        Parts of the result that other workers will use; "" for the whole result.
    is_awaited : bool
        Whether the client waits for the result.
    """

    run_id: str
    name: str
    step: Step
    pattern: str
    variant: str
    params: Mapping[str, Any]
    sources: Mapping[str, str]
    chunk_index: int
    dependencies: tuple[TaskDependency, ...] = field(default=())
    check_input: bool = False
    following_step: tuple[Step, int, str] | None = None
    remote_parts: Collection[str] = ()
    is_awaited: bool = False


def run_task(call: TaskCall, *values: Any) -> Any:
    """Run a step on this worker's engine, in the worker's thread, and publish its record."""
    worker = get_worker()
    plugin = worker.plugins[PLUGIN]
    plugin.run_id = call.run_id
    begin = time.time()
    engine = plugin.engine
    engine.sources = dict(call.sources)
    engine.take_times()
    pattern = find_pattern(call.pattern)
    loaded_pieces: list[ChunkInput | ChunkPartReader] = []
    variant = pattern.variant(call.variant)
    try:
        on_worker = WorkerContext(engine, call.params, call.variant, variant.run)
        following_step, argument_count, part = call.following_step or (None, 0, "")
        step_argument_count = len(values) - argument_count
        result = call.step(
            on_worker,
            *(_load_argument(value, call, plugin, engine, loaded_pieces) for value in values[:step_argument_count]),
        )
        memory_bytes = (
            sum(piece.nbytes for piece in loaded_pieces)
            + sum(size for _, size in _list_sizes(result))
            + worker.state.nbytes
        )
        if following_step is not None:
            following_arguments = [
                _load_argument(value, call, plugin, engine, loaded_pieces) for value in values[step_argument_count:]
            ]
            following_result = following_step(on_worker, result[part] if part else result, *following_arguments)
            result = {**result, part: following_result} if part else following_result
        times = engine.take_times()
    except EngineLostError as error:
        # The device's context is unusable; only a new process can create another, and it repeats the chunk.
        publish_run_event(worker, call.run_id, {"lost": worker.address, "why": error.message})
        time.sleep(_EVENT_DELIVERY_S)
        os._exit(1)
    kept = _wrap_result(plugin, engine, result, call.remote_parts)
    elements = (loaded_pieces[0].start, loaded_pieces[0].stop) if loaded_pieces else None
    step = call.step.__name__.strip("_").replace("_", " ")
    record = TaskRecord(
        call.name,
        step,
        call.chunk_index,
        worker.address,
        begin,
        time.time(),
        times,
        _list_sizes(result),
        call.dependencies,
        elements,
        memory_bytes,
        _list_transfers(worker),
    )
    published = _pack_small_result(kept) if call.is_awaited else None
    publish_run_event(worker, call.run_id, {"record": record.data(), "result": published})
    return kept


def _pack_small_result(stored_result: Any) -> tuple[str, tuple[int, ...], bytes] | None:
    """Return a small array of numbers as its type, shape and bytes; None for any other result."""
    if (
        isinstance(stored_result, np.ndarray)
        and stored_result.nbytes <= _RESULT_BYTES
        and stored_result.dtype.kind in "biuf"
    ):
        return stored_result.dtype.str, stored_result.shape, stored_result.tobytes()
    return None


def _list_transfers(worker: Any) -> tuple[Transfer, ...]:
    """Return the transfers from other workers that the running task needed."""
    keys = {dependency.key for dependency in worker.state.tasks[worker.get_current_task()].dependencies}
    # Dask's log uses the scheduler's clock; records use this machine's.
    delay = worker.scheduler_delay
    return tuple(
        Transfer(each["who"], each["start"] - delay, each["stop"] - delay)
        for each in islice(reversed(worker.transfer_incoming_log), _MAX_TRANSFERS)
        if not keys.isdisjoint(each["keys"])
    )


def _load_argument(
    value: Any, call: TaskCall, plugin: EnginePlugin, engine: Engine, read_pieces: list[ChunkInput | ChunkPartReader]
) -> Any:
    """Convert a value from Dask to a step's argument; append chunks to `read_pieces`."""

    def check_piece(piece: ChunkInput) -> None:
        if call.check_input:
            _check_chunk_input(find_pattern(call.pattern), call.variant, piece, call.params)

    match value:
        case Chunk():
            piece = value.read()
            check_piece(piece)
            read_pieces.append(piece)
            return piece
        case ChunkInParts():
            parts = ChunkPartReader(value, check_piece)
            read_pieces.append(parts)
            return parts
        case ResidentArray():
            return value.to_buffer(plugin, engine)
        case list():
            return [_load_argument(each, call, plugin, engine, read_pieces) for each in value]
    return value


def _list_sizes(result: Any) -> tuple[tuple[str, int], ...]:
    """Return names and sizes in bytes of a step's results."""
    named = result if isinstance(result, Mapping) else {"": result}
    return tuple((name, _count_bytes(each)) for name, each in named.items())


def _count_bytes(result: Any) -> int:
    if isinstance(result, Mapping):
        return sum(map(_count_bytes, result.values()))
    return int(math.prod(result.shape) * result.dtype.itemsize)


def _check_chunk_input(pattern: Pattern, variant: str, piece: ChunkInput, params: Mapping[str, Any]) -> None:
    """Raise InputError if the pattern or its variant does not accept a chunk; name the chunk by its first element."""
    try:
        pattern.accept(piece.inputs, params)
    except InputError as error:
        first = piece.start - piece.before
        raise InputError(f"In the chunk at element {first}: {error.message}", advice=error.advice) from None
    if obstacle := pattern.variant(variant).obstacle(piece.inputs, params):
        raise InputError(obstacle)


def _wrap_result(
    plugin: EnginePlugin, engine: Engine, result: Any, remote_parts: Collection[str], part: str = ""
) -> Any:
    """Return a step's result as Dask stores it: arrays unchanged, buffers wrapped so that they are freed in time."""
    if isinstance(result, Mapping):
        return {name: _wrap_result(plugin, engine, each, remote_parts, name) for name, each in result.items()}
    if isinstance(result, np.ndarray):
        return result
    # Export the handle now, since a later request would wait for the engine's thread. Results that other workers
    # request unexpectedly, as after the loss of a worker, are sent as arrays.
    export = plugin.sharing_enabled and not {"", part}.isdisjoint(remote_parts)
    return ResidentArray(plugin, result, engine.share(result) if export and isinstance(engine, SharingEngine) else b"")


def pick_part(result: Mapping[str, Any], name: str) -> Any:
    """Return a part of a task's result."""
    return result[name]


def export_test_buffer() -> bytes | None:
    """Export a small test buffer for other workers; return its handle, or None if this engine cannot export any."""
    plugin = get_worker().plugins[PLUGIN]
    engine: Engine = plugin.engine
    if not isinstance(engine, SharingEngine):
        return None
    plugin.test_buffer = engine.upload(np.array(_TEST_VALUES, np.int32))
    try:
        return engine.share(plugin.test_buffer)
    except LockstepError:  # for example, on Windows and in some containers
        return None


def can_copy_test_buffers(handles: Sequence[bytes]) -> bool:
    """Return whether other workers' test buffers can be copied to this worker's device."""
    engine = get_worker().plugins[PLUGIN].engine
    return isinstance(engine, SharingEngine) and all(_can_copy(engine, handle) for handle in handles)


def _can_copy(engine: SharingEngine, handle: bytes) -> bool:
    try:
        buffer = engine.copy_shared(handle, (len(_TEST_VALUES),), np.int32)
        values = engine.download(buffer).tolist()
        engine.free(buffer)
    except (OSError, LockstepError):
        return False
    return bool(values == [*_TEST_VALUES])


def set_buffer_sharing(enabled: bool, dask_worker: Any) -> None:
    """Enable or disable device-to-device copies of this worker's results, and free its test buffer.

    A worker that spills results to disk must not use them: it would spill handles of memory that is then freed.
    """
    plugin = dask_worker.plugins[PLUGIN]
    plugin.sharing_enabled = enabled and type(dask_worker.data) is dict
    if plugin.test_buffer is not None:
        plugin.discard(plugin.test_buffer)
        plugin.test_buffer = None


def describe_worker() -> tuple[str, Device]:
    """Create this worker's engine; return the worker's name and the engine's device."""
    worker = get_worker()
    return str(worker.name), worker.plugins[PLUGIN].engine.device


def replace_engine(create_replacement: Callable[[Engine], Engine]) -> None:
    """Replace this worker's engine."""
    get_worker().plugins[PLUGIN].replace_engine(create_replacement)


def is_executing_task() -> bool:
    """Return whether this thread executes a task, instead of sending a result."""
    try:
        get_worker()
    except ValueError:
        return False
    return True


def call_with_engine(action: Callable[..., Any], *values: Any) -> Any:
    """Call a function with this worker's engine, in its thread, and return its result."""
    return action(get_worker().plugins[PLUGIN].engine, *values)
