"""The simulated device, streams and events; all work is complete when a call returns."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from gpu.hosts.cupy.faults import CUDARuntimeError
from gpu.hosts.cupy.names import named
from gpu.hosts.driver.attributes import DEVICE_ATTRIBUTES, VALUE_BY_NUMBER
from gpu.hosts.driver.memory import free_memory, total_memory

_PROCESSOR_NAMES = ("MultiProcessorCount", "MaxThreadsPerMultiProcessor")
"""The attributes that CUDA spells with a capital P."""
_handles = itertools.count(0x2000, 0x10)


@named("cupy.cuda.device.Device")
class CupyDevice:
    """The only device, with number 0.

    Parameters
    ----------
    device : int or CupyDevice or None
    """

    def __init__(self, device: Any = None) -> None:
        self.id = int(device) if device is not None else 0
        if self.id > 0 or self.id < -1:
            raise CUDARuntimeError(
                f"cudaErrorInvalidDevice: invalid device ordinal - the simulator is device 0; "
                f"there is no device {self.id}"
            )

    def __int__(self) -> int:
        return self.id

    __index__ = __int__

    def __enter__(self) -> CupyDevice:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CupyDevice)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        """Do nothing: the device is current."""

    def synchronize(self) -> None:
        """Do nothing: all work is complete."""

    @property
    def attributes(self) -> dict[str, int]:
        """The device's attributes, by CuPy's names."""
        return {attribute_name(name): VALUE_BY_NUMBER[number] for name, (number, _) in DEVICE_ATTRIBUTES.items()}

    @property
    def compute_capability(self) -> str:
        """The compute capability without a point: "90"."""
        return get_compute_capability()

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total memory in bytes."""
        return free_memory(), total_memory()

    @property
    def pci_bus_id(self) -> str:
        """A placeholder of the position on the bus."""
        return "0000:00:00.0"


def attribute_name(name: str) -> str:
    """Return CuPy's name of an attribute: "WarpSize" for "WARP_SIZE"."""
    joined = "".join(word.capitalize() for word in name.split("_"))
    return {each.replace("Processor", "processor"): each for each in _PROCESSOR_NAMES}.get(joined, joined)


def get_compute_capability() -> str:
    """Return the compute capability without a point: "90"."""
    return "".join(
        str(VALUE_BY_NUMBER[DEVICE_ATTRIBUTES[f"COMPUTE_CAPABILITY_{each}"][0]]) for each in ("MAJOR", "MINOR")
    )


@named("cupy.cuda.stream.Event")
class CupyEvent:
    """Point in time. Differences are times of this CPU, not of a GPU."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.ptr = next(_handles)
        self._has_time = not disable_timing
        self._recorded_s: float | None = None
        self.graph: Graph | None = None

    @property
    def done(self) -> bool:
        """Whether the event is complete."""
        return True

    def record(self, stream: Any = None) -> None:
        """Record the current time, and the graph that the stream captures."""
        self._recorded_s = time.perf_counter()
        self.graph = _graphs.get((stream or get_current_stream()).ptr)

    def synchronize(self) -> None:
        """Do nothing: the event is complete."""

    def get_time(self) -> float:
        """Return the recorded time in seconds."""
        if self._recorded_s is None or not self._has_time:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        return self._recorded_s


def get_elapsed_time(start_event: CupyEvent, end_event: CupyEvent) -> float:
    """Return the milliseconds between two events, on this CPU.

    Raises
    ------
    CUDARuntimeError
        If an event was not recorded.
    """
    return 1e3 * (end_event.get_time() - start_event.get_time())


@named("cupy.cuda.graph.Graph")
class Graph:
    """The work that a stream captured, in its order."""

    def __init__(self) -> None:
        self.operations: list[Callable[[], None]] = []

    def launch(self, stream: Any = None) -> None:
        """Run the work, or add it to the graph that the stream captures."""
        if not defer(self._run, stream):
            self._run()

    def _run(self) -> None:
        for operation in self.operations:
            operation()

    def upload(self, stream: Any = None) -> None:
        """Do nothing: there is no device."""


_graphs: dict[int, Graph] = {}
"""The graphs of the streams that capture, by the streams' handles."""


def defer(operation: Callable[[], None], stream: Any = None) -> bool:
    """Add an operation to the graph that a stream captures; return whether it captures one.

    Parameters
    ----------
    stream : CupyStream or None
        None for the current stream.
    """
    if not _graphs:
        return False
    graph = _graphs.get((stream if stream is not None else get_current_stream()).ptr)
    if graph is not None:
        graph.operations.append(operation)
    return graph is not None


@named("cupy.cuda.stream.Stream")
class CupyStream:
    """Queue of work, which is always empty."""

    null: CupyStream
    ptds: CupyStream

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        self.ptr = 0 if null else 2 if ptds else next(_handles)
        self.non_blocking, self.device_id, self.priority = non_blocking, 0, priority or 0

    def __enter__(self) -> CupyStream:
        _current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _current.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CupyStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    @property
    def done(self) -> bool:
        """Whether all work is complete."""
        return True

    def use(self) -> CupyStream:
        """Make it the current stream."""
        _current[-1] = self
        return self

    def synchronize(self) -> None:
        """Do nothing: all work is complete."""

    def begin_capture(self, mode: int | None = None) -> None:
        """Add the stream's work to a new graph, from now on, instead of running it.

        Raises
        ------
        RuntimeError
            If it is the default stream.
        CUDARuntimeError
            If the stream captures already.
        """
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self.ptr in _graphs:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        _graphs[self.ptr] = Graph()

    def end_capture(self) -> Graph:
        """Return the graph of the work since `begin_capture`, with that of streams that waited for it.

        Raises
        ------
        CUDARuntimeError
            If the stream does not capture.
        """
        if self.ptr not in _graphs:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        graph = _graphs[self.ptr]
        for handle in [handle for handle, each in _graphs.items() if each is graph]:
            del _graphs[handle]
        return graph

    def is_capturing(self) -> bool:
        """Return whether the stream's work is added to a graph."""
        return self.ptr in _graphs

    def record(self, event: CupyEvent | None = None) -> CupyEvent:
        """Record an event."""
        event = event or CupyEvent()
        event.record(self)
        return event

    def wait_event(self, event: CupyEvent) -> None:
        """Join the graph that the event's stream captures; otherwise do nothing, as the event is complete."""
        if event.graph is not None and event.graph in _graphs.values():
            _graphs[self.ptr] = event.graph

    def add_callback(self, callback: Any, arg: Any) -> None:
        """Call the function."""
        callback(self, 0, arg)

    def launch_host_func(self, callback: Any, arg: Any) -> None:
        """Call the function."""
        if not defer(lambda: callback(arg), self):
            callback(arg)


@named("cupy.cuda.stream.ExternalStream")
class ExternalStream(CupyStream):
    """Stream that something else created."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr = ptr


CupyStream.null = CupyStream(null=True)
CupyStream.ptds = CupyStream(ptds=True)
_current = [CupyStream.null]


def get_current_stream(device_id: int = -1) -> CupyStream:
    """Return the current stream."""
    return _current[-1]
