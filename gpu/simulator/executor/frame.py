"""A running call: its variables, and how values of any type get into variables and memory and out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.simulator.executor.address import Address, as_one_access, from_number, merged
from gpu.simulator.executor.lanes import BlockBatch, Mask
from gpu.simulator.executor.memory import Site
from gpu.simulator.types import INT64, Pointer, Scalar

Leaves = tuple[tuple[int, Scalar | Pointer], ...]


class Frame:
    """The variables of one running call.

    `owners[slot]` is the mask under which a variable came to life: an assignment under the same mask needs no merge,
    since nobody else can see the variable.
    """

    __slots__ = ("batch", "continued", "depth", "globals", "kernel", "owners", "result", "returned", "values")

    def __init__(
        self, batch: BlockBatch, slots: int, kernel: Frame | None, variables: dict[str, Address], depth: int
    ) -> None:
        self.batch = batch
        self.values: list[Any] = [None] * slots
        self.owners: list[Mask | None] = [None] * slots
        self.kernel = kernel
        self.globals = variables
        self.depth = depth
        self.returned: Mask | None = None
        self.continued: Mask | None = None
        self.result: Any = None


Evaluator = Callable[[Frame, Mask], Any]


def assign_local(old: Any, new: Any, mask: Mask) -> Any:
    """Return a variable's value after an assignment in some lanes only."""
    if mask.full or old is None:
        return new
    if isinstance(new, tuple):
        return tuple(assign_local(before, after, mask) for before, after in zip(old, new, strict=True))
    if isinstance(new, Address):
        return merged(old, new, mask.bits)
    return np.where(mask.bits, new, old)


def load_value(
    frame: Frame, address: Address, parts: Leaves, mask: Mask, site: Site, vector: int = 0
) -> tuple[Any, ...]:
    """Return the leaves of a value in memory; `vector` is its size where it is loaded as a whole."""
    with as_one_access(frame.batch, address, vector, mask, site) as done:
        values = _load_leaves(frame, address, parts, mask, site)
        done(values)
    return values


def _load_leaves(frame: Frame, address: Address, parts: Leaves, mask: Mask, site: Site) -> tuple[Any, ...]:
    values = []
    for offset, leaf in parts:
        place = address.moved(offset, 1) if offset else address
        if isinstance(leaf, Pointer):
            values.append(from_number(place.load(frame.batch, None, INT64.dtype, mask, site)))
        else:
            values.append(place.load(frame.batch, None, leaf.dtype, mask, site))
    return tuple(values)


def store_value(
    frame: Frame, address: Address, parts: Leaves, value: Any, mask: Mask, site: Site, vector: int = 0
) -> None:
    """Write the leaves of a value to memory."""
    values = value if isinstance(value, tuple) else (value,)
    with as_one_access(frame.batch, address, vector, mask, site) as done:
        for (offset, leaf), part in zip(parts, values, strict=True):
            place = address.moved(offset, 1) if offset else address
            if isinstance(leaf, Pointer):
                place.store(frame.batch, None, INT64.dtype, part.number(), mask, site)
            else:
                place.store(frame.batch, None, leaf.dtype, part, mask, site)
        done(values)
