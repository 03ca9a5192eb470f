"""Distributed programs: how a pattern runs over several devices, as local work, an exchange, and a fix-up.

A distributed program calls a ladder's variants as a host program launches kernels: it defines the Dask tasks and their
arguments, and launches nothing itself. A Dask task is a step, a function that runs on a worker's engine. Dask tasks
that take the results of several others are the exchange: all to one (totals), between neighbors (halos), all to all
(the buckets of a sort). An iterative program adds Dask tasks that take the results of the previous iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from gpu.engines.base import Array, Engine, OverlappingEngine

Arrays = Mapping[str, Array]

OVERLAP_PART_BYTES = 2**22
"""Size of the parts of a chunk, for engines that overlap copying one part with computing another.

An 8-bit image of this size, converted to float32, still fits in memory that malloc reuses: new pages take longer.
"""

_ROW_INPUTS = ("values", "image")
"""Inputs of which a chunk has rows."""


@dataclass(frozen=True)
class ChunkInput:
    """A chunk's input, as passed to a step.

    Parameters
    ----------
    inputs : mapping of str to array
        Divided inputs: this chunk's elements and its halo. All other inputs: complete.
    index : int
        The chunk's index, from 0.
    start, stop : int
        The range of the chunk without its halo in the complete input, in elements or rows.
    before, after : int
        The halo before and after this range, in elements or rows.
    """

    inputs: Arrays
    index: int
    start: int
    stop: int
    before: int = 0
    after: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all its inputs."""
        return sum(array.nbytes for array in self.inputs.values())


@dataclass(frozen=True)
class WorkerContext:
    """Worker context of a step: engine, parameters and host program.

    Parameters
    ----------
    engine : Engine
        The worker's engine. A buffer that a step returns stays on the device until no Dask task needs it.
    params : mapping
        The pattern's parameters.
    variant : str
        The name of the chosen variant.
    host_program : callable
        The variant's host program.
    """

    engine: Engine
    params: Mapping[str, Any]
    variant: str
    host_program: Callable[[Engine, Arrays, Mapping[str, Any]], Generator[Any, None, Arrays]]

    def run(self, inputs: Arrays) -> Arrays:
        """Run the variant on a part of the input as if it were the complete input; return its outputs."""
        program = self.host_program(self.engine, inputs, self.params)
        while True:
            try:
                next(program)
            except StopIteration as end:
                outputs: Arrays = end.value
                return outputs

    def run_overlapped(self, parts: Iterable[Arrays]) -> Generator[Arrays, None, None]:
        """Run the variant on parts of the input, and yield the outputs of each, in order.

        An OverlappingEngine processes two parts at a time, on two streams: while one is computed, the next part is
        uploaded and the previous part's outputs are downloaded.
        """
        engine = self.engine
        if not isinstance(engine, OverlappingEngine):
            yield from map(self.run, parts)
            return
        remaining = iter(parts)
        started, yielded, has_more = 0, 0, True
        outputs: dict[int, Arrays] = {}
        running: dict[int, tuple[int, Generator[Any, None, Arrays]]] = {}
        try:
            while has_more or running:
                for number in (0, 1):
                    if number in running:
                        index, program = running[number]
                        with engine.on_stream(number):
                            try:
                                next(program)
                                continue
                            except StopIteration as end:
                                outputs[index] = end.value
                                del running[number]
                    while yielded in outputs:  # before waiting for the next part
                        yield outputs.pop(yielded)
                        yielded += 1
                    if has_more and (inputs := next(remaining, None)) is not None:
                        with engine.on_stream(number):
                            running[number] = started, self.host_program(engine, inputs, self.params)
                            started += 1
                            next(running[number][1])
                    else:
                        has_more = False
        finally:
            for number, (_, program) in running.items():
                with engine.on_stream(number):
                    program.close()
            engine.join_streams()


class FutureResult(Protocol):
    """The future result of a Dask task, to pass to other Dask tasks; an index selects one of several named results."""

    def __getitem__(self, name: str) -> FutureResult: ...


