"""Launches as machine code, which checks nothing: of kernels that find their memory by their parameters alone.

Pointers that are kept in memory are numbers that only the checked executor follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu.driver.memory import GlobalMemory
from gpu.simulator import ir
from gpu.simulator.compiled.assembly import NotCompiled
from gpu.simulator.compiled.children import launch_sites
from gpu.simulator.compiled.walking import walk
from gpu.simulator.executor.batches import reachable
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.module import SimulatedModule
from gpu.simulator.types import Pointer, Scalar, Struct, Type, leaves


def ran(
    module: SimulatedModule,
    kernel: SimulatedKernel,
    name: str,
    extents: tuple[tuple[int, ...], tuple[int, ...]],
    values: Sequence[Any],
    shared_bytes: int,
    cluster: tuple[int, int, int] | None = None,
) -> bool:
    """Run a launch as machine code; return False, before anything has run, where that cannot be.

    Raises
    ------
    LaunchError
        It is no launch that a GPU takes, or a thread finds an assertion false.
    """
    arrays = [_plain(value) for value in values]
    if any(array is _NONE for array in arrays) or any(map(_keeps_pointers, _launched(kernel.function))):
        return False
    kernel.check(*extents, shared_bytes)
    compiled = module.compiled(name, cluster)
    try:
        compiled.prepare(*extents)
    except NotCompiled:
        return False
    compiled.launch(*extents, arrays, shared_bytes=shared_bytes)
    return True


_NONE = object()


def _plain(value: Any) -> Any:
    """Return what machine code takes for an argument; `_NONE` for a pointer that leads nowhere."""
    if not isinstance(value, PointerValue):
        return value
    memory = value.memory
    if isinstance(memory, FlatMemory) and type(memory) in (FlatMemory, GlobalMemory):  # of textures there is another
        offset = int(value.offset)
        return memory.data[offset:] if 0 <= offset < memory.data.size else _NONE
    return None if memory is None and int(value.offset) == 0 else _NONE


def _launched(kernel: ir.Function) -> list[ir.Function]:
    """Return a kernel, those that it launches, and so on."""
    found = [kernel]
    for each in found:
        found += [site.function for site in launch_sites(each) if not any(site.function is one for one in found)]
    return found


def _keeps_pointers(kernel: ir.Function) -> bool:
    if any(isinstance(type, Struct) and _has_pointers(type) for _, type in kernel.parameters):
        return True
    return any(_is_kept(node) for function in reachable(kernel) for node in walk(function.body))


def _is_kept(node: Any) -> bool:
    """Whether a node reads or writes a pointer in memory, or makes a number of one."""
    match node:
        case ir.Load():
            return _has_pointers(node.type)
        case ir.Assign(place=ir.Element() as place):
            return _has_pointers(place.type)
        case ir.Cast():
            return isinstance(node.type, Pointer) != isinstance(node.operand.type, Pointer)
    return isinstance(node, ir.IndirectCall | ir.HeapChange | ir.Texel)


def _has_pointers(type: Type) -> bool:
    if isinstance(type, Scalar):
        return False
    return isinstance(type, Pointer) or any(isinstance(leaf, Pointer) for _, leaf in leaves(type))
