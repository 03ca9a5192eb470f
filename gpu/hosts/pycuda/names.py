"""Registry of the names in PyCUDA's compiled module; each file of this package registers its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

MODULE = "pycuda._driver"
NAMES: dict[str, Any] = {}

_Exported = TypeVar("_Exported")


def export(name: str) -> Callable[[_Exported], _Exported]:
    """Return a decorator that registers a class or function under PyCUDA's name."""

    def register(exported_object: _Exported) -> _Exported:
        if isinstance(exported_object, type):
            exported_object.__name__ = exported_object.__qualname__ = name
            exported_object.__module__ = MODULE
        NAMES[name] = exported_object
        return exported_object

    return register
