"""The recording of a host program's launches as one sequence of events, and its file.

*Moment* k is the position just before event k of that sequence; the last moment is the end.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from gpu.base.errors import InputError, SourcePosition
from gpu.base.findings import Finding
from gpu.base.thread_names import Extents, name_thread, rename_threads
from gpu.base.warp import WARP
from gpu.files.file_access import read_bytes
from gpu.recording import file as trace_file
from gpu.recording.player_file import extract_recording
from gpu.recording.trace import Trace
from gpu.recording.validation import matches_type

VERSION = 2

_MANIFEST = "recording.json"

Shape = tuple[int, ...] | None
"""The extents of an array; None if unknown."""


class RecordedLaunch(NamedTuple):
    """A trace with the host program's data about its arrays, by array number: see `LaunchSpan`."""

    trace: Trace
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, eq=False)
class LaunchSpan:
    """One launch of a recording.

    Parameters
    ----------
    number : int
        Its index in `Recording.launches`.
    first : int
        The moment of its first event.
    count : int
        The number of its events.
    buffers : tuple of (int or None)
        Buffer numbers by the trace's array numbers: equal for the same buffer in several launches, None for memory that
        exists only during the launch, such as shared memory. A buffer that the host refilled gets a new number.
    shapes : tuple of (tuple of int, or None)
        The extents of each array of the trace; None if unknown.
    load_trace : callable
        Returns the trace.
    """

    number: int
    first: int
    count: int
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]
    load_trace: Callable[[], Trace]

    @cached_property
    def trace(self) -> Trace:
        """The recorded trace, loaded on first use.

        Raises
        ------
        InputError
            The recording's file is damaged.
        """
        return self.load_trace()


