"""Modules that forward the names of modules of NumPy and SciPy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from gpu.hosts.cupy.forwarding import ForwardedFunction, to_device, to_host
from gpu.hosts.cupy.objects import forward_class

_SHARED = (np.generic, np.dtype, np.finfo, np.iinfo, np.errstate, np.broadcast, Exception)
"""Classes that CuPy shares with NumPy."""
_HOST_ONLY = (np.ndarray, tuple, dict, np.nditer, np.vectorize)
"""Classes that CuPy does not have."""


class _ForwardedIndexer:
    """An object of NumPy that is indexed, such as `mgrid`, with device arrays."""

    def __init__(self, indexer: Any) -> None:
        self._indexer = indexer

    def __getitem__(self, key: Any) -> Any:
        return to_device(self._indexer[to_host(key)])


def _forward(path: str, value: Any) -> Any:
    """Return what CuPy has in place of an object of NumPy; None for classes that work on the host only."""
    if isinstance(value, type):
        if value is np.ufunc or issubclass(value, _SHARED):
            return value
        return None if issubclass(value, _HOST_ONLY) else forward_class(value)
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
