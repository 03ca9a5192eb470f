"""Errors of the simulated driver, with CUDA's texts."""

from __future__ import annotations

INVALID_VALUE = "invalid argument"
INVALID_CONTEXT = "invalid device context"
NOT_INITIALIZED = "initialization error"
NOT_FOUND = "named symbol not found"
NOT_SUPPORTED = "operation not supported"


class DriverError(Exception):
    """Any error of the driver."""

    @property
    def reason(self) -> str:
        """The driver's error text, without routine and detail."""
        return str(self).partition(" failed: ")[2].partition(" - ")[0]


class DriverMemoryError(DriverError):
    """Device memory is exhausted."""


class DriverLogicError(DriverError):
    """Invalid call."""


class HostWaitError(DriverLogicError):
    """A kernel waits for the host, which the simulator does not support."""


class DriverLaunchError(DriverError):
    """A kernel failed."""


class DriverRuntimeError(DriverError):
    """Something does not exist or is not supported."""


def format_failure(routine: str, reason: str, detail: str = "") -> str:
    """Format the message of a failed driver routine."""
    return f"{routine} failed: {reason}" + (f" - {detail}" if detail else "")


def build_logic_error(routine: str, reason: str, detail: str = "") -> DriverLogicError:
    """Return the exception for an invalid call."""
    return DriverLogicError(format_failure(routine, reason, detail))
