"""The driver's errors as PyCUDA's exceptions."""

from __future__ import annotations

from gpu.driver.faults import DriverError, DriverLaunchError, DriverLogicError, DriverMemoryError, DriverRuntimeError
from gpu.pycuda.names import exported

exported("Error")(DriverError)
exported("MemoryError")(DriverMemoryError)
exported("LogicError")(DriverLogicError)
exported("LaunchError")(DriverLaunchError)
exported("RuntimeError")(DriverRuntimeError)
