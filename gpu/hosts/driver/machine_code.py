"""Unchecked launches as machine code, for kernels that receive all pointers as parameters.

Only the checked executor resolves pointers that are stored in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu.hosts.driver.memory import GlobalMemory
from gpu.simulator import ir
from gpu.simulator.compiled.children import find_launch_sites
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.ir.walking import find_reachable_functions, walk
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import Pointer, Scalar, Struct, Type, leaves


def try_launch(
    module: SimulatedModule,
    kernel: SimulatedKernel,
    name: str,
    extents: tuple[tuple[int, ...], tuple[int, ...]],
    values: Sequence[Any],
    shared_bytes: int,
    cluster: tuple[int, int, int] | None = None,
) -> bool:
    """Run a launch as machine code; return False, before anything has run, if that is not possible.

    Parameters
    ----------
    module : SimulatedModule
        The module of the kernel, which caches the machine code.
    kernel : SimulatedKernel
        The kernel, to check the launch.
    name : str
        The kernel's name in the module.
    extents : tuple of (tuple of int, tuple of int)
        Blocks of the grid and threads of a block, each along x, y and z.
    values : sequence
        The arguments: NumPy scalars and pointers into device memory.
    shared_bytes : int
        Dynamic shared memory per block.
    cluster : tuple of int or None
        Blocks of a cluster along x, y and z; None if the launch has no clusters.

    Raises
    ------
    LaunchError
        If the launch is invalid, or an assertion fails.
    """
    arrays = [_convert_argument(value) for value in values]
    if any(array is _INVALID for array in arrays) or any(
        map(_stores_pointers, _collect_child_kernels(kernel.function))
    ):
        return False
    kernel.check_launch(*extents, shared_bytes)
    compiled = module.compiled_kernel(name, cluster)
    try:
        compiled.prepare(*extents)
    except UnsupportedKernel:
        return False
    compiled.launch(*extents, arrays, shared_bytes=shared_bytes)
    return True


_INVALID = object()


def _convert_argument(value: Any) -> Any:
    """Return an argument for machine code; `_INVALID` for a pointer outside of its memory."""
    if not isinstance(value, PointerValue):
        return value
    memory = value.memory
    if isinstance(memory, FlatMemory) and type(memory) in (FlatMemory, GlobalMemory):  # textures have subclasses
        offset = int(value.offset)
        return memory.data[offset:] if 0 <= offset < memory.data.size else _INVALID
    return None if memory is None and int(value.offset) == 0 else _INVALID


def _collect_child_kernels(kernel: ir.Function) -> list[ir.Function]:
    """Return a kernel and all kernels that it launches, directly or indirectly."""
    kernels = [kernel]
    for each in kernels:
        kernels += [
            site.function for site in find_launch_sites(each) if not any(site.function is one for one in kernels)
        ]
    return kernels


def _stores_pointers(kernel: ir.Function) -> bool:
    if any(isinstance(type, Struct) and _has_pointers(type) for _, type in kernel.parameters):
        return True
    return any(_accesses_pointer(node) for function in find_reachable_functions(kernel) for node in walk(function.body))


def _accesses_pointer(node: Any) -> bool:
    """Return whether a node reads or writes a pointer in memory, or converts between pointer and integer."""
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
