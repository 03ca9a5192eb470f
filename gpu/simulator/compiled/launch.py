"""Launches of compiled kernels: the blocks of a grid are shared out to threads of this process."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import LaunchError, SourcePosition
from gpu.schedules import ROUND_ROBIN
from gpu.simulator import ir
from gpu.simulator.compiled import native
from gpu.simulator.compiled.assembly import NotCompiled
from gpu.simulator.compiled.children import WORD, LaunchRecords, launch_sites
from gpu.simulator.compiled.intervals import MAXIMUM_THREADS_ALONG_X
from gpu.simulator.compiled.kernel import CompiledText, compile_kernel
from gpu.simulator.compiled.memory import FAILED, HANDLES, LAUNCHED, SHARED_STRIDE, ThreadFailure
from gpu.simulator.executor.batches import cluster_unit, reachable, waits
from gpu.simulator.executor.child import ChildLaunch
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.schedule import order_of
from gpu.simulator.types import Pointer, Scalar

Array = npt.NDArray[Any]

_ALIGNMENT = 64
_PIECES_A_WORKER = 8


class CompiledKernel:
    """A kernel that runs as machine code, compiled for each shape of block when it is first launched with it.

    Parameters
    ----------
    function : ir.Function
    variables : mapping of str to array
        The bytes of the module's `__constant__` and `__device__` variables.
    constants : frozenset of str
        The names of those that are `__constant__`.
    kernels : dict of int to CompiledKernel
        Those that are launched in one tree, by the identity of their functions; None for a tree of its own.
    """

    def __init__(
        self,
        function: ir.Function,
        variables: Mapping[str, Array],
        constants: frozenset[str],
        kernels: dict[int, CompiledKernel] | None = None,
    ) -> None:
        self._function = function
        self._variables = variables
        self._constants = constants
        self._kernels = {id(function): self} if kernels is None else kernels
        self._sites = launch_sites(function)
        self._shapes: dict[tuple[int, ...], _LaunchShape] = {}
        self._in_order = any(waits(called.body) for called in reachable(function))

    def prepare(self, grid: Sequence[int], block: Sequence[int], on_compile: Callable[[], None] = lambda: None) -> None:
        """Compile the kernel for a shape of block, where that has not been done yet.

        Parameters
        ----------
        grid, block : sequence of int
        on_compile : callable
            Called before machine code is made, which takes up to seconds; not where it is in the cache.

        Raises
        ------
        NotCompiled
            Where the kernel does what this executor leaves to the other one.
        """
        if grid[0] * block[0] > MAXIMUM_THREADS_ALONG_X:
            raise NotCompiled("a grid of so many blocks")
        self._shape(tuple(block), on_compile)
        self._prepare_children(tuple(block), on_compile, {id(self._function)})

    def _prepare_children(self, block: tuple[int, ...], on_compile: Callable[[], None], seen: set[int]) -> None:
        """Compile what is launched from here as well, as if in blocks of this shape: later it is too late to refuse."""
        for site in self._sites:
            if id(site.function) not in seen:
                seen.add(id(site.function))
                child = self._kernel(site.function)
                child._shape(block, on_compile)  # noqa: SLF001
                child._prepare_children(block, on_compile, seen)  # noqa: SLF001

    def _kernel(self, function: ir.Function) -> CompiledKernel:
        if id(function) not in self._kernels:
            child = CompiledKernel(function, self._variables, self._constants, self._kernels)
            self._kernels[id(function)] = child
        return self._kernels[id(function)]

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Array | np.generic | None],
        *,
        shared_bytes: int = 0,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run the kernel; parameters as those of `SimulatedKernel.launch`. `blocks` that are named run in order.

        Raises
        ------
        NotCompiled
            Before anything has run: where the kernel does what this executor leaves to the other one.
        LaunchError
            Where a thread finds an assertion false, or waits for ever. Other blocks may have run to their end by then.
        """
        self.prepare(grid, block)

        def run_child(child: ChildLaunch, depth: int) -> None:
            kernel = self._kernel(child.function)
            try:
                SimulatedKernel(child.function, LockstepCompiler(), {}).check(
                    child.grid, child.block, child.shared_bytes
                )
                kernel.prepare(child.grid, child.block)
            except (LaunchError, NotCompiled) as error:
                raise child.fails(str(error)) from None
            words, kept = _words_of_child(child)
            kernel._run(tree, depth, child.grid, child.block, words, child.shared_bytes)  # noqa: SLF001
            del kept

        tree = HostLaunch(run_child, lambda batch: None, None, None, order_of(ROUND_ROBIN))
        words, kept = self._words(arguments)
        self._run(tree, 0, grid, block, words, shared_bytes, on_progress, blocks)
        del kept

    def _run(
        self,
        tree: HostLaunch,
        depth: int,
        grid: Sequence[int],
        block: Sequence[int],
        words: Sequence[bytes],
        shared_bytes: int,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run a grid that is `depth` launches away from the host, or blocks of it, and what it launches."""
        shape = self._shape(tuple(block))
        failed, launched = np.zeros(7, np.int64), LaunchRecords(self._sites)
        own = {
            FAILED: failed,
            SHARED_STRIDE: np.array([shape.shared_stride(shared_bytes)]),
            HANDLES: np.zeros(1, np.int64),
            LAUNCHED: launched.taker,
        }
        memories = {**self._variables, **own}
        addresses = [_address(memories[name]) for name in shape.variables]
        packed = np.frombuffer(b"".join([*words, *addresses, bytes(WORD)]), np.uint8)

        def memory() -> tuple[Array, Array]:
            made = shape.memory(shared_bytes)
            launched.owned(*made)
            return made

        chosen = range(prod(grid)) if blocks is None else blocks
        if prod(shape.cluster) > 1:
            # Clusters are what is counted then.
            unit, of = cluster_unit(grid, shape.cluster), prod(shape.cluster)
            chosen = range(chosen.start // unit * unit // of, -(-chosen.stop // unit) * unit // of)
        if self._in_order or blocks is not None or min(_workers(), len(chosen)) == 1:
            scratch, shared = memory()
            piece = max(-(-len(chosen) // _PIECES_A_WORKER), 1)
            for first in chosen[::piece]:
                count = min(piece, chosen.stop - first)
                shape.code.run(scratch.ctypes.data, shared.ctypes.data, packed.ctypes.data, first, count, *grid)
                if failed[0]:
                    break
                on_progress((first + count - chosen.start) / len(chosen))
        else:
            self._share_out(shape, memory, packed, chosen, grid, on_progress)
        if failed[0]:
            raise _failed(shape.failures[failed[0] - 1], failed[1:4], failed[4:7])
        tree.run(list(launched.children(grid)), depth + 1)

    def _share_out(
        self,
        shape: _LaunchShape,
        memory: Callable[[], tuple[Array, Array]],
        packed: Array,
        chosen: range,
        grid: Sequence[int],
        on_progress: Callable[[float], None],
    ) -> None:
        """Let workers take pieces of the grid until none is left; this thread is one, and tells how far it is."""
        workers = min(_workers(), len(chosen))
        piece = -(-len(chosen) // (workers * _PIECES_A_WORKER))
        not_taken = np.array([chosen.start], np.int64)
        take = native.piece_taker().take
        memories = [memory() for _ in range(workers)]

        def work(scratch: Array, shared: Array, pieces: int) -> None:
            own = (shape.code.address, scratch.ctypes.data, shared.ctypes.data, packed.ctypes.data)
            take(*own, not_taken.ctypes.data, chosen.stop, piece, pieces, *grid)

        others = [_pool().submit(work, *own, len(chosen)) for own in memories[1:]]
        try:
            while not_taken[0] < chosen.stop:
                work(*memories[0], 1)
                on_progress((min(int(not_taken[0]), chosen.stop) - chosen.start) / len(chosen))
        finally:
            not_taken[0] = chosen.stop  # where this thread was interrupted, the others need not go on
            for other in others:
                other.result()
        on_progress(1.0)

    def _shape(self, block: tuple[int, ...], on_compile: Callable[[], None] = lambda: None) -> _LaunchShape:
        if block not in self._shapes:
            self._shapes[block] = _LaunchShape(self._function, block, self._constants, on_compile)
        return self._shapes[block]

    def _words(self, arguments: Sequence[Array | np.generic | None]) -> tuple[list[bytes], list[Array]]:
        """Return 8 bytes for each argument, and what they point to."""
        words: list[bytes] = []
        kept: list[Array] = []
        for argument, (name, type) in zip(arguments, self._function.parameters, strict=True):
            if argument is None:
                if not isinstance(type, Pointer):
                    raise LaunchError(f"{self._function.name}: {name} is missing.")
                words.append(bytes(WORD))
            elif isinstance(type, Pointer):
                assert isinstance(argument, np.ndarray)
                words.append(_address(argument))
            elif isinstance(type, Scalar) or type.size <= WORD:
                words.append(argument.tobytes().ljust(WORD, b"\0"))
            else:
                kept.append(np.frombuffer(argument.tobytes(), np.uint8))
                words.append(_address(kept[-1]))
        return words, kept


class _LaunchShape:
    """A kernel for one shape of block, made now or fetched from the cache."""

    def __init__(
        self,
        function: ir.Function,
        block: tuple[int, ...],
        constants: frozenset[str],
        on_compile: Callable[[], None],
    ) -> None:
        key = native.key_of(function, block, sorted(constants))
        found = native.kept(key)
        if found is None:
            on_compile()
            compiled = compile_kernel(function, block, constants, function.cluster or (1, 1, 1))
            found = _about(compiled), native.compile_text(compiled.text)
            native.keep(key, *found)
        about, code = found
        self.code = native.NativeCode(code)
        self.variables: tuple[str, ...] = tuple(about["variables"])
        self.failures = [
            ThreadFailure(**{**failure, "position": SourcePosition(*failure["position"])})
            for failure in about["failures"]
        ]
        self._scratch: int = about["scratch_bytes"]
        self._shared: int = about["shared_bytes"]
        self.cluster = function.cluster or (1, 1, 1)

    def shared_stride(self, dynamic_bytes: int) -> int:
        """Return how far the shared memories of a cluster's blocks are apart."""
        return -(-(self._shared + dynamic_bytes) // _ALIGNMENT) * _ALIGNMENT

    def memory(self, dynamic_bytes: int) -> tuple[Array, Array]:
        """Return the memory that one worker needs."""
        return _aligned(self._scratch), _aligned(self.shared_stride(dynamic_bytes) * prod(self.cluster))


def _about(compiled: CompiledText) -> dict[str, Any]:
    """Return what a launch needs to know besides the code, as JSON has it."""
    return {
        "scratch_bytes": compiled.scratch_bytes,
        "shared_bytes": compiled.shared_bytes,
        "variables": list(compiled.variables),
        "failures": [
            {**vars(failure), "position": dataclasses.astuple(failure.position)} for failure in compiled.failures
        ],
    }


def _words_of_child(child: ChildLaunch) -> tuple[list[bytes], list[Array]]:
    """Return 8 bytes for each argument of a child, and what they point to."""
    words, kept = [], []
    for given in child.arguments:
        kept.append(np.frombuffer(given, np.uint8))
        words.append(given if len(given) == WORD else _address(kept[-1]))
    return words, kept


def _failed(failure: ThreadFailure, thread: Array, block: Array) -> LaunchError:
    who = f"thread ({','.join(map(str, thread))}) in block ({','.join(map(str, block))})"
    return LaunchError(
        f"{failure.position}: {who} {failure.what}.",
        position=failure.position,
        advice=failure.advice,
        kind=failure.kind,
        thread=who,
    )


def _aligned(size: int) -> Array:
    whole = np.zeros(size + 2 * _ALIGNMENT, np.uint8)
    return whole[-whole.ctypes.data % _ALIGNMENT :]


def _address(array: Array) -> bytes:
    return int(array.ctypes.data).to_bytes(WORD, sys.byteorder)


@cache
def _workers() -> int:
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_workers(), thread_name_prefix="blocks")
