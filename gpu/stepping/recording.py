"""A host program's launches, recorded one after the other as one sequence of events, and the file that holds them.

A *moment* k means: just before event k of that sequence; the last one is the end.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from gpu.errors import InputError, SourcePosition
from gpu.files.opening import read_bytes
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.trace import file as trace_file
from gpu.simulator.trace.conforms import conforms
from gpu.simulator.trace.trace import Trace
from gpu.stepping.player_file import within

VERSION = 2

_MANIFEST = "recording.json"

Shape = tuple[int, ...] | None
"""The extents of an array; None where nothing says them."""


class RecordedLaunch(NamedTuple):
    """A trace with what the host program knows of its arrays, by their numbers: see `LaunchSpan`."""

    trace: Trace
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, eq=False)
class LaunchSpan:
    """One launch of a recording.

    Parameters
    ----------
    number : int
        Its place in `Recording.launches`.
    first : int
        The moment of its first event.
    count : int
        How many events it has.
    buffers : tuple of (int or None)
        By the number of an array in the trace: the same number for the same buffer in other launches. None for what
        lives no longer than the launch, as shared memory does. A buffer that the host filled anew is another one.
    shapes : tuple of (tuple of int, or None)
        The extents of each array of the trace; None where nothing says them.
    open : callable
        Returns the trace.
    """

    number: int
    first: int
    count: int
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]
    open: Callable[[], Trace]

    @cached_property
    def trace(self) -> Trace:
        """What was recorded; read when it is asked for first.

        Raises
        ------
        InputError
            The recording's file is damaged.
        """
        return self.open()


class Recording:
    """A host program, every step of every launch.

    Parameters
    ----------
    launches : sequence of LaunchSpan
    texts : mapping of str to str
        The source files, by the name that positions have.
    failure : str
        The mistake at which the program ended; "" where it did not.
    stopped : str
        Why something was left out of the recording; "" where nothing was.
    """

    def __init__(
        self, launches: Sequence[LaunchSpan], texts: Mapping[str, str], *, failure: str = "", stopped: str = ""
    ) -> None:
        self.launches = tuple(launches)
        self.failure = failure
        self.stopped = stopped
        self._texts = dict(texts)
        self._firsts = np.array([launch.first for launch in self.launches], np.int64)

    @classmethod
    def of(
        cls,
        recorded: Sequence[RecordedLaunch],
        texts: Mapping[str, str],
        *,
        failure: str = "",
        stopped: str = "",
    ) -> Recording:
        """Return the recording of launches."""
        launches, first = [], 0
        for number, (trace, buffers, shapes) in enumerate(recorded):
            launches.append(LaunchSpan(number, first, len(trace.events), buffers, shapes, partial(_same, trace)))
            first += len(trace.events)
        return cls(launches, texts, failure=failure, stopped=stopped)

    @classmethod
    def of_launch(cls, trace: Trace, texts: Mapping[str, str]) -> Recording:
        """Return the recording of a single launch; of its arrays nothing has to be known again in another one."""
        buffers = tuple(
            number if array.space in ("global", "constant") else None for number, array in enumerate(trace.arrays)
        )
        launch = RecordedLaunch(trace, buffers, (None,) * len(buffers))
        return cls.of([launch], texts, failure=trace.failure, stopped=trace.stopped)

    @property
    def moments(self) -> int:
        """The number of events of all launches, which is the last moment."""
        return self.launches[-1].first + self.launches[-1].count if self.launches else 0

    def at(self, moment: int) -> tuple[LaunchSpan, int]:
        """Return the launch that runs at a moment, and its own next event: at the end, as many as it has.

        Raises
        ------
        InputError
            There is no such moment, or nothing was launched.
        """
        if not self.launches or not 0 <= moment <= self.moments:
            raise InputError(f"The recording has {self.moments} events; there is no moment {moment}.")
        launch = self.launches[int(np.searchsorted(self._firsts, moment, side="right")) - 1]
        return launch, moment - launch.first

    def moment_of_write(self, array: str, element: int) -> int | None:
        """Return the moment after an array's element was written last; None where nothing recorded wrote it."""
        for launch in reversed(self.launches):
            for each in launch.trace.arrays:
                if each.name == array and element < each.count:
                    written = launch.trace.writer(each.number, element, launch.count)
                    if written is not None:
                        return launch.first + written.event + 1
        return None

    def like_element(self, array: str, element: int, shape: tuple[int, ...]) -> int:
        """Return which element of an array is where another's, of that shape, would be if this one went on and on."""
        for launch in reversed(self.launches):
            for each in launch.trace.arrays:
                if each.name == array:
                    own = launch.shapes[each.number]
                    if own is None or len(own) != len(shape):
                        return element % each.count
                    index = [at % extent for at, extent in zip(np.unravel_index(element, shape), own, strict=True)]
                    return int(np.ravel_multi_index(index, own))
        return element

    def position(self, moment: int) -> SourcePosition:
        """Return the statement of the event of a number."""
        launch, event = self.at(moment)
        found: SourcePosition = launch.trace.events[event].position
        return found

    @cached_property
    def statements(self) -> tuple[tuple[SourcePosition, ...], tuple[str, ...]]:
        """The position of each event of all launches, and its kind."""
        positions: list[SourcePosition] = []
        kinds: list[str] = []
        for data in (launch.trace.data for launch in self.launches):
            positions += [data.positions[number] for number in data.events["position"].tolist()]
            kinds += [data.kinds[number] for number in data.events["kind"].tolist()]
        return tuple(positions), tuple(kinds)

    @cached_property
    def findings(self) -> tuple[tuple[int, Finding], ...]:
        """The kernels' mistakes, each with the number of the event in which it was found first."""
        return tuple(
            (launch.first + found.event, found.finding) for launch in self.launches for found in launch.trace.findings
        )

    @property
    def texts(self) -> Mapping[str, str]:
        """The source files as they were compiled, by their names."""
        return self._texts

    def text(self, file: str) -> str:
        """Return a source file as it was compiled; "" for one that no kernel came from."""
        return self._texts.get(file, "")

    # Files.

    def save(self, target: str | Path | IO[bytes]) -> None:
        """Write one zip archive."""
        manifest = {
            "version": VERSION,
            "launches": [
                {"count": launch.count, "buffers": launch.buffers, "shapes": launch.shapes} for launch in self.launches
            ],
            "texts": self._texts,
            "failure": self.failure,
            "stopped": self.stopped,
        }
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(_MANIFEST, json.dumps(manifest))
            for launch in self.launches:
                trace_file.write(launch.trace.data, archive, f"{launch.number}/")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read a recording, or a trace as the recording of its launch, or a page's own; the file may go afterwards.

        A recording's traces are unpacked when they are asked for.

        Raises
        ------
        InputError
            It cannot be read, is damaged, or was written by another version.
        """
        return cls.read(within(read_bytes(path, trace_file.MOST_BYTES)), path)

    @classmethod
    def read(cls, data: bytes, path: str | Path) -> Recording:
        """Read a file's bytes as `load` does, which says more; the path is for its sentences."""
        with trace_file.reading(path, "recording"):
            archive = zipfile.ZipFile(BytesIO(data))
            if _MANIFEST not in archive.namelist():
                trace = Trace(trace_file.read(archive, path))
                # What it was compiled from is the file of its first statement.
                return cls.of_launch(trace, {trace.events[0].position.file: trace.source} if trace.events else {})
            manifest = json.loads(trace_file.member(archive, _MANIFEST, trace_file.MOST_MANIFEST_BYTES))
            trace_file.check_version(manifest["version"], VERSION, path, "recording")
            launches, first = [], 0
            for number, each in enumerate(manifest["launches"]):
                shapes = tuple(None if shape is None else tuple(shape) for shape in each["shapes"])
                about = _AboutLaunch(each["count"], tuple(each["buffers"]), shapes)
                if not conforms(about, _AboutLaunch):
                    raise ValueError("a launch of other types")
                opener = partial(_unpacked, archive, path, number, about)
                launches.append(LaunchSpan(number, first, about.count, about.buffers, shapes, opener))
                first += about.count
            if not conforms(manifest["texts"], dict[str, str]):
                raise ValueError("texts of other types")
            return cls(launches, manifest["texts"], failure=str(manifest["failure"]), stopped=str(manifest["stopped"]))


def damaged(path: str | Path) -> InputError:
    """Return what is said of a file that is no recording, or a damaged one."""
    return trace_file.damaged(path, "recording")


def _same(trace: Trace) -> Trace:
    return trace


@dataclass(frozen=True)
class _AboutLaunch:
    """What a recording's own manifest says of a launch: see `LaunchSpan`."""

    count: int
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]


def _unpacked(archive: zipfile.ZipFile, path: str | Path, number: int, about: _AboutLaunch) -> Trace:
    with trace_file.reading(path, "recording"):
        trace = Trace(trace_file.read(archive, path, f"{number}/"))
        arrays = len(trace.arrays)
        if (len(trace.events), arrays, arrays) != (about.count, len(about.buffers), len(about.shapes)):
            raise ValueError("a launch of other sizes")
        if any(shape and prod(shape) != array.count for shape, array in zip(about.shapes, trace.arrays, strict=True)):
            raise ValueError("an array of another extent")
        return trace
