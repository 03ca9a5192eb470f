"""How a pattern runs over several devices: what of it each does alone, what they tell each other, what is fixed up.

A distributed program stands above the ladder as a host program stands above its kernels: it says which tasks there are
and what each takes of others, and launches nothing itself. A task is a step, a function of this module's callers that
runs on a worker's engine. Tasks that take what several tasks made are the exchange: of all with one (totals), of
neighbors (halos), of all with all (a sort's buckets); a program that goes round again makes tasks of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from gpu.engines.base import Array, Engine, OverlappingEngine

Arrays = Mapping[str, Array]

PART_BYTES = 2**22
"""Of a part of a chunk, where an engine copies for one part while another one is computed.

As float32 an 8-bit image of this size is as large as memory that malloc hands out again: fresh pages take longer.
"""

_OF_ROWS = ("values", "image")
"""Inputs that such a chunk has rows of."""


@dataclass(frozen=True)
class Piece:
    """A chunk's input, as a step takes it.

    Parameters
    ----------
    inputs : mapping of str to array
        Those that are divided, this chunk's elements of them with what it sees of its neighbors; all others whole.
    place : int
        Which chunk it is, from 0.
    start, stop : int
        Its own elements, or rows, among all.
    before, after : int
        How many of its neighbors' stand before and after its own.
    """

    inputs: Arrays
    place: int
    start: int
    stop: int
    before: int = 0
    after: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all that was read for it."""
        return sum(each.nbytes for each in self.inputs.values())


@dataclass(frozen=True)
class OnWorker:
    """What a step runs on and with.

    Parameters
    ----------
    engine : Engine
        The worker's own. What a step leaves in a buffer that it returns stays on the device until nobody asks for it.
    params : mapping
        The pattern's parameters.
    variant : str
        The name of the rung that was chosen.
    host_program : callable
        That rung's.
    """

    engine: Engine
    params: Mapping[str, Any]
    variant: str
    host_program: Callable[[Engine, Arrays, Mapping[str, Any]], Generator[Any, None, Arrays]]

    def run(self, inputs: Arrays) -> Arrays:
        """Run the rung on a part of the input, as if that were all; return its outputs."""
        program = self.host_program(self.engine, inputs, self.params)
        while True:
            try:
                next(program)
            except StopIteration as end:
                outputs: Arrays = end.value
                return outputs

    def run_by_turns(self, parts: Iterable[Arrays]) -> Generator[Arrays, None, None]:
        """Run the rung on parts of the input, and yield what it makes of each, in order.

        On an engine that overlaps, two are under way at a time, each on a stream of its own: while one is computed, the
        next one is brought to the device, and what was made of the one before taken away.
        """
        engine = self.engine
        if not isinstance(engine, OverlappingEngine):
            yield from map(self.run, parts)
            return
        waiting = iter(parts)
        begun, given, more = 0, 0, True
        outputs: dict[int, Arrays] = {}
        under_way: dict[int, tuple[int, Generator[Any, None, Arrays]]] = {}
        try:
            while more or under_way:
                for number in (0, 1):
                    if number in under_way:
                        place, program = under_way[number]
                        with engine.on_stream(number):
                            try:
                                next(program)
                                continue
                            except StopIteration as end:
                                outputs[place] = end.value
                                del under_way[number]
                    while given in outputs:  # before the next part is waited for
                        yield outputs.pop(given)
                        given += 1
                    if more and (inputs := next(waiting, None)) is not None:
                        with engine.on_stream(number):
                            under_way[number] = begun, self.host_program(engine, inputs, self.params)
                            begun += 1
                            next(under_way[number][1])
                    else:
                        more = False
        finally:
            for number, (_, program) in under_way.items():
                with engine.on_stream(number):
                    program.close()
            engine.join_streams()


class Made(Protocol):
    """What a task makes, for other tasks to take; of several things by name one."""

    def __getitem__(self, name: str) -> Made: ...


Step = Callable[..., Any]
"""`step(worker, *taken)`: a function of a module, so that a worker finds it by its name.

`worker` is an `OnWorker`; what it takes are a chunk's `Piece`, arrays, buffers, or lists of them, and it changes none
of them: what a lost worker made is made again of the same. It returns an array, a buffer, or a mapping of names to
them.
"""


class Tasks(Protocol):
    """Takes down which tasks a distributed run has; nothing need have run while they are named."""

    @property
    def chunks(self) -> Sequence[Made]:
        """The input's chunks in their order, at least one; a step takes one as a `Piece`."""
        ...

    @property
    def shares(self) -> Sequence[Sequence[int]]:
        """The places of chunks by the device whose they are: those of each follow each other; a device without is none.

        What is known of one device's chunks takes no exchange, and its tasks wait for each other anyway.
        """
        ...

    @property
    def beside(self) -> Mapping[str, Sequence[Made]]:
        """Inputs that are divided by themselves: the chunks of each, at most as many as there are of the input."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The pattern's parameters."""
        ...

    @property
    def variant(self) -> str:
        """The name of the rung that was chosen."""
        ...

    def make(self, step: Step, *taken: Any, place: int = 0) -> Made:
        """Add a task: a step, and what it takes: things made, lists of them, or plain values.

        `place` says whose it is: what belongs to a chunk runs where that chunk's other things are, where that can be.
        """
        ...


