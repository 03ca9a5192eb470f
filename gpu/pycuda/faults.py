"""PyCUDA's exceptions, and what it says in them."""

from __future__ import annotations

from gpu.pycuda.names import exported

INVALID_VALUE = "invalid argument"
INVALID_CONTEXT = "invalid device context"
NOT_INITIALIZED = "initialization error"
NOT_FOUND = "named symbol not found"
NOT_SUPPORTED = "operation not supported"


@exported("Error")
class DriverError(Exception):
    """Whatever the driver complains of."""


@exported("MemoryError")
class DriverMemoryError(DriverError):
    """There is no memory left."""


@exported("LogicError")
class DriverLogicError(DriverError):
    """A call that is wrong where it stands."""


@exported("LaunchError")
class DriverLaunchError(DriverError):
    """A kernel that did something wrong."""


@exported("RuntimeError")
class DriverRuntimeError(DriverError):
    """What is not there, or not possible here."""


def said(routine: str, reason: str, detail: str = "") -> str:
    """Return what PyCUDA says of a routine of the driver that failed."""
    return f"{routine} failed: {reason}" + (f" - {detail}" if detail else "")


def wrong(routine: str, reason: str, detail: str = "") -> DriverLogicError:
    """Return the exception for a call that is wrong."""
    return DriverLogicError(said(routine, reason, detail))
