"""Array functions without a kernel of their own: NumPy and SciPy compute them on the device's arrays."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from gpu.hosts.cupy.complex_numbers import find_replacement
from gpu.hosts.cupy.devices import defer

_names: dict[str, None] = {}
"""The forwarded functions that ran, in order of their first calls."""
_MAX_NAMES = 12
_UNREPORTED = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like array asarray asanyarray arange linspace reshape "  # noqa: SIM905
    "ravel transpose copy astype view squeeze expand_dims swapaxes moveaxis broadcast_to item tolist fill "
    "ascontiguousarray asfortranarray flatten result_type can_cast promote_types issubdtype ndim shape size "
    "min_scalar_type isscalar common_type shares_memory may_share_memory atleast_1d atleast_2d atleast_3d "
    "broadcast_arrays rollaxis tobytes set_printoptions get_printoptions array_repr array_str array2string".split()
)
"""Functions that create or rearrange arrays, or that describe them."""
_WRITERS = frozenset(
    (
        "copyto",
        "put",
        "place",
        "putmask",
        "fill_diagonal",
        "put_along_axis",
        "fill",
        "sort",
        "partition",
        "shuffle",
        "at",
    )
)
"""Functions that write to their arrays."""
_ACCEPTS_HOST_ARRAYS = frozenset(
    ("result_type", "can_cast", "ndim", "shape", "size", "isscalar", "min_scalar_type", "issubdtype")
)
_BOOLEANS = frozenset(("allclose", "array_equal", "array_equiv"))
"""Functions that return a bool in NumPy, and an array in CuPy."""
_CALLBACKS = (FunctionType, MethodType, functools.partial)


_convert_result: list[Callable[[Any], Any]] = []
_convert_object: list[Callable[[Any], Any]] = []


def set_array_conversion(convert: Callable[[Any], Any]) -> None:
    """Set the function that returns an array or a scalar of NumPy as a device array."""
    _convert_result[:] = [convert]


def set_object_conversion(convert: Callable[[Any], Any]) -> None:
    """Set the function that returns an object of NumPy or SciPy as one that exchanges device arrays."""
    _convert_object[:] = [convert]


def format_forwarded_functions() -> str:
    """Return a line with the names of the functions that NumPy and SciPy computed; "" if there are none."""
    if not _names:
        return ""
    names = list(_names)
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"lockstep: NumPy and SciPy computed, without kernels and checks: {', '.join(names[:_MAX_NAMES])}{more}."


def _note(name: str) -> None:
    if name.rpartition(".")[2] not in _UNREPORTED:
        _names.setdefault(name)


def to_host(value: Any, *, written: bool = False) -> Any:
    """Return a value with device arrays replaced by NumPy arrays over the same memory.

    Parameters
    ----------
    value : object
        Lists, tuples and dictionaries are searched. Functions of the script get and return device arrays.
    written : bool
        Whether the caller writes to the arrays.
    """
    if hasattr(value, "view_host"):
        if written and hasattr(value, "mark_written"):
            value.mark_written()
        return value.view_host()
    if isinstance(value, _CALLBACKS):
        return lambda *arguments, **options: to_host(value(*map(to_device, arguments), **options))
    if type(value) in (list, tuple):
        return type(value)(to_host(each, written=written) for each in value)
    if type(value) is dict:
        return {key: to_host(each, written=written) for key, each in value.items()}
    return value


def to_device(value: Any) -> Any:
    """Return a result of NumPy with NumPy's arrays and scalars replaced by device arrays."""
    if isinstance(value, np.ndarray | np.generic):
        return _convert_result[0](value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(each) for each in value))
    if type(value) in (list, tuple):
        return type(value)(to_device(each) for each in value)
    return _convert_object[0](value)


def reject_host_arrays(values: Any) -> None:
    """Raise TypeError, as CuPy does, if an argument is an array of NumPy.

    Parameters
    ----------
    values : iterable of object
    """
    for value in values:
        if type(value) is np.ndarray:
            raise TypeError(f"Unsupported type {type(value)}")


def call_on_host(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy with device arrays; return its result as device arrays.

    Parameters
    ----------
    name : str
        The name for the report.
    function : callable
    arguments : tuple
    options : mapping
        Keyword arguments; arrays in `out` are returned themselves.
    """
    short = name.rpartition(".")[2]
    if short not in _ACCEPTS_HOST_ARRAYS:
        reject_host_arrays((*arguments, options.get("out")))
    _note(name)
    writes = short in _WRITERS
    host_options = {key: to_host(value, written=writes or key == "out") for key, value in options.items()}
    for key in ("stream", "blocking", "plan"):
        host_options.pop(key, None)
    host_arguments = tuple(to_host(each, written=writes) for each in arguments)
    replacement = None if host_options else find_replacement(function, host_arguments)
    compute = functools.partial(replacement or function, *host_arguments, **host_options)
    out = options.get("out")
    if out is not None:
        if not defer(compute):
            compute()
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if writes and defer(compute):
        return None
    result = compute()
    found = to_device(np.bool_(result)) if short in _BOOLEANS else to_device(result)
    defer(lambda: _store(found, compute()))
    return found


def _store(target: Any, value: Any) -> None:
    """Copy a function's result to the arrays of an earlier result."""
    if isinstance(target, tuple | list):
        for each, part in zip(target, value, strict=True):
            _store(each, part)
    elif isinstance(to_host(target), np.ndarray):
        to_host(target, written=True)[...] = value


class ForwardedFunction:
    """A function of NumPy or SciPy that takes and returns device arrays.

    Parameters
    ----------
    name : str
        CuPy's name of it, such as "linalg.norm".
    function : callable
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, ("__doc__",), ())
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]
        self.__module__ = "cupy"
        self._name, self._function = name, function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return call_on_host(self._name, self._function, arguments, options)

    def view_host(self) -> Callable[..., Any]:
        """Return the host's function, for functions that take it as an argument."""
        return self._function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attribute = getattr(self._function, name)
        return ForwardedFunction(f"{self._name}.{name}", attribute) if callable(attribute) else attribute

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return getattr, (importlib.import_module("cupy"), self.__name__)

    def __repr__(self) -> str:
        return f"<function cupy.{self._name}, computed by NumPy>"
