"""Read and write files in the engine's process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Array
from gpu.messages.events import Failure
from gpu.messages.files import LoadArray, LoadImage, LoadText, SaveArray
from gpu.messages.requests import Acknowledgment, ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray
from gui.model.records import OpenImage, OpenValues
from gui.model.request_queue import RequestQueue


class FileJobs(QObject):
    """Read images, numbers and texts, and write results; each failure is reported once.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    """

    failed = pyqtSignal(object)
    """Failure"""

    def __init__(self, jobs: RequestQueue, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs

    def read_image(self, path: Path, on_image: Callable[[OpenImage], None], on_failure: Callable[[], None]) -> None:
        """Read an image and pass it to `on_image`; on failure call `on_failure`."""

        def on_loaded(result: ArrayResult) -> None:
            handles = result.arrays
            on_image(
                OpenImage(
                    path=path,
                    inputs={"image": handles["image"], "maxval": handles["maxval"]},
                    values=handles["image"].open(),
                    picture=handles["picture"].open(),
                    maxval=int(handles["maxval"].open()),
                )
            )

        self._post_read(LoadImage(str(path)), on_loaded, on_failure)

    def read_values(self, path: Path, dimensions: int, on_values: Callable[[OpenValues], None]) -> None:
        """Read numbers with a number of dimensions and pass them to `on_image`."""

        def on_loaded(result: ArrayResult) -> None:
            handle = result.arrays["values"]
            on_values(OpenValues(path, {"values": handle}, handle.open()))

        self._post_read(LoadArray(str(path), dimensions), on_loaded)

    def read_text(self, path: Path, on_text: Callable[[str], None]) -> None:
        """Read a text and pass it to `on_image`."""
        self._post_read(
            LoadText(str(path)), lambda result: on_text(result.arrays["text"].open().tobytes().decode("latin-1"))
        )

    def read_thumbnail(self, path: Path, on_picture: Callable[[Array], None]) -> None:
        """Read an image for a thumbnail, at low priority."""

        def on_result(event: ArrayResult | Failure) -> None:
            if not isinstance(event, Failure):
                on_picture(event.arrays["picture"].open())

        self._jobs.post(f"thumbnail {path}", LoadImage(str(path)), on_result, priority=-1)

    def save_array(self, path: Path, handle: SharedArray, maxval: int | None, on_saved: Callable[[], None]) -> None:
        """Write an array to a file.

        Parameters
        ----------
        maxval : int or None
            The white level of an image; None for plain values.
        on_saved : callable
            Called after the file was written.
        """

        def on_result(event: Acknowledgment | Failure) -> None:
            if isinstance(event, Failure):
                self.failed.emit(event)
            else:
                on_saved()

        self._jobs.post("save", SaveArray(str(path), handle, maxval), on_result, priority=3)

    def _post_read(
        self,
        request: Request[ArrayResult],
        on_success: Callable[[ArrayResult], None],
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        def on_result(event: ArrayResult | Failure) -> None:
            if not isinstance(event, Failure):
                on_success(event)
                return
            if event.kind != "cancelled":
                self.failed.emit(event)
            if on_failure is not None:
                on_failure()

        self._jobs.post("open", request, on_result, priority=3)

    # --- moving data to another engine

    def copy_image_to_engine(self, image: OpenImage) -> OpenImage:
        """Return an image with new handles for the current engine."""
        inputs = {
            "image": self._put_array(image.values),
            "maxval": self._put_array(np.asarray(image.maxval, np.uint32)),
        }
        return OpenImage(image.path, inputs, image.values, image.picture, image.maxval)

    def copy_values_to_engine(self, values: OpenValues) -> OpenValues:
        """Return numbers with a new handle for the current engine."""
        return OpenValues(values.path, {"values": self._put_array(values.values)}, values.values)

    def _put_array(self, values: Array) -> SharedArray:
        folder = self._jobs.folder
        return folder.adopt(folder.put(values))
