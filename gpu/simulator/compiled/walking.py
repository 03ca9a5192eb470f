"""The nodes inside of an IR node."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.types import Type

LEAVES = ir.Function | SourcePosition | Type


def parts(node: Any) -> Iterator[Any]:
    """Yield the IR nodes directly inside of one."""
    for each in dataclasses.fields(node):
        value = getattr(node, each.name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, tuple):
                yield from (part for part in inner if dataclasses.is_dataclass(part))
            elif dataclasses.is_dataclass(inner) and not isinstance(inner, LEAVES):
                yield inner


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all inside of it, called functions left out."""
    yield node
    for part in parts(node):
        yield from walk(part)
