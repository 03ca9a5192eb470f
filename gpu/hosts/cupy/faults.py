"""CuPy's exceptions, and the driver's errors as these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu.hosts.driver.faults import DriverError, DriverMemoryError

_CODES = {
    "invalid argument": "INVALID_VALUE",
    "named symbol not found": "NOT_FOUND",
    "file not found": "FILE_NOT_FOUND",
    "device kernel image is invalid": "INVALID_IMAGE",
    "an illegal memory access was encountered": "ILLEGAL_ADDRESS",
    "misaligned address": "MISALIGNED_ADDRESS",
    "device-side assert triggered": "ASSERT",
    "the launch timed out and was terminated": "LAUNCH_TIMEOUT",
    "too many blocks in cooperative launch": "COOPERATIVE_LAUNCH_TOO_LARGE",
    "unspecified launch failure": "LAUNCH_FAILED",
    "operation not supported": "NOT_SUPPORTED",
}
"""The driver's codes, without their prefix, by their texts."""


class CUDADriverError(RuntimeError):
    """An error of the driver, such as an unknown kernel or an illegal address."""

    __module__ = "cupy_backends.cuda.api.driver"


class CUDARuntimeError(RuntimeError):
    """An error of the runtime API."""

    __module__ = "cupy_backends.cuda.api.runtime"


class OutOfMemoryError(MemoryError):
    """Device memory is exhausted."""

    __module__ = "cupy.cuda.memory"


class CompileException(Exception):  # noqa: N818
    """The compiler rejects a source.

    Parameters
    ----------
    msg : str
        The compiler's log.
    source : str
    name : str
        The file's name.
    options : sequence of str
    backend : str
        "nvrtc" or "nvcc".
    """

    __module__ = "cupy.cuda.compiler"

    def __init__(self, msg: str, source: str, name: str, options: object, backend: str = "nvrtc") -> None:
        super().__init__()
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, options, backend

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def __str__(self) -> str:
        return self.get_message()

    def get_message(self) -> str:
        """Return the compiler's log."""
        return self._msg

    def dump(self, f: object) -> None:
        """Write the source with line numbers, and the log, to a text file."""
        lines = (f"{number:4} {line}" for number, line in enumerate(self.source.split("\n"), 1))
        print(self.name, *lines, self._msg, sep="\n", file=f)  # type: ignore[call-overload]


def build_driver_error(reason: str, detail: str = "") -> CUDADriverError:
    """Return an error with the driver's code and text."""
    text = f"CUDA_ERROR_{_CODES.get(reason, 'UNKNOWN')}: {reason}"
    return CUDADriverError(text + (f" - {detail}" if detail else ""))


@contextmanager
def cupy_errors() -> Iterator[None]:
    """Raise the driver's errors as CuPy's."""
    try:
        yield
    except DriverMemoryError as error:
        raise OutOfMemoryError(str(error)) from None
    except DriverError as error:
        detail = str(error).partition(" - ")[2] or ("" if error.reason else str(error))
        raise build_driver_error(error.reason, detail) from None