class Recording:
    """All events of all launches of a host program.

    Parameters
    ----------
    texts : mapping of str to str
        The source files, by the names used in positions.
    failure : str
        The error that ended the program; "" if there was none.
    stopped : str
        The reason why the recording is incomplete; "" if it is complete.
    """

    def __init__(
        self, launches: Sequence[LaunchSpan], texts: Mapping[str, str], *, failure: str = "", stopped: str = ""
    ) -> None:
        self.launches = tuple(launches)
        self._failure = failure
        self.stopped = stopped
        self._texts = dict(texts)
        self._firsts = np.array([launch.first for launch in self.launches], np.int64)

    @cached_property
    def has_several_blocks(self) -> bool:
        """Whether any launch has more than one block."""
        return any(prod(launch.trace.grid) > 1 for launch in self.launches)

    @cached_property
    def warps(self) -> tuple[int, ...]:
        """The warps per block of each launch."""
        return tuple(launch.trace.launches[0].lanes_per_block // WARP for launch in self.launches)

    def name_thread(self, launch: int, block: int, thread: int) -> str:
        """Return a thread's name: "thread 3", or "block (5, 10), thread (30, 14)" if any launch has several blocks.

        Parameters
        ----------
        block, thread : int
            Their numbers in the launch and in the block, x fastest.
        """
        trace = self.launches[launch].trace
        return name_thread(block, thread, trace.grid, trace.block, names_block=self.has_several_blocks)

    @classmethod
    def from_launches(
        cls,
        recorded: Sequence[RecordedLaunch],
        texts: Mapping[str, str],
        *,
        failure: str = "",
        stopped: str = "",
    ) -> Recording:
        """Return the recording of several launches.

        Parameters
        ----------
        texts, failure, stopped
            As for the class.
        """
        launches, first = [], 0
        for number, (trace, buffers, shapes) in enumerate(recorded):
            launches.append(LaunchSpan(number, first, len(trace.events), buffers, shapes, partial(_identity, trace)))
            first += len(trace.events)
        return cls(launches, texts, failure=failure, stopped=stopped)

    @classmethod
    def from_trace(cls, trace: Trace, texts: Mapping[str, str]) -> Recording:
        """Return the recording of a single launch; its arrays need no identity across launches."""
        buffers = tuple(
            number if array.space in ("global", "constant") else None for number, array in enumerate(trace.arrays)
        )
        launch = RecordedLaunch(trace, buffers, (None,) * len(buffers))
        return cls.from_launches([launch], texts, failure=trace.failure, stopped=trace.stop_reason)

    @property
    def event_count(self) -> int:
        """The number of events of all launches, which is the last moment."""
        return self.launches[-1].first + self.launches[-1].count if self.launches else 0

    def locate_moment(self, moment: int) -> tuple[LaunchSpan, int]:
        """Return the launch that runs at a moment, and the index of its next event; at the end, its number of events.

        Raises
        ------
        InputError
            The recording has no such moment, or no launches.
        """
        if not self.launches or not 0 <= moment <= self.event_count:
            raise InputError(f"The recording has {self.event_count} events; there is no moment {moment}.")
        launch = self.launches[int(np.searchsorted(self._firsts, moment, side="right")) - 1]
        return launch, moment - launch.first

    def find_write_moment(self, array: str, element: int) -> int | None:
        """Return the moment after the last write of an array's element; None if no recorded event wrote it."""
        for launch in reversed(self.launches):
            for recorded_array in launch.trace.arrays:
                if recorded_array.name == array and element < recorded_array.count:
                    writer = launch.trace.find_writer(recorded_array.number, element, launch.count)
                    if writer is not None:
                        return launch.first + writer.event + 1
        return None

    def map_element(self, array: str, element: int, shape: tuple[int, ...]) -> int:
        """Map an element of an array of another shape to an element of this array, as if it repeated periodically."""
        for launch in reversed(self.launches):
            for recorded_array in launch.trace.arrays:
                if recorded_array.name == array:
                    extents = launch.shapes[recorded_array.number]
                    if extents is None or len(extents) != len(shape):
                        return element % recorded_array.count
                    index = [
                        coordinate % extent
                        for coordinate, extent in zip(np.unravel_index(element, shape), extents, strict=True)
                    ]
                    return int(np.ravel_multi_index(index, extents))
        return element

    def position(self, moment: int) -> SourcePosition:
        """Return the source position of the event with a number."""
        launch, event = self.locate_moment(moment)
        position: SourcePosition = launch.trace.events[event].position
        return position

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
        """The kernels' errors, each with the number of the event in which it was first found.

        Their messages name threads as `name_thread` does.
        """
        return tuple(
            (launch.first + found.event, self.rename_threads(launch.number, found.finding))
            for launch in self.launches
            for found in launch.trace.findings
        )

    def rename_threads(self, launch: int, finding: Finding) -> Finding:
        """Return a launch's finding, with a message that names threads as `name_thread` does."""
        return replace(finding, message=self._rename_threads(launch, finding.message))

    @cached_property
    def failure(self) -> str:
        """The error that ended the program, in its last launch; "" if there was none."""
        return self._rename_threads(-1, self._failure) if self._failure and self.launches else self._failure

    def _rename_threads(self, launch: int, message: str) -> str:
        trace = self.launches[launch].trace
        extents: Extents = trace.grid, trace.block
        return rename_threads(message, extents, names_single_block=self.has_several_blocks)

    @property
    def texts(self) -> Mapping[str, str]:
        """The source files as compiled, by name."""
        return self._texts

    def text(self, file: str) -> str:
        """Return a source file as compiled; "" if no kernel is from that file."""
        return self._texts.get(file, "")

    # Files.

    def save(self, target: str | Path | IO[bytes]) -> None:
        """Write the recording as one zip archive."""
        manifest = {
            "version": VERSION,
            "launches": [
                {"count": launch.count, "buffers": launch.buffers, "shapes": launch.shapes} for launch in self.launches
            ],
            "texts": self._texts,
            "failure": self._failure,
            "stopped": self.stopped,
        }
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(_MANIFEST, json.dumps(manifest))
            for launch in self.launches:
                trace_file.write_trace(launch.trace.data, archive, f"{launch.number}/")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Load a recording, a trace (as the recording of its launch), or a page's embedded recording.

        The whole file is read, so it may be deleted afterwards; traces are unpacked on first use.

        Raises
        ------
        InputError
            The file cannot be read, is damaged, or was written by another version.
        """
        return cls.read(extract_recording(read_bytes(path, trace_file.MAX_BYTES)), path)

    @classmethod
    def read(cls, data: bytes, path: str | Path) -> Recording:
        """Read a recording from bytes, see `load`; the path is only used in error messages."""
        with trace_file.convert_read_errors(path, "recording"):
            archive = zipfile.ZipFile(BytesIO(data))
            if _MANIFEST not in archive.namelist():
                trace = Trace(trace_file.read_trace(archive, path))
                # The trace's source is the file of its first statement.
                return cls.from_trace(trace, {trace.events[0].position.file: trace.source} if trace.events else {})
            manifest = json.loads(trace_file.read_member(archive, _MANIFEST, trace_file.MAX_MANIFEST_BYTES))
            trace_file.check_version(manifest["version"], VERSION, path, "recording")
            launches, first = [], 0
            for number, saved_launch in enumerate(manifest["launches"]):
                shapes = tuple(None if shape is None else tuple(shape) for shape in saved_launch["shapes"])
                entry = _LaunchEntry(saved_launch["count"], tuple(saved_launch["buffers"]), shapes)
                if not matches_type(entry, _LaunchEntry):
                    raise ValueError("a launch has values of the wrong type")
                opener = partial(_unpack_trace, archive, path, number, entry)
                launches.append(LaunchSpan(number, first, entry.count, entry.buffers, shapes, opener))
                first += entry.count
            if not matches_type(manifest["texts"], dict[str, str]):
                raise ValueError("texts have the wrong type")
            return cls(launches, manifest["texts"], failure=str(manifest["failure"]), stopped=str(manifest["stopped"]))


def build_damage_error(path: str | Path) -> InputError:
    """Return the error for a file that is damaged or not a recording."""
    return trace_file.build_damage_error(path, "recording")


def _identity(trace: Trace) -> Trace:
    return trace


@dataclass(frozen=True)
class _LaunchEntry:
    """A launch's entry in a recording's manifest: see `LaunchSpan`."""

    count: int
    buffers: tuple[int | None, ...]
    shapes: tuple[Shape, ...]


def _unpack_trace(archive: zipfile.ZipFile, path: str | Path, number: int, entry: _LaunchEntry) -> Trace:
    with trace_file.convert_read_errors(path, "recording"):
        trace = Trace(trace_file.read_trace(archive, path, f"{number}/"))
        arrays = len(trace.arrays)
        if (len(trace.events), arrays, arrays) != (entry.count, len(entry.buffers), len(entry.shapes)):
            raise ValueError("a launch has the wrong size")
        if any(shape and prod(shape) != array.count for shape, array in zip(entry.shapes, trace.arrays, strict=True)):
            raise ValueError("an array has the wrong extents")
        return trace