Step = Callable[..., Any]
"""`step(worker, *arguments)`: a module-level function, so that workers can import it by name.

`worker` is a `WorkerContext`. Arguments are a chunk's `ChunkInput`, arrays, buffers, or lists of them; a step must not
modify them, because a lost worker's results are computed again from the same arguments. It returns an array, a buffer,
or a mapping of names to them.
"""


class TaskCollector(Protocol):
    """Collects the Dask tasks of a distributed run; none has to have run while others are added."""

    @property
    def chunks(self) -> Sequence[FutureResult]:
        """The input's chunks in order, at least one; a step receives a chunk as a `ChunkInput`."""
        ...

    @property
    def chunks_by_device(self) -> Sequence[Sequence[int]]:
        """The indices of each device's chunks, which are consecutive; devices without chunks are left out.

        Combining results of one device's chunks needs no exchange, and its Dask tasks run one after the other anyway.
        """
        ...

    @property
    def separate_chunks(self) -> Mapping[str, Sequence[FutureResult]]:
        """The chunks of separately divided inputs, not more than those of the main input."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The pattern's parameters."""
        ...

    @property
    def variant(self) -> str:
        """The name of the chosen variant."""
        ...

    def add_task(self, step: Step, *step_arguments: Any, chunk_index: int = 0) -> FutureResult:
        """Add a Dask task that calls a step; return its future result.

        Parameters
        ----------
        step : Step
            A module-level function, which receives the `WorkerContext` before the other arguments.
        *step_arguments
            Results of other Dask tasks, lists of them, or values.
        chunk_index : int
            The index of the chunk that it belongs to: it runs on that chunk's worker where possible.
        """
        ...


@dataclass(frozen=True)
class Parts:
    """An output in parts, to be concatenated along the first axis.

    Parameters
    ----------
    parts : tuple of FutureResult
        Arrays, in order.
    starts : FutureResult or None
        An int64 array with the first index of each part, so that a part can be written before all are computed. None
        if each part has as many elements, or rows, as its chunk, or if there is only one part.
    """

    parts: tuple[FutureResult, ...]
    starts: FutureResult | None = None


@dataclass(frozen=True)
class Streaming:
    """How a pattern streams data that does not fit in memory: chunk by chunk, keeping only small results.

    Parameters
    ----------
    plan : callable or None
        As in DistributedProgram, but it reads a chunk again rather than keep its results. None if chunks need nothing
        of each other except halos: they are then read, computed and written a part at a time.
    dtype : callable or None
        params -> element type of a result that is written in parts; None for a small result.
    is_input_sized : callable
        params -> whether such a result is as long as the input, so that its length is known before the run.
    """

    plan: Callable[[TaskCollector], Mapping[str, Parts]] | None
    dtype: Callable[[Mapping[str, Any]], str] | None = None
    is_input_sized: Callable[[Mapping[str, Any]], bool] = lambda params: True


ElementCountRule = Callable[[Mapping[str, Any]], int]
"""params -> number of elements, or rows."""


@dataclass(frozen=True, kw_only=True)
class DistributedProgram:
    """How a pattern runs over several devices.

    Parameters
    ----------
    local, exchange, fix_up : str
        A sentence each about the work of single devices, the exchange between devices, and the work on the exchanged
        data; "" for none.
    plan : callable
        Adds the Dask tasks, and returns the outputs by name, as the pattern's variants do.
    divided_inputs : tuple of str
        Names of the inputs that are divided along their first axis; absent ones are ignored.
    separately_divided_inputs : tuple of str
        Names of further inputs that are divided separately, each along its own first axis.
    ragged_inputs : mapping of str to str
        Inputs with rows of different lengths, and for each the input with its row offsets, including the end of the
        last row. A chunk has both for its rows; the offsets count from the first row of the complete input.
    halo : callable
        params -> number of halo elements, or rows, on either side of a chunk.
    granularity : callable
        params -> granularity: a chunk has a multiple of this number of elements, or rows.
    on_demand : tuple of str
        Outputs that are computed only on request.
    streaming : Streaming or None
        None if it cannot stream its chunks one after the other.
    """

    local: str
    exchange: str
    fix_up: str
    plan: Callable[[TaskCollector], Mapping[str, Parts]]
    divided_inputs: tuple[str, ...] = ("values", "image", "text")
    separately_divided_inputs: tuple[str, ...] = ()
    ragged_inputs: Mapping[str, str] = field(default_factory=dict)
    halo: ElementCountRule = lambda params: 0
    granularity: ElementCountRule = lambda params: 1
    on_demand: tuple[str, ...] = ()
    streaming: Streaming | None = None