@dataclass(frozen=True)
class Parts:
    """An output in parts that lie side by side along its first axis.

    Parameters
    ----------
    parts : tuple of Made
        Arrays, in order.
    starts : Made or None
        An array of int64: where each part begins, for whoever writes parts before all are there. None where a part
        has as many elements, or rows, as its chunk, or there is but one.
    """

    parts: tuple[Made, ...]
    starts: Made | None = None


@dataclass(frozen=True)
class Streaming:
    """How a pattern runs over what no memory holds: a chunk after the other, of which only small results are kept.

    Parameters
    ----------
    plan : callable or None
        As a DistributedProgram's; it reads a chunk again rather than keep what it made of it. None where chunks need
        nothing of each other but halos: they then are read, computed and written a part at a time.
    dtype : callable or None
        params -> the type of the elements of a result that is written in parts; None where it is small.
    sized : callable
        params -> whether such a result is as long as the input, which is known before it runs.
    """

    plan: Callable[[Tasks], Mapping[str, Parts]] | None
    dtype: Callable[[Mapping[str, Any]], str] | None = None
    sized: Callable[[Mapping[str, Any]], bool] = lambda params: True


Rule = Callable[[Mapping[str, Any]], int]
"""params -> so many elements, or rows."""


@dataclass(frozen=True, kw_only=True)
class DistributedProgram:
    """How a pattern runs over several devices.

    Parameters
    ----------
    local, exchange, fix_up : str
        What each device does alone, what is told between them, and what is done with it: a sentence each, and "" where
        there is nothing to do.
    plan : callable
        Names the tasks, and returns the outputs by their names, those that the pattern's variants have.
    divided : tuple of str
        Which inputs are divided, along their first axis; those that are not there are passed over.
    beside : tuple of str
        Which inputs are divided too, each by itself along its own first axis.
    ragged : mapping of str to str
        Inputs whose rows are of different lengths, and in which input stands where each row begins, and where the last
        one ends. Of both a chunk has what belongs to its rows; where rows begin is counted from the first one of all.
    halo : callable
        params -> how many elements, or rows, a chunk sees of its neighbors on either side.
    together : callable
        params -> how many elements, or rows, are not divided: a chunk has a multiple of them.
    on_demand : tuple of str
        Outputs that a run has only where they are asked for: nobody computes them otherwise.
    streaming : Streaming or None
        None where its chunks cannot be read one after the other.
    """

    local: str
    exchange: str
    fix_up: str
    plan: Callable[[Tasks], Mapping[str, Parts]]
    divided: tuple[str, ...] = ("values", "image", "text")
    beside: tuple[str, ...] = ()
    ragged: Mapping[str, str] = field(default_factory=dict)
    halo: Rule = lambda params: 0
    together: Rule = lambda params: 1
    on_demand: tuple[str, ...] = ()
    streaming: Streaming | None = None


def rows_alone(
    result: str, *, halo: Rule = lambda params: 0, together: Rule = lambda params: 1
) -> Callable[[Tasks], dict[str, Parts]]:
    """Return the plan of a pattern whose chunks need nothing of each other but halos, for the output of that name.

    `halo` and `together` are as the DistributedProgram has them.
    """

    def plan(tasks: Tasks) -> dict[str, Parts]:
        rules = halo(tasks.params), together(tasks.params)
        parts = [tasks.make(run_alone, chunk, result, *rules, place=place) for place, chunk in enumerate(tasks.chunks)]
        return {result: Parts(tuple(parts))}

    return plan


def run_alone(worker: OnWorker, piece: Piece, result: str, halo: int, together: int) -> Array:
    """Run the rung on a chunk and its halo, and return what it makes of the chunk's own rows."""
    count = piece.nbytes // PART_BYTES if isinstance(worker.engine, OverlappingEngine) else 1
    lengths = equal_lengths((piece.stop - piece.start) // together, count)
    if len(lengths) == 1:
        made = worker.run(piece.inputs)[result]
        return made[piece.before : len(made) - piece.after]
    ends = piece.before + together * np.cumsum([0, *lengths])
    total, parts, seen = piece.before + piece.stop - piece.start + piece.after, [], []
    for first, end in pairwise(ends.tolist()):
        before, after = min(halo, first), min(halo, total - end)
        rows = slice(first - before, end + after)
        parts.append({name: each[rows] if name in _OF_ROWS else each for name, each in piece.inputs.items()})
        seen.append(slice(before, before + end - first))
    made_of = worker.run_by_turns(parts)
    return np.concatenate([made[result][own] for made, own in zip(made_of, seen, strict=True)])


def as_tree(tasks: Tasks, step: Step, made: Sequence[Made], fan_in: int = 8) -> Made:
    """Combine things by a step that takes a list of them, so many at a time, until one is left."""
    level = list(made)
    while len(level) > 1:
        level = [tasks.make(step, level[first : first + fan_in], place=first) for first in range(0, len(level), fan_in)]
    return level[0]


def equal_lengths(total: int, count: int) -> tuple[int, ...]:
    """Return the lengths of at most `count` chunks of `total`, as equal as can be, none empty but an only one."""
    count = max(1, min(count, total))
    bounds = np.arange(count + 1, dtype=np.int64) * total // count
    return tuple(np.diff(bounds).tolist())
