"""Array functions without a kernel of their own: NumPy and SciPy compute them on the device's arrays."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from gpu.hosts.cupy.complex_numbers import find_replacement

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
    ("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "fill", "sort", "partition", "shuffle")
)
"""Functions that write to their arrays."""
_ACCEPTS_HOST_ARRAYS = frozenset(
    ("result_type", "can_cast", "ndim", "shape", "size", "isscalar", "min_scalar_type", "issubdtype")
)
_BOOLEANS = frozenset(("allclose", "array_equal", "array_equiv"))
"""Functions that return a bool in NumPy, and an array in CuPy."""


_convert_result: list[Callable[[Any], Any]] = []


def set_array_conversion(convert: Callable[[Any], Any]) -> None:
    """Set the function that returns an array or a scalar of NumPy as a device array."""
    _convert_result[:] = [convert]


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
        Lists, tuples and dictionaries are searched.
    written : bool
        Whether the caller writes to the arrays.
    """
    if hasattr(value, "view_host"):
        if written:
            value.mark_written()
        return value.view_host()
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
    return value


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
    for key in ("stream", "blocking"):
        host_options.pop(key, None)
    host_arguments = tuple(to_host(each, written=writes) for each in arguments)
    replacement = None if host_options else find_replacement(function, host_arguments)
    result = (replacement or function)(*host_arguments, **host_options)
    out = options.get("out")
    if out is not None:
        return out[0] if isinstance(out, tuple) and len(out) == 1 else out
    return to_device(np.bool_(result)) if short in _BOOLEANS else to_device(result)


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


class _ForwardedIndexer:
    """An object of NumPy that is indexed, such as `mgrid`, with device arrays."""

    def __init__(self, indexer: Any) -> None:
        self._indexer = indexer

    def __getitem__(self, key: Any) -> Any:
        return to_device(self._indexer[to_host(key)])


def _forward(path: str, value: Any) -> Any:
    """Return what CuPy has in place of an object of NumPy; None for classes that work on the host only."""
    if isinstance(value, type):
        is_shared = issubclass(value, (np.generic, np.dtype, np.finfo, np.iinfo, np.errstate, np.broadcast, Exception))
        return value if is_shared or value is np.ufunc else None
    if callable(value):
        return ForwardedFunction(path, value)
    is_indexer = hasattr(value, "__getitem__") and not isinstance(value, np.ndarray | str | list | tuple | dict)
    return _ForwardedIndexer(value) if is_indexer else value


class ForwardingModule(ModuleType):
    """A module with own names, and further ones of a module of NumPy or SciPy.

    Parameters
    ----------
    name : str
        "cupy", "cupy.linalg" ...
    source : module or None
        Further names; None for none.
    own : mapping
        The module's own names.
    """

    def __init__(self, name: str, source: ModuleType | None = None, own: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, f"Lockstep's replacement of {name}.")
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)  # for importlib.util.find_spec
        self.__dict__["_source"] = source
        self.__dict__.update(own or {})

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__["_source"]
        value = None if name.startswith("_") else getattr(source, name, None)
        if isinstance(value, ModuleType):
            value = sys.modules.get(f"{self.__name__}.{name}")
            if value is None and hasattr(source, "__path__") and source.__name__.startswith("scipy"):
                value = importlib.import_module(f"{self.__name__}.{name}")
        elif value is not None:
            value = _forward(f"{self.__name__}.{name}".partition(".")[2], value)
        if value is None:
            raise AttributeError(f"Lockstep's CuPy does not have {self.__name__}.{name}.")
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *(name for name in dir(self.__dict__["_source"]) if name[0] != "_")})
