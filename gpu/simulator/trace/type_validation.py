"""Type validation of data read from files against the types that data classes declare."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np


def matches_type(value: object, kind: Any) -> bool:
    """Return whether a value and all its parts have a type: plain types, data classes, tuples, mappings."""
    if kind is Any:
        return isinstance(value, int | float | str | list | None)
    origin, arguments = get_origin(kind), get_args(kind)
    # An alias by a `type` statement, such as NumPy's NDArray since Python 3.12, is not a class; its value is.
    if hasattr(kind if origin is None else origin, "__value__"):
        return matches_type(value, (kind if origin is None else origin).__value__)
    if origin in (Union, types.UnionType):
        return any(matches_type(value, argument) for argument in arguments)
    if origin is tuple and arguments[1:] == (...,):
        return isinstance(value, tuple) and all(matches_type(each, arguments[0]) for each in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            matches_type(key, arguments[0]) and matches_type(each, arguments[1]) for key, each in value.items()
        )
    if origin is not None:
        return isinstance(value, origin)
    if kind in (int, float):  # a bool does not count as a number
        return type(value) is kind or (kind is float and type(value) is int)
    if not isinstance(value, kind):
        return False
    return isinstance(value, np.dtype | np.ndarray) or all(
        matches_type(getattr(value, name), each) for name, each in _field_types(kind) if not name.startswith("_")
    )


@cache
def _field_types(kind: type) -> tuple[tuple[str, Any], ...]:
    is_record = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")
    return tuple(get_type_hints(kind).items()) if is_record else ()