def independent_chunks_plan(
    result: str, *, halo: ElementCountRule = lambda params: 0, granularity: ElementCountRule = lambda params: 1
) -> Callable[[TaskCollector], dict[str, Parts]]:
    """Return the plan of a pattern with chunks that need nothing of each other except halos.

    `result` is the name of the output; `halo` and `granularity` are as in DistributedProgram.
    """

    def plan(tasks: TaskCollector) -> dict[str, Parts]:
        rules = halo(tasks.params), granularity(tasks.params)
        parts = [
            tasks.add_task(run_independent_chunk, chunk, result, *rules, chunk_index=index)
            for index, chunk in enumerate(tasks.chunks)
        ]
        return {result: Parts(tuple(parts))}

    return plan


def run_independent_chunk(worker: WorkerContext, piece: ChunkInput, result: str, halo: int, granularity: int) -> Array:
    """Run the variant on a chunk and its halo, and return the result of the chunk's own rows.

    An `OverlappingEngine` processes the chunk in parts of about `OVERLAP_PART_BYTES`.

    Parameters
    ----------
    worker : WorkerContext
        The worker's engine and host program.
    piece : ChunkInput
        The chunk with its halo.
    result : str
        The name of the output to return.
    halo : int
        Rows of its neighbors that a part of the chunk reads on each side.
    granularity : int
        A part has a multiple of this number of rows.
    """
    count = piece.nbytes // OVERLAP_PART_BYTES if isinstance(worker.engine, OverlappingEngine) else 1
    lengths = split_evenly((piece.stop - piece.start) // granularity, count)
    if len(lengths) == 1:
        rows_out = worker.run(piece.inputs)[result]
        return rows_out[piece.before : len(rows_out) - piece.after]
    ends = piece.before + granularity * np.cumsum([0, *lengths])
    total, parts, own_rows = piece.before + piece.stop - piece.start + piece.after, [], []
    for first, end in pairwise(ends.tolist()):
        before, after = min(halo, first), min(halo, total - end)
        rows = slice(first - before, end + after)
        parts.append({name: array[rows] if name in _ROW_INPUTS else array for name, array in piece.inputs.items()})
        own_rows.append(slice(before, before + end - first))
    all_outputs = worker.run_overlapped(parts)
    return np.concatenate(
        [outputs[result][rows_of_chunk] for outputs, rows_of_chunk in zip(all_outputs, own_rows, strict=True)]
    )


_FAN_IN = 8
"""The most results that one task of a tree reduces."""


def reduce_as_tree(tasks: TaskCollector, step: Step, results: Sequence[FutureResult]) -> FutureResult:
    """Add Dask tasks that reduce results, `_FAN_IN` at a time, until one is left; return it.

    Parameters
    ----------
    tasks : TaskCollector
        Receives the Dask tasks.
    step : Step
        Reduces a list of results to one result.
    results : sequence of FutureResult
        The results of the chunks in order, at least one.
    """
    level = list(results)
    while len(level) > 1:
        level = [
            tasks.add_task(step, level[first : first + _FAN_IN], chunk_index=first)
            for first in range(0, len(level), _FAN_IN)
        ]
    return level[0]


def split_evenly(total: int, count: int) -> tuple[int, ...]:
    """Return the lengths of at most `count` chunks of `total`, as equal as possible; only a single one may be empty."""
    count = max(1, min(count, total))
    bounds = np.arange(count + 1, dtype=np.int64) * total // count
    return tuple(np.diff(bounds).tolist())
