"""The simulated device, and contexts on it: each thread has a stack of them."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from gpu.driver.attributes import DEVICE_ATTRIBUTES, OF_NUMBER, device_name
from gpu.driver.faults import INVALID_CONTEXT, INVALID_VALUE, NOT_INITIALIZED, NOT_SUPPORTED, DriverRuntimeError, wrong
from gpu.driver.memory import total_memory
from gpu.pycuda.names import NAMES, exported

_PCI_BUS_ID = "0000:00:00.0"
_handles = itertools.count(0x1000, 0x10)
_threads = threading.local()
_initialized = False


@exported("init")
def init(flags: int = 0) -> None:
    """Begin to use the driver."""
    global _initialized
    if flags:
        raise wrong("cuInit", INVALID_VALUE)
    _initialized = True


@exported("get_version")
def get_version() -> tuple[int, int, int]:
    """Return the version of CUDA that the headers stand for."""
    return 13, 0, 0


@exported("get_driver_version")
def get_driver_version() -> int:
    """Return the version of CUDA that the driver takes."""
    return 13_000


@exported("have_gl_ext")
def have_gl_ext() -> bool:
    """Whether there is OpenGL."""
    return False


@exported("Device")
class SimulatedDevice:
    """The one device that there is."""

    def __init__(self, which: int | str) -> None:
        if not _initialized:
            raise wrong("cuDeviceGet", NOT_INITIALIZED, "call pycuda.driver.init() first, or import pycuda.autoinit")
        if which not in (0, _PCI_BUS_ID):
            raise wrong("cuDeviceGet", "invalid device ordinal", f"the simulator is device 0, and there is no {which}")

    @staticmethod
    def count() -> int:
        """Return how many devices there are."""
        if not _initialized:
            raise wrong("cuDeviceGetCount", NOT_INITIALIZED)
        return 1

    def name(self) -> str:
        """Return what the device is called."""
        return device_name()

    def pci_bus_id(self) -> str:
        """Return what stands for a place on the bus."""
        return _PCI_BUS_ID

    def compute_capability(self) -> tuple[int, int]:
        """Return what kernels may take for granted."""
        major, minor = (DEVICE_ATTRIBUTES[f"COMPUTE_CAPABILITY_{each}"][0] for each in ("MAJOR", "MINOR"))
        return OF_NUMBER[major], OF_NUMBER[minor]

    def total_memory(self) -> int:
        """Return the bytes of the device's memory."""
        return total_memory()

    def get_attribute(self, attribute: int) -> Any:
        """Return an attribute by its number, which `device_attribute` names."""
        if attribute not in OF_NUMBER:
            raise wrong("cuDeviceGetAttribute", INVALID_VALUE)
        if attribute == NAMES["device_attribute"].COMPUTE_MODE:
            return NAMES["compute_mode"].DEFAULT
        return OF_NUMBER[attribute]

    def make_context(self, flags: int = 0) -> SimulatedContext:
        """Make a context, which becomes the current one."""
        return _pushed(SimulatedContext())

    def retain_primary_context(self) -> SimulatedContext:
        """Return the context that libraries share; it is not the current one until it is pushed."""
        context = SimulatedContext()
        context.handle = _PRIMARY  # whoever retains it may detach it without that of others
        return context

    def can_access_peer(self, other: SimulatedDevice) -> bool:
        """Whether kernels can follow pointers into another device's memory."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimulatedDevice)

    def __hash__(self) -> int:
        return 0


@exported("Context")
class SimulatedContext:
    """What memory, modules and streams belong to."""

    def __init__(self) -> None:
        self.handle = next(_handles)
        self.detached = False

    @staticmethod
    def attach(flags: int = 0) -> SimulatedContext:
        """Return the current context."""
        return current("cuCtxAttach")

    def detach(self) -> None:
        """Give the context up; where it is the current one, the one below it is from now on."""
        if self.detached:
            raise wrong("context::detach", INVALID_CONTEXT, "it was detached before")
        self.detached = True
        stack = _stack()
        if self in stack:
            stack.remove(self)

    def push(self) -> None:
        """Make it the current one of this thread."""
        if self.detached:
            raise wrong("cuCtxPushCurrent", INVALID_CONTEXT, "it is detached")
        _pushed(self)

    @staticmethod
    def pop() -> None:
        """Make the one below the current one of this thread."""
        if not _stack():
            raise wrong("context::pop", INVALID_CONTEXT, "cannot pop non-current context")
        _stack().pop()

    @staticmethod
    def get_device() -> SimulatedDevice:
        """Return the device of the current context."""
        current("cuCtxGetDevice")
        return SimulatedDevice(0)

    @staticmethod
    def get_current() -> SimulatedContext | None:
        """Return the current context of this thread."""
        return _stack()[-1] if _stack() else None

    @staticmethod
    def synchronize() -> None:
        """Wait for all that was begun: here everything is done when it returns."""
        current("cuCtxSynchronize")

    @staticmethod
    def set_limit(limit: int, value: int) -> None:
        """Set a limit, of which only `get_limit` knows."""
        current("cuCtxSetLimit")
        _limits[int(limit)] = value

    @staticmethod
    def get_limit(limit: int) -> int:
        """Return a limit."""
        current("cuCtxGetLimit")
        return _limits.get(int(limit), 0)

    @staticmethod
    def set_cache_config(config: int) -> None:
        """Say what is preferred, which a simulated cache does not ask for."""
        _preferences["func_cache"] = int(config)

    @staticmethod
    def get_cache_config() -> Any:
        """Return what is preferred."""
        return NAMES["func_cache"](_preferences["func_cache"])

    @staticmethod
    def set_shared_config(config: int) -> None:
        """Say how wide banks should be, which they are not."""
        _preferences["shared_config"] = int(config)

    @staticmethod
    def get_shared_config() -> Any:
        """Return how wide banks should be."""
        return NAMES["shared_config"](_preferences["shared_config"])

    @staticmethod
    def enable_peer_access(peer: SimulatedContext, flags: int = 0) -> None:
        """Refuse: there is no other device."""
        raise DriverRuntimeError(f"cuCtxEnablePeerAccess failed: {NOT_SUPPORTED} - there is one device")

    @staticmethod
    def disable_peer_access(peer: SimulatedContext) -> None:
        """Refuse: there is no other device."""
        raise DriverRuntimeError(f"cuCtxDisablePeerAccess failed: {NOT_SUPPORTED} - there is one device")

    def get_api_version(self) -> int:
        """Return the version of the driver's interface."""
        return 3020


_limits = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048}
_preferences = {"func_cache": 0, "shared_config": 0}
_PRIMARY = next(_handles)


def _stack() -> list[SimulatedContext]:
    if not hasattr(_threads, "stack"):
        _threads.stack = []
    stack: list[SimulatedContext] = _threads.stack
    return stack


def _pushed(context: SimulatedContext) -> SimulatedContext:
    _stack().append(context)
    return context


def current(routine: str) -> SimulatedContext:
    """Return the current context of this thread; without one a routine of the driver fails."""
    if not _stack():
        raise wrong(routine, INVALID_CONTEXT, "this thread has no context: import pycuda.autoinit, or make one")
    return _stack()[-1]
