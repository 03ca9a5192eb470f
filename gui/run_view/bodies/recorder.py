"""Recorder of films: frames are encoded as GIF or MP4 on a thread while they arrive."""

from __future__ import annotations

import queue
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array
from gui.model.films import FILM_SUFFIXES, FilmAbandonedError, write_film

FRAME_RATE = 30.0
"""Frames per second of a film, regardless of the simulation's speed."""
MAX_FRAMES = 1800
GIF_WIDTH = 640
_MAX_QUEUED_FRAMES = 8
_PALETTE_SAMPLES = 12
"""A GIF's palette is computed from rows of this many frames of the film, and from the last frame."""


class FilmRecorder(QObject):
    """A film.

    An MP4 is encoded while it is recorded. A GIF needs its palette before its first frame, so its frames are stored in
    a temporary file until the film ends.

    Parameters
    ----------
    path : Path
        A .gif or .mp4 file.
    width, height : int
        The size of the frames in pixels.
    """

    ready_changed = pyqtSignal(bool)
    """Whether the recorder can accept a frame."""
    finished = pyqtSignal(str)
    """The reason why the file could not be written, or ""."""
    _frame_dequeued = pyqtSignal()
    _encoding_finished = pyqtSignal(str)

    def __init__(self, path: Path, width: int, height: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        if path.suffix.lower() not in FILM_SUFFIXES:
            raise ValueError("Use a file name that ends in .gif or .mp4.")
        self.path, self.size = path, (width, height)
        self.frame_count = 0
        self.ready = True
        self._is_gif = path.suffix.lower() == ".gif"
        self._queue: queue.Queue[Array | None] = queue.Queue()
        self._discarded = threading.Event()
        self._frame_dequeued.connect(self._update_ready)
        self._encoding_finished.connect(self.finished)
        self._thread = threading.Thread(target=self._encode, daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether the film has reached its maximum length."""
        return self.frame_count >= MAX_FRAMES

    def add(self, picture: Array) -> None:
        """Add a frame: uint8, shape (height, width, 3)."""
        self.frame_count += 1
        self._queue.put(picture)
        self._update_ready()

    def finish(self) -> None:
        """End the film; `finished` is emitted when the file is written."""
        self._queue.put(None)

    def discard_film(self) -> None:
        """Discard the film, and keep an existing file."""
        self._discarded.set()
        self._queue.put(None)
        self._thread.join()

    def _update_ready(self) -> None:
        ready = self._queue.qsize() < _MAX_QUEUED_FRAMES
        if ready != self.ready:
            self.ready = ready
            self.ready_changed.emit(ready)

    # --- on the thread

    def _encode(self) -> None:
        problem = ""
        try:
            frames = self._iterate_gif_frames() if self._is_gif else self._iterate_queued_frames()
            first = next(frames, None)
            if first is None:
                problem = f"{self.path.name} was not written: no frame was recorded."
            else:
                write_film(self.path, _prepend_frame(first, frames), FRAME_RATE)
        except InputError as error:
            problem = str(error)
        except OSError as error:  # from the temporary file
            problem = f"Cannot write {self.path.name}: {(error.strerror or str(error)).lower()}."
        except FilmAbandonedError:
            pass
        if not self._discarded.is_set():
            self._encoding_finished.emit(problem)

    def _iterate_queued_frames(self) -> Iterator[Array]:
        while (frame := self._queue.get()) is not None:
            if self._discarded.is_set():
                raise FilmAbandonedError
            self._frame_dequeued.emit()
            yield frame
        if self._discarded.is_set():
            raise FilmAbandonedError

    def _iterate_gif_frames(self) -> Iterator[Array]:
        """Yield two palette samples, then all frames, reduced in size, once the film has ended."""
        from PIL import Image

        share = min(1.0, GIF_WIDTH / self.size[0])
        size = (max(1, round(share * self.size[0])), max(1, round(share * self.size[1])))
        count = 0
        with tempfile.TemporaryFile(prefix="lockstep-") as file:
            for frame in self._iterate_queued_frames():
                file.write(Image.fromarray(frame).resize(size, Image.Resampling.BOX).tobytes())
                count += 1
            if not count:
                return
            shape = (size[1], size[0], 3)
            samples = sorted({number * (count - 1) // _PALETTE_SAMPLES for number in range(_PALETTE_SAMPLES + 1)})
            yield np.concatenate([_read_frame(file, number, shape)[:: len(samples)] for number in samples])
            yield _read_frame(file, count - 1, shape)
            for number in range(count):
                if self._discarded.is_set():
                    raise FilmAbandonedError
                yield _read_frame(file, number, shape)


def _read_frame(file: IO[bytes], number: int, shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape))
    file.seek(number * size)
    return np.frombuffer(file.read(size), np.uint8).reshape(shape)


def _prepend_frame(first: Array, following_frames: Iterator[Array]) -> Iterator[Any]:
    yield first
    yield from following_frames
