"""CuPy's names of this package's classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def named(name: str) -> Callable[[_Class], _Class]:
    """Return a decorator that gives a class CuPy's module and name: "cupy.cuda.device.Device"."""

    def rename(cls: _Class) -> _Class:
        cls.__module__, _, cls.__name__ = name.rpartition(".")
        cls.__qualname__ = cls.__name__
        return cls

    return rename
