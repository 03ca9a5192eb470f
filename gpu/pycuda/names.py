"""Registry of the names in PyCUDA's compiled module; each file of this package registers its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

MODULE = "pycuda._driver"
NAMES: dict[str, Any] = {}

_Thing = TypeVar("_Thing")


def exported(name: str) -> Callable[[_Thing], _Thing]:
    """Return a decorator that registers a class or function under PyCUDA's name."""

    def register(thing: _Thing) -> _Thing:
        if isinstance(thing, type):
            thing.__name__ = thing.__qualname__ = name
            thing.__module__ = MODULE
        NAMES[name] = thing
        return thing

    return register
