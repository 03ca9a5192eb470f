"""What the driver complains of, and how it says so."""

from __future__ import annotations

INVALID_VALUE = "invalid argument"
INVALID_CONTEXT = "invalid device context"
NOT_INITIALIZED = "initialization error"
NOT_FOUND = "named symbol not found"
NOT_SUPPORTED = "operation not supported"


class DriverError(Exception):
    """Whatever the driver complains of."""

    @property
    def reason(self) -> str:
        """What is wrong, in the driver's words, without the routine and the detail."""
        return str(self).partition(" failed: ")[2].partition(" - ")[0]


class DriverMemoryError(DriverError):
    """There is no memory left."""


class DriverLogicError(DriverError):
    """A call that is wrong where it stands."""


class DriverLaunchError(DriverError):
    """A kernel that did something wrong."""


class DriverRuntimeError(DriverError):
    """What is not there, or not possible here."""


def said(routine: str, reason: str, detail: str = "") -> str:
    """Return what is said of a routine of the driver that failed."""
    return f"{routine} failed: {reason}" + (f" - {detail}" if detail else "")


def wrong(routine: str, reason: str, detail: str = "") -> DriverLogicError:
    """Return the exception for a call that is wrong."""
    return DriverLogicError(said(routine, reason, detail))
