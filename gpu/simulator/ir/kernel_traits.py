"""How the threads of a kernel synchronize, as far as its code shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gpu.simulator.ir import nodes as ir
from gpu.simulator.ir.intrinsics import WARPGROUP_PRODUCT
from gpu.simulator.ir.value_uses import ValueUse, ValueUses
from gpu.simulator.ir.waits import (
    adds_zero,
    find_outermost_loops,
    has_strong_loop,
    has_wait_loop,
    repeats_itself,
    walk_with_calls,
)
from gpu.simulator.ir.walking import find_reachable_functions, walk


class KernelTraits:
    """What a kernel and the functions that it calls do to synchronize threads, and their shared memory."""

    def __init__(self, kernel: ir.Function) -> None:
        self.cluster = kernel.cluster or (1, 1, 1)
        self._functions = find_reachable_functions(kernel)
        self.syncs_grid = any(function.syncs_grid for function in self._functions)
        self.has_phases = any(function.has_phases for function in self._functions)

    @property
    def has_clusters(self) -> bool:
        """Whether clusters have several blocks."""
        return prod(self.cluster) > 1

    @property
    def has_separate_blocks(self) -> bool:
        """Whether a launch may run its blocks one after the other: there are no grid barriers and no clusters."""
        return not self.syncs_grid and not self.has_clusters

    @cached_property
    def shared_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each `__shared__` array of known size, by name."""
        arrays = (shared for function in self._functions for shared in function.shared)
        return {shared.name: shared.shape for shared in arrays if shared.shape}

    @cached_property
    def static_shared_bytes(self) -> int:
        """The size of all `__shared__` arrays of known size."""
        return sum({shared.key: shared.size for function in self._functions for shared in function.shared}.values())

    @cached_property
    def may_wait(self) -> bool:
        """Whether lanes may wait in a loop."""
        return any(has_strong_loop(function.body) for function in self._functions)

    @cached_property
    def has_wait_loops(self) -> bool:
        """Whether lanes wait in a loop for other threads."""
        return any(has_wait_loop(function.body) for function in self._functions)

    @cached_property
    def syncs_in_branches(self) -> bool:
        """Whether lanes of two branches may meet at `__syncwarp`."""
        return any(isinstance(node, ir.If) and syncs_in_branches(node) for node in self._walk())

    @cached_property
    def has_fences(self) -> bool:
        """Whether it has memory fences, or accesses that acquire or release."""
        return any(
            (isinstance(node, ir.Fence) and node.name.startswith("__threadfence"))
            or (isinstance(node, ir.Atomic | ir.Element) and node.order not in (None, "weak", "volatile", "relaxed"))
            for node in self._walk()
        )

    @cached_property
    def has_strong_writes(self) -> bool:
        """Whether it writes by strong accesses: all but atomic operations that also read."""
        return any(
            (isinstance(node, ir.Assign | ir.Update) and isinstance(node.place, ir.Element) and node.place.volatile)
            or (isinstance(node, ir.Atomic) and node.op == "exch" and not node.used)
            for node in self._walk()
        )

    @cached_property
    def tests_flags(self) -> bool:
        """Whether it tests values of strong reads that are not atomic."""
        return any(
            isinstance(node, ir.Load) and node.place.volatile and self._is_tested(node.place) for node in self._walk()
        )

    @cached_property
    def tests_values_in_loops(self) -> bool:
        """Whether it has a loop in which lanes may wait for others.

        Only a strong read can make them wait, if its value decides more than data.
        """
        return any(
            self._tests_value(node)
            for function in self._functions
            for loop in find_outermost_loops(function.body)
            for node in walk_with_calls(loop)
        )

    @cached_property
    def takes_turns(self) -> bool:
        """Whether a function updates memory atomically, and waits in a loop that repeats the same iteration.

        Threads that take several locks do so, and may wait for each other for ever.
        """
        return any(map(_takes_turns, self._functions))

    @cached_property
    def decides_writes(self) -> bool:
        """Whether it tests a strong read and writes the same place elsewhere, as lock-free code and locks do.

        A place is the same if its address is the same expression, or one of a function's parameters. Kernels without
        atomic operations and fences do not count, such as reductions with volatile variables.
        """
        if not self.has_fences and not any(isinstance(node, ir.Atomic) for node in self._walk()):
            return False
        tested: list[ir.Element] = []
        written: list[ir.Element] = []
        for node in self._walk():
            if isinstance(node, ir.Atomic):
                if node.used and self._is_tested(node.place):
                    tested.append(node.place)
                if not adds_zero(node):
                    written.append(node.place)
            elif isinstance(node, ir.Load) and node.place.volatile:
                if self._is_tested(node.place):
                    tested.append(node.place)
            elif isinstance(node, ir.Assign | ir.Update) and isinstance(node.place, ir.Element) and node.place.volatile:
                written.append(node.place)
        shapes = [(place, _describe_address(place)) for place in written]
        return any(place is not read and shape == _describe_address(read) for read in tested for place, shape in shapes)

    @cached_property
    def uses_async_proxy(self) -> bool:
        """Whether operations access memory through the asynchronous proxy, or through its mbarriers."""
        return self.has_phases or any(
            isinstance(node, ir.BulkCopy | ir.TensorCopy | ir.BarrierPhase)
            or (isinstance(node, ir.Warp) and node.op == WARPGROUP_PRODUCT)
            for node in self._walk()
        )

    @cached_property
    def _uses(self) -> ValueUses:
        uses = ValueUses()
        uses.analyze_kernel(self._functions)
        return uses

    def _walk(self) -> Iterable[Any]:
        return (node for function in self._functions for node in walk(function.body))

    def _is_tested(self, place: ir.Element) -> bool:
        return self._uses.find_use(place) > ValueUse.DATA

    def _tests_value(self, node: object) -> bool:
        if isinstance(node, ir.Atomic):
            return node.used and self._is_tested(node.place)
        return isinstance(node, ir.Element) and node.volatile and self._is_tested(node)


def _takes_turns(function: ir.Function) -> bool:
    nodes = list(walk(function.body))
    loops = (node for node in nodes if isinstance(node, ir.Loop) and repeats_itself(node))
    return any(isinstance(node, ir.Atomic) for loop in loops for node in walk(loop)) and any(
        isinstance(node, ir.Atomic) and not adds_zero(node) for node in nodes
    )


def _describe_address(node: Any) -> Any:
    """Return an address as nested tuples that are equal for equal expressions anywhere in the source."""
    if isinstance(node, ir.Element):
        return "place", _describe_address(node.pointer), _describe_address(node.index)
    if isinstance(node, tuple):
        return tuple(map(_describe_address, node))
    if not is_dataclass(node) or isinstance(node, ir.Function):
        return node if isinstance(node, str | int | None) else repr(node) if isinstance(node, np.generic) else id(node)
    parts = (getattr(node, each.name) for each in fields(node) if each.name != "position")
    return (type(node), *map(_describe_address, parts))


def syncs_in_branches(node: ir.If) -> bool:
    """Return whether both branches contain equally many `__syncwarp`, at which their lanes may meet."""
    return node.orelse is not None and 0 < _count_warp_syncs(node.then) == _count_warp_syncs(node.orelse)


def _count_warp_syncs(statement: ir.Statement) -> int:
    return sum(isinstance(node, ir.Fence) and node.name == "__syncwarp" for node in walk(statement))
