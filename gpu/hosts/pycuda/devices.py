"""The simulated device and its contexts, of which each thread has a stack."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from gpu.hosts.driver.attributes import DEVICE_ATTRIBUTES, VALUE_BY_NUMBER, device_name
from gpu.hosts.driver.faults import (
    INVALID_CONTEXT,
    INVALID_VALUE,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    DriverRuntimeError,
    build_logic_error,
)
from gpu.hosts.driver.memory import total_memory
from gpu.hosts.pycuda.names import NAMES, export

_PCI_BUS_ID = "0000:00:00.0"
_handles = itertools.count(0x1000, 0x10)
_threads = threading.local()
_initialized = False


@export("init")
def init(flags: int = 0) -> None:
    """Initialize the driver."""
    global _initialized
    if flags:
        raise build_logic_error("cuInit", INVALID_VALUE)
    _initialized = True


@export("get_version")
def get_version() -> tuple[int, int, int]:
    """Return the CUDA version of the headers."""
    return 13, 0, 0


@export("get_driver_version")
def get_driver_version() -> int:
    """Return the CUDA version that the driver supports."""
    return 13_000


@export("have_gl_ext")
def have_gl_ext() -> bool:
    """Return whether OpenGL is supported."""
    return False


@export("Device")
class SimulatedDevice:
    """The only device."""

    def __init__(self, device: int | str) -> None:
        if not _initialized:
            raise build_logic_error(
                "cuDeviceGet", NOT_INITIALIZED, "call pycuda.driver.init() first, or import pycuda.autoinit"
            )
        if device not in (0, _PCI_BUS_ID):
            raise build_logic_error(
                "cuDeviceGet", "invalid device ordinal", f"the simulator is device 0; there is no device {device}"
            )

    @staticmethod
    def count() -> int:
        """Return the number of devices."""
        if not _initialized:
            raise build_logic_error("cuDeviceGetCount", NOT_INITIALIZED)
        return 1

    def name(self) -> str:
        """Return the device's name."""
        return device_name()

    def pci_bus_id(self) -> str:
        """Return a placeholder of the position on the bus."""
        return _PCI_BUS_ID

    def compute_capability(self) -> tuple[int, int]:
        """Return the device's compute capability."""
        major, minor = (DEVICE_ATTRIBUTES[f"COMPUTE_CAPABILITY_{each}"][0] for each in ("MAJOR", "MINOR"))
        return VALUE_BY_NUMBER[major], VALUE_BY_NUMBER[minor]

    def total_memory(self) -> int:
        """Return the size of device memory in bytes."""
        return total_memory()

    def get_attribute(self, attribute: int) -> Any:
        """Return an attribute by its number in `device_attribute`."""
        if attribute not in VALUE_BY_NUMBER:
            raise build_logic_error("cuDeviceGetAttribute", INVALID_VALUE)
        if attribute == NAMES["device_attribute"].COMPUTE_MODE:
            return NAMES["compute_mode"].DEFAULT
        return VALUE_BY_NUMBER[attribute]

    def make_context(self, flags: int = 0) -> SimulatedContext:
        """Create a context and make it current."""
        return _push(SimulatedContext())

    def retain_primary_context(self) -> SimulatedContext:
        """Return the context that libraries share; it becomes current when it is pushed."""
        context = SimulatedContext()
        context.handle = _PRIMARY  # detaching it does not affect other users
        return context

    def can_access_peer(self, other: SimulatedDevice) -> bool:
        """Return whether kernels can access another device's memory."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedDevice)

    def __hash__(self) -> int:
        return 0


@export("Context")
class SimulatedContext:
    """Context of memory, modules and streams."""

    def __init__(self) -> None:
        self.handle = next(_handles)
        self.detached = False

    @staticmethod
    def attach(flags: int = 0) -> SimulatedContext:
        """Return the current context."""
        return current_context("cuCtxAttach")

    def detach(self) -> None:
        """Release the context; if it is current, the one below becomes current."""
        if self.detached:
            raise build_logic_error("context::detach", INVALID_CONTEXT, "it is already detached")
        self.detached = True
        stack = _stack()
        if self in stack:
            stack.remove(self)

    def push(self) -> None:
        """Make it current in this thread."""
        if self.detached:
            raise build_logic_error("cuCtxPushCurrent", INVALID_CONTEXT, "it is detached")
        _push(self)

    @staticmethod
    def pop() -> None:
        """Make the context below current in this thread."""
        if not _stack():
            raise build_logic_error("context::pop", INVALID_CONTEXT, "cannot pop non-current context")
        _stack().pop()

    @staticmethod
    def get_device() -> SimulatedDevice:
        """Return the device of the current context."""
        current_context("cuCtxGetDevice")
        return SimulatedDevice(0)

    @staticmethod
    def get_current() -> SimulatedContext | None:
        """Return the current context of this thread."""
        return _stack()[-1] if _stack() else None

    @staticmethod
    def synchronize() -> None:
        """Do nothing: routines complete before they return."""
        current_context("cuCtxSynchronize")

    @staticmethod
    def set_limit(limit: int, value: int) -> None:
        """Set a limit, which only `get_limit` uses."""
        current_context("cuCtxSetLimit")
        _limits[int(limit)] = value

    @staticmethod
    def get_limit(limit: int) -> int:
        """Return a limit."""
        current_context("cuCtxGetLimit")
        return _limits.get(int(limit), 0)

    @staticmethod
    def set_cache_config(config: int) -> None:
        """Set the preferred cache configuration, which the simulator ignores."""
        _preferences["func_cache"] = int(config)

    @staticmethod
    def get_cache_config() -> Any:
        """Return the preferred cache configuration."""
        return NAMES["func_cache"](_preferences["func_cache"])

    @staticmethod
    def set_shared_config(config: int) -> None:
        """Set the preferred bank size, which the simulator ignores."""
        _preferences["shared_config"] = int(config)

    @staticmethod
    def get_shared_config() -> Any:
        """Return the preferred bank size."""
        return NAMES["shared_config"](_preferences["shared_config"])

    @staticmethod
    def enable_peer_access(peer: SimulatedContext, flags: int = 0) -> None:
        """Raise an error: there is no other device."""
        raise DriverRuntimeError(f"cuCtxEnablePeerAccess failed: {NOT_SUPPORTED} - there is only one device")

    @staticmethod
    def disable_peer_access(peer: SimulatedContext) -> None:
        """Raise an error: there is no other device."""
        raise DriverRuntimeError(f"cuCtxDisablePeerAccess failed: {NOT_SUPPORTED} - there is only one device")

    def get_api_version(self) -> int:
        """Return the version of the driver API."""
        return 3020


_limits = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048}
_preferences = {"func_cache": 0, "shared_config": 0}
_PRIMARY = next(_handles)


def _stack() -> list[SimulatedContext]:
    if not hasattr(_threads, "stack"):
        _threads.stack = []
    stack: list[SimulatedContext] = _threads.stack
    return stack


def _push(context: SimulatedContext) -> SimulatedContext:
    _stack().append(context)
    return context


def current_context(routine: str) -> SimulatedContext:
    """Return the current context of this thread; fail the routine if there is none."""
    if not _stack():
        raise build_logic_error(
            routine, INVALID_CONTEXT, "this thread has no context: import pycuda.autoinit, or create one"
        )
    return _stack()[-1]
