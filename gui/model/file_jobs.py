"""Read and write files in the engine's process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Array
from gpu.messages.requests import Failure, LoadArray, LoadImage, LoadText, Request, Result, SaveArray
from gpu.messages.shared_arrays import SharedArray
from gui.model.jobs import Jobs
from gui.model.records import OpenImage, OpenValues


class FileJobs(QObject):
    """Read images, numbers and texts, and write results; each failure is reported once.

    Parameters
    ----------
    jobs : Jobs
        The engine's queue.
    """

    failed = pyqtSignal(object)
    """Failure"""

    def __init__(self, jobs: Jobs, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs

    def image(self, path: Path, take: Callable[[OpenImage], None], otherwise: Callable[[], None]) -> None:
        """Read an image and pass it to `take`; on failure call `otherwise`."""

        def on_loaded(result: Result) -> None:
            handles = result.arrays
            take(
                OpenImage(
                    path=path,
                    inputs={"image": handles["image"], "maxval": handles["maxval"]},
                    values=handles["image"].open(),
                    picture=handles["picture"].open(),
                    maxval=int(handles["maxval"].open()),
                )
            )

        self._open(LoadImage(str(path)), on_loaded, otherwise)

    def values(self, path: Path, dimensions: int, take: Callable[[OpenValues], None]) -> None:
        """Read numbers with a number of dimensions and pass them to `take`."""

        def on_loaded(result: Result) -> None:
            handle = result.arrays["values"]
            take(OpenValues(path, {"values": handle}, handle.open()))

        self._open(LoadArray(str(path), dimensions), on_loaded)

    def text(self, path: Path, take: Callable[[str], None]) -> None:
        """Read a text and pass it to `take`."""
        self._open(LoadText(str(path)), lambda result: take(result.arrays["text"].open().tobytes().decode("latin-1")))

    def thumbnail(self, path: Path, take: Callable[[Array], None]) -> None:
        """Read an image for a thumbnail, at low priority."""

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event.arrays["picture"].open())

        self._jobs.post(f"thumbnail {path}", LoadImage(str(path)), on_result, priority=-1)

    def save(self, path: Path, handle: SharedArray, maxval: int | None, then: Callable[[], None]) -> None:
        """Write an array and call `then`; `maxval` is the white level of an image, None for plain values."""

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Failure):
                self.failed.emit(event)
            else:
                then()

        self._jobs.post("save", SaveArray(str(path), handle, maxval), on_result, priority=3)

    def _open(
        self, request: Request, take: Callable[[Result], None], otherwise: Callable[[], None] | None = None
    ) -> None:
        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event)
                return
            if event.kind != "cancelled":
                self.failed.emit(event)
            if otherwise is not None:
                otherwise()

        self._jobs.post("open", request, on_result, priority=3)

    # --- moving data to another engine

    def moved(self, image: OpenImage) -> OpenImage:
        """Return an image with new handles for the current engine."""
        inputs = {
            "image": self._put(image.values),
            "maxval": self._put(np.asarray(image.maxval, np.uint32)),
        }
        return OpenImage(image.path, inputs, image.values, image.picture, image.maxval)

    def moved_values(self, values: OpenValues) -> OpenValues:
        """Return numbers with a new handle for the current engine."""
        return OpenValues(values.path, {"values": self._put(values.values)}, values.values)

    def _put(self, values: Array) -> SharedArray:
        folder = self._jobs.folder
        return folder.adopt(folder.put(values))
