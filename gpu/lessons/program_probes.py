"""Probes of a whole program: who computes its results, which streams work, and what it does if a call fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu.lessons.expressions import Array
from gpu.lessons.program_runner import STREAM_ORDERS, ProgramRun, ProgramRunner

_MARGIN = 1e-6
"""Relative difference below which two numbers count as the same."""
_MAX_FAILURES = 4
"""Most operations of a kind that fail, one in each run."""
_MAX_STREAMS = 8
_FAILURES = {
    "allocation": "call that allocates device memory fails",
    "copy": "copy fails",
    "launch": "launch fails, so that its kernel does not run,",
    "kernel": "kernel fails while it runs",
}
_ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Rejection:
    """Reason to reject a program: a short verdict and a sentence."""

    words: str
    sentence: str


@dataclass(frozen=True)
class Results:
    """Results of a run that no input value equals, so that only a computation has them.

    Parameters
    ----------
    positions : array of int64
        Their positions in the program's output.
    values : array of float64
    names : tuple of str
        Their names, such as "y[3]".
    """

    positions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def select(cls, expected: Mapping[str, Array], before: Mapping[str, Array]) -> Results:
        """Select results among the expected values of all outputs.

        Parameters
        ----------
        expected : mapping of str to array
            In the order of the output.
        before : mapping of str to array
            The input's arrays.
        """
        values = np.concatenate([each.reshape(-1).astype(np.float64) for each in expected.values()])
        names = [f"{name}[{index}]" for name, each in expected.items() for index in range(each.size)]
        given = np.sort(np.concatenate([[0.0], *(each.reshape(-1).astype(np.float64) for each in before.values())]))
        next_given = np.searchsorted(given, values).clip(1, max(given.size - 1, 1))
        nearest = [np.abs(values - given[(next_given - back).clip(0, given.size - 1)]) for back in (0, 1)]
        positions = np.flatnonzero(np.minimum(*nearest) > _MARGIN * np.abs(values))
        return cls(positions, values[positions], tuple(names[position] for position in positions))

    def compare(self, run: ProgramRun) -> npt.NDArray[np.bool_]:
        """Return for each result whether a run prints it in its place."""
        try:
            printed = np.array(run.output.split(), np.float64)
        except ValueError:
            return np.zeros(self.values.size, bool)
        is_printed = self.positions < printed.size
        equal = np.zeros(self.values.size, bool)
        values = self.values[is_printed]
        equal[is_printed] = np.abs(printed[self.positions[is_printed]] - values) <= _MARGIN * np.abs(values)
        return equal


def check_origin(runner: ProgramRunner, text: str, results: Results) -> Rejection | None:
    """Check that kernels write the results: none is known without them, and each is in device memory after them.

    Parameters
    ----------
    text : str
        Standard input.
    """
    words = "not accepted: right, but the host computes the result"
    if not results.names:
        return None
    sought = results.values.tolist()
    without = runner.run(text, results=sought, launches_withheld=True)
    known = results.compare(without)
    if known.any():
        return Rejection(words, f"The program prints {results.names[known.argmax()]} even if no kernel runs.")
    if without.found:
        name = results.names[without.found[0]]
        return Rejection(words, f"The host computes {name} and copies it to the GPU before a kernel runs.")
    found = set(runner.run(text, results=sought).found)
    missing = next((name for index, name in enumerate(results.names) if index not in found), "")
    return Rejection(words, f"No kernel writes {missing} to the GPU's memory.") if missing else None


def check_streams(
    runner: ProgramRunner, text: str, results: Results, used: int, needed: tuple[int, int]
) -> Rejection | None:
    """Check that enough streams take part: without the operations of one, a result is missing; no launch is in another.

    Parameters
    ----------
    text : str
        Standard input.
    used : int
        The number of streams that the program uses.
    needed : tuple of int
        The number of streams that it must use, and the number of those with launches.
    """
    words = "not accepted: right, but without the streams"
    streams, launching = needed
    if used < streams:
        return Rejection(words, f"Of {streams} streams, the program uses {used}.")
    working = launching_count = 0
    for number in range(1, min(used, _MAX_STREAMS) + 1):
        run = runner.run(text, streams=STREAM_ORDERS[1], withheld_stream=number)
        if run.default_launch_count:
            return Rejection(words, "A launch is in the default stream, which waits for the others, and they for it.")
        working += run.code != 0 or not results.names or not results.compare(run).all()
        launching_count = max(launching_count, run.launching_stream_count)
    if working < streams:
        verb = "does" if working == 1 else "do"
        return Rejection(words, f"Of {streams} streams, {working} {verb} a part of the work.")
    if launching_count < launching:
        verb = "has" if launching_count == 1 else "have"
        return Rejection(words, f"Of {streams} streams, {launching_count} {verb} launches.")
    return None


def check_failures(runner: ProgramRunner, text: str, status: int) -> Rejection | None:
    """Check the exit code if an allocation, copy, launch or kernel fails: each of the first ones, in a run of its own.

    Parameters
    ----------
    text : str
        Standard input.
    status : int
        The exit code that is expected.
    """
    for kind, description in _FAILURES.items():
        for number in range(1, _MAX_FAILURES + 1):
            run = runner.run(text, failing=(kind, number))
            if not run.has_failed:
                break
            ended = f"ends by {run.signal}" if run.signal else f"ends with exit code {run.code} instead of {status}"
            if run.is_timeout:
                ended = "does not end"
            if run.code != status:
                sentence = f"If the {_ORDINALS[number - 1]} {description}, the program {ended}."
                return Rejection("an error is not reported", sentence)
    return None
