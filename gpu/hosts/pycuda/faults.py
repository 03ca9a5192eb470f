"""The driver's errors as PyCUDA's exceptions."""

from __future__ import annotations

from gpu.hosts.driver.faults import (
    DriverError,
    DriverLaunchError,
    DriverLogicError,
    DriverMemoryError,
    DriverRuntimeError,
)
from gpu.hosts.pycuda.names import export

export("Error")(DriverError)
export("MemoryError")(DriverMemoryError)
export("LogicError")(DriverLogicError)
export("LaunchError")(DriverLaunchError)
export("RuntimeError")(DriverRuntimeError)
