"""CuPy's exceptions, and the driver's errors as these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu.hosts.driver.faults import DriverError, DriverMemoryError

_CODES = {
    "invalid argument": ("INVALID_VALUE", 1),
    "named symbol not found": ("NOT_FOUND", 500),
    "file not found": ("FILE_NOT_FOUND", 301),
    "device kernel image is invalid": ("INVALID_IMAGE", 200),
    "an illegal memory access was encountered": ("ILLEGAL_ADDRESS", 700),
    "misaligned address": ("MISALIGNED_ADDRESS", 716),
    "device-side assert triggered": ("ASSERT", 710),
    "the launch timed out and was terminated": ("LAUNCH_TIMEOUT", 702),
    "too many blocks in cooperative launch": ("COOPERATIVE_LAUNCH_TOO_LARGE", 720),
    "unspecified launch failure": ("LAUNCH_FAILED", 719),
    "operation not supported": ("NOT_SUPPORTED", 801),
}
"""The driver's codes, with their names without prefix, by their texts."""
_UNKNOWN = ("UNKNOWN", 999)
_RUNTIME_CODES = {
    "cudaErrorInvalidValue": 1,
    "cudaErrorInvalidDevice": 101,
    "cudaErrorInvalidResourceHandle": 400,
    "cudaErrorNotSupported": 801,
}


class CUDADriverError(RuntimeError):
    """An error of the driver, such as an unknown kernel or an illegal address; `status` is the driver's code."""

    __module__ = "cupy_backends.cuda.api.driver"

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class CUDARuntimeError(RuntimeError):
    """An error of the runtime API, with its name before its text; `status` is the code of that name."""

    __module__ = "cupy_backends.cuda.api.runtime"

    @property
    def status(self) -> int:
        return _RUNTIME_CODES.get(str(self).partition(":")[0], _UNKNOWN[1])


class OutOfMemoryError(MemoryError):
    """Device memory is exhausted."""

    __module__ = "cupy.cuda.memory"


class CompileException(Exception):  # noqa: N818
    """The compiler rejects a source.

    Parameters
    ----------
    msg : str
        The compiler's log.
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
    name, status = _CODES.get(reason, _UNKNOWN)
    return CUDADriverError(f"CUDA_ERROR_{name}: {reason}" + (f" - {detail}" if detail else ""), status)


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
