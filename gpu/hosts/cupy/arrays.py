"""Device arrays: NumPy arrays whose elements have device addresses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.hosts.cupy.devices import CupyDevice, defer
from gpu.hosts.cupy.forwarding import (
    ForwardedFunction,
    call_on_host,
    reject_host_arrays,
    set_array_conversion,
    to_host,
)
from gpu.hosts.cupy.memory import Array, DeviceBytes, Memory, MemoryPointer, alloc, register_array, register_bytes
from gpu.hosts.cupy.names import named
from gpu.hosts.driver.memory import GlobalMemory, address_of, find_memory
from gpu.simulator.executor.state.memory import FlatMemory

_KINDS = "biufcV"
_MAX_ITEM_BYTES = {"f": 8, "c": 16}


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Return a dtype; raise ValueError, as CuPy does, if the device has no such type."""
    checked: np.dtype[Any] = np.dtype(dtype)
    if checked.kind not in _KINDS or checked.itemsize > _MAX_ITEM_BYTES.get(checked.kind, checked.itemsize):
        raise ValueError(f"Unsupported dtype {checked}")
    return checked


@named("cupy.ndarray")
class DeviceArray(np.ndarray):
    """Array in device memory.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : dtype
    memptr : MemoryPointer or None
        The address of the first element; None allocates memory.
    strides : sequence of int or None
        Bytes per axis.
    order : {"C", "F"}
    """

    _memory: FlatMemory | None

    def __new__(
        cls,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Any = None,
        order: str = "C",
    ) -> DeviceArray:
        checked = check_dtype(dtype)
        if memptr is None:
            extents = shape if isinstance(shape, tuple | list) else (shape,)
            size = int(np.prod([int(each) for each in extents], dtype=object)) * checked.itemsize
            memptr = alloc(size)
        memory, offset = _find_bytes(memptr)
        return _create_view(memory, shape, checked, strides, offset, order, cls)

    def __array_finalize__(self, parent: Any) -> None:
        self._memory = getattr(parent, "_memory", None)

    def __reduce__(self) -> Any:
        return from_host, (self.get(),)

    @property
    def memory(self) -> FlatMemory:
        """The allocation that contains the elements."""
        memory, own = self._memory, self._find_root()
        if memory is None or not (isinstance(own, DeviceBytes) and own.memory is not None and own.memory() is memory):
            self._memory = memory = _find_allocation(own)
        return memory

    def _find_root(self) -> Array:
        root: Any = self
        while isinstance(root.base, np.ndarray):
            root = root.base
            if isinstance(root, DeviceBytes) and root.memory is not None:
                break
        return root  # type: ignore[no-any-return]

    def view_host(self) -> Array:
        """Return a NumPy array over the same memory."""
        return self.view(np.ndarray)

    def mark_written(self) -> None:
        """Count the memory as initialized."""
        if self.size and isinstance(self.memory, GlobalMemory):
            self.memory.mark_written()

    @property
    def data(self) -> MemoryPointer:  # type: ignore[override]
        """The address of the first element."""
        if not self.nbytes:
            return MemoryPointer(Memory(0), 0)
        memory = self.memory
        offset = _host_address(self) - _host_address(memory.data)
        return MemoryPointer(Memory.wrap(memory), offset)

    @property
    def ptr(self) -> int:
        """The device address of the first element; 0 without elements."""
        if not self.nbytes:
            return 0
        return address_of(self.memory) + _host_address(self) - _host_address(self.memory.data)

    @property
    def device(self) -> Any:
        """The device."""
        return CupyDevice(0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.ptr, False),
            "version": 3,
            "stream": 1,
        }

    def get(self, stream: Any = None, order: str = "C", out: Array | None = None, blocking: bool = True) -> Array:
        """Return a copy on the host, or copy to `out`."""
        if out is None:
            return np.array(self.view_host(), order="C" if order == "A" and not self.flags.fnc else order)  # type: ignore[call-overload, no-any-return]
        if type(out) is not np.ndarray:
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(
                f"Shape or dtype mismatch. Expected {self.shape} {self.dtype}, got {out.shape} {out.dtype}"
            )
        out[...] = self.view_host()
        return out

    def set(self, arr: Array, stream: Any = None) -> None:
        """Copy an array of the host to the device."""
        if type(arr) is not np.ndarray:
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        self[...] = from_host(arr)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return from_result(self.view_host()[key])
        found = self.view_host()[to_host(key)]
        if isinstance(found, np.ndarray) and self.dtype.kind != "V":
            return from_result(found)
        # A single element is a view without axes, not a scalar of the host.
        return from_result(self.view_host()[(*(key if isinstance(key, tuple) else (key,)), ...)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.mark_written()
        if type(value) is np.ndarray and value.ndim and key is not Ellipsis and key != slice(None):
            reject_host_arrays((value,))
        if not defer(lambda: self.view_host().__setitem__(to_host(key), to_host(value))):
            self.view_host()[to_host(key)] = to_host(value)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[index] for index in range(len(self)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        out = options.get("out")
        if out is not None and any(each is not None and not isinstance(each, DeviceArray) for each in out):
            raise TypeError("return arrays must be of type cupy.ndarray")
        if method == "at":
            inputs[0].mark_written()
        return call_on_host(name, ufunc if method == "__call__" else getattr(ufunc, method), inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_on_host(func.__name__, func, args, kwargs)

    def __repr__(self) -> str:
        return repr(self.view_host())

    def __str__(self) -> str:
        return str(self.view_host())

    def __format__(self, spec: str) -> str:
        return format(self.view_host()[()] if not self.ndim else self.view_host(), spec)

    def reduced_view(self, dtype: Any = None) -> DeviceArray:
        """Return the array: the simulator does not merge axes."""
        return self

    def scatter_add(self, slices: Any, value: Any) -> None:
        """Add values at indices, which may repeat."""
        self.mark_written()
        np.add.at(self.view_host(), to_host(slices), to_host(value))

    def toDlpack(self) -> Any:  # noqa: N802
        """Return a view, which `from_dlpack` of all libraries takes; to them it is memory of the host."""
        return self[...]


def _forward_methods() -> None:
    """Let NumPy's methods take and return device arrays."""
    own = set(vars(DeviceArray))
    for name in dir(np.ndarray):
        method = getattr(np.ndarray, name)
        if name in own or name.startswith("_") or not callable(method) or name in ("view", "tofile", "dump", "dumps"):
            continue
        setattr(DeviceArray, name, ForwardedFunction(name, method))


_forward_methods()


def _view(self: DeviceArray, dtype: Any = None, type: Any = None) -> Any:
    """Return a view with another dtype, or, for NumPy's own use, another class."""
    if dtype is np.ndarray or type is not None:
        return np.ndarray.view(self, dtype if dtype is not None else type)
    return self[...] if dtype is None else from_result(self.view_host().view(check_dtype(dtype)))


DeviceArray.view = _view  # type: ignore[method-assign, assignment]


def _host_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _find_bytes(pointer: MemoryPointer) -> tuple[FlatMemory, int]:
    if not pointer.ptr or not hasattr(pointer.mem, "memory"):
        return register_bytes(np.zeros(1, np.uint8)), 0
    if isinstance(pointer.mem.memory.data, DeviceBytes):
        return pointer.mem.memory, pointer.ptr - address_of(pointer.mem.memory)
    return find_memory(pointer.ptr, "cupy.ndarray")


def _create_view(
    memory: FlatMemory,
    shape: Any,
    dtype: np.dtype[Any],
    strides: Any = None,
    offset: int = 0,
    order: str = "C",
    cls: type[DeviceArray] = DeviceArray,
) -> DeviceArray:
    layout: Any = order
    array: DeviceArray = np.ndarray.__new__(cls, shape, dtype, memory.data, offset, strides, layout)
    array._memory = memory  # noqa: SLF001
    return array


def _find_allocation(root: Array) -> FlatMemory:
    """Return the allocation of an array that owns its bytes."""
    if isinstance(root, DeviceBytes) and root.memory is not None and (memory := root.memory()) is not None:
        return memory
    data = root.view(np.ndarray)
    flat = np.lib.stride_tricks.as_strided(data, (data.size,), (data.itemsize,)).view(np.uint8)
    memory = register_bytes(flat)
    if isinstance(root, DeviceBytes) and isinstance(memory.data, DeviceBytes):
        root.memory = memory.data.memory
    return memory


def from_result(value: npt.ArrayLike) -> Any:
    """Return a result of NumPy as a device array; a view of a device array stays one of the same memory.

    Raises
    ------
    ValueError
        If the device has no such type.
    """
    array = np.asarray(value)
    check_dtype(array.dtype)
    root: Any = array
    while isinstance(root.base, np.ndarray) and not (isinstance(root, DeviceBytes) and root.memory is not None):
        root = root.base
    if isinstance(root, DeviceBytes):
        view = array.view(DeviceArray)
        view._memory = _find_allocation(root)  # noqa: SLF001
        return view
    if not array.flags.forc or not array.flags.owndata:
        array = np.array(array, order="K", copy=True)
    if not array.size:
        return _create_view(register_bytes(np.zeros(1, np.uint8)), array.shape, array.dtype)
    flat = array.reshape(-1, order="A").view(np.uint8) if array.dtype.itemsize else np.zeros(1, np.uint8)
    return _create_view(register_array(flat), array.shape, array.dtype, array.strides)


set_array_conversion(from_result)


def from_host(value: npt.ArrayLike, dtype: Any = None, order: Any = "K") -> Any:
    """Return a new device array with the values of a host array or of nested sequences."""
    return from_result(np.array(to_host(value), dtype, order=order, copy=True))


def array(
    obj: Any, dtype: Any = None, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> DeviceArray:
    """Return a new device array; without `copy`, a device array itself if nothing needs to change."""
    obj = from_interface(obj)
    if isinstance(obj, DeviceArray) and not copy and obj.ndim >= ndmin and _has_layout(obj, dtype, order):
        return obj
    return from_result(np.array(to_host(obj), dtype, order=order or "K", copy=True, ndmin=ndmin))  # type: ignore[no-any-return]


def _has_layout(array: DeviceArray, dtype: Any, order: Any) -> bool:
    if dtype is not None and array.dtype != dtype:
        return False
    flags = array.flags
    return order not in ("C", "F") or bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, blocking: bool = False) -> DeviceArray:
    """Return a device array; the array itself if nothing needs to change."""
    return array(a, dtype, copy=False, order=order or "K")


def from_interface(value: Any) -> Any:
    """Return the device array behind an object with CUDA's array interface, and other objects themselves."""
    if isinstance(value, np.ndarray | np.generic):
        return value
    if hasattr(value, "__cupy_get_ndarray__"):
        return value.__cupy_get_ndarray__()
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return value
    dtype, shape, address = np.dtype(interface["typestr"]), interface["shape"], interface["data"][0]
    if not address:
        return DeviceArray(shape, dtype)
    memory, offset = find_memory(address, "__cuda_array_interface__")
    return _create_view(memory, shape, dtype, interface.get("strides"), offset)


def from_dlpack(array: Any) -> Any:
    """Return a device array on the memory of another one, or with a copy of the values of another library's array."""
    if isinstance(array, DeviceArray):
        return array.view()
    return from_result(np.from_dlpack(array).copy())


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Array | None = None, *, blocking: bool = True) -> Any:
    """Return a copy on the host."""
    a = from_interface(a)
    if isinstance(a, DeviceArray):
        return a.get(order=order, out=out)
    return assign_result(np.asarray(to_host(a), order=order), out)  # type: ignore[call-overload]


def assign_result(result: Any, out: Any) -> Any:
    """Return a result, or the array `out` after the result was stored there."""
    if out is None:
        return result
    out[...] = result
    return out


def empty(shape: Any, dtype: Any = float, order: str = "C") -> DeviceArray:
    """Return an uninitialized device array."""
    return DeviceArray(shape, dtype if dtype is not None else float, order=order)


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> DeviceArray:
    """Return an uninitialized device array with another's shape and dtype."""
    host = np.empty_like(to_host(prototype), dtype, order, shape=shape)  # type: ignore[call-overload]
    if not host.size:
        return from_result(host)  # type: ignore[no-any-return]
    pointer = alloc(host.nbytes)
    return DeviceArray(host.shape, host.dtype, pointer, host.strides)


def as_strided(x: DeviceArray, shape: Any = None, strides: Any = None) -> DeviceArray:
    """Return a view of an array with another shape and other strides.

    Parameters
    ----------
    shape, strides : sequence of int or None
        Elements and bytes per axis; None for the array's own.
    """
    return DeviceArray(x.shape if shape is None else shape, x.dtype, x.data, x.strides if strides is None else strides)


def get_array_module(*args: Any) -> Any:
    """Return `cupy` if an argument is a device array, else `numpy`."""
    return sys.modules["cupy"] if any(isinstance(each, DeviceArray) for each in args) else np
