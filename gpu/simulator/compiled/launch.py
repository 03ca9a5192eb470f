"""Launches of compiled kernels: the blocks of a grid are distributed over threads of this process."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.schedules import ROUND_ROBIN
from gpu.base.thread_names import format_sanitizer_name
from gpu.simulator import ir
from gpu.simulator.compiled import native_code
from gpu.simulator.compiled.analysis.intervals import MAXIMUM_THREADS_ALONG_X
from gpu.simulator.compiled.block.memory import (
    FAILURE_VARIABLE,
    HANDLE_COUNT_VARIABLE,
    LAUNCH_CALLBACK_VARIABLE,
    SHARED_STRIDE_VARIABLE,
    ThreadFailure,
)
from gpu.simulator.compiled.children import WORD_BYTES, LaunchRecords, find_launch_sites
from gpu.simulator.compiled.kernel import KernelText, compile_kernel
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.executor.children import HostLaunch
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.scheduling.execution_order import create_order
from gpu.simulator.executor.state.batches import compute_cluster_unit
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.textures import SimulatedTensorMap
from gpu.simulator.ir.waits import has_wait_loop
from gpu.simulator.ir.walking import find_reachable_functions
from gpu.simulator.types import Pointer, Scalar

Array = npt.NDArray[Any]

_ALIGNMENT = 64
_PIECES_PER_WORKER = 8


class _GridLaunch(NamedTuple):
    """A grid to run: its extents in blocks and in threads, the arguments, dynamic shared memory, and launch depth."""

    grid: Sequence[int]
    block: Sequence[int]
    words: Sequence[bytes]
    shared_bytes: int
    depth: int = 0


class CompiledKernel:
    """A kernel that runs as machine code, compiled for each shape of block at its first launch.

    Parameters
    ----------
    variables : mapping of str to array
        The bytes of the module's `__constant__` and `__device__` variables.
    constants : frozenset of str
        The names of the `__constant__` variables among them.
    kernels : dict of int to CompiledKernel
        The kernels of the same launch tree, by the identity of their functions; None starts a new tree.
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
        self._sites = find_launch_sites(function)
        self._shapes: dict[tuple[int, ...], _CompiledShape] = {}
        self._runs_in_order = any(has_wait_loop(callee.body) for callee in find_reachable_functions(function))

    def prepare(self, grid: Sequence[int], block: Sequence[int], on_compile: Callable[[], None] = lambda: None) -> None:
        """Compile the kernel for a shape of block, unless that has been done before.

        Parameters
        ----------
        on_compile : callable
            Called before compilation, which takes up to seconds; not called if the code is in the cache.

        Raises
        ------
        UnsupportedKernel
            The kernel uses something that this executor does not support.
        """
        if grid[0] * block[0] > MAXIMUM_THREADS_ALONG_X:
            raise UnsupportedKernel("a grid with too many threads along x")
        self._get_shape(tuple(block), on_compile)
        self._prepare_children(tuple(block), on_compile, {id(self._function)})

    def _prepare_children(self, block: tuple[int, ...], on_compile: Callable[[], None], visited: set[int]) -> None:
        """Compile the child kernels too, for the same shape of block: a launch in progress cannot refuse them."""
        for site in self._sites:
            if id(site.function) not in visited:
                visited.add(id(site.function))
                child = self._get_kernel(site.function)
                child._get_shape(block, on_compile)  # noqa: SLF001
                child._prepare_children(block, on_compile, visited)  # noqa: SLF001

    def _get_kernel(self, function: ir.Function) -> CompiledKernel:
        if id(function) not in self._kernels:
            child = CompiledKernel(function, self._variables, self._constants, self._kernels)
            self._kernels[id(function)] = child
        return self._kernels[id(function)]

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Array | SimulatedTensorMap | np.generic | None],
        *,
        shared_bytes: int = 0,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run the kernel.

        Parameters
        ----------
        grid, block : sequence of int
            Blocks of the grid and threads of a block, along x, y and z.
        arguments : sequence
            For a pointer: the one-dimensional uint8 array that is its memory, or None for null; for a scalar: a NumPy
            scalar; for a tensor map of 128 bytes: a SimulatedTensorMap.
        shared_bytes : int
            The size of the extern `__shared__` array, in bytes.
        on_progress : callable
            Called with the finished fraction of the grid.
        blocks : range or None
            The blocks to run, by number and in this order; None for all.

        Raises
        ------
        UnsupportedKernel
            The kernel uses something that this executor does not support; nothing has run.
        LaunchError
            A thread found an assertion false, or waits forever. Other blocks may have finished by then.
        """
        self.prepare(grid, block)

        def run_child(child: ChildLaunch, depth: int) -> None:
            kernel = self._get_kernel(child.function)
            try:
                SimulatedKernel(child.function, LockstepCompiler(), {}).check_launch(
                    child.grid, child.block, child.shared_bytes
                )
                kernel.prepare(child.grid, child.block)
            except (LaunchError, UnsupportedKernel) as error:
                raise child.build_error(str(error)) from None
            words, referenced_arrays = _child_words(child)
            kernel._run(tree, _GridLaunch(child.grid, child.block, words, child.shared_bytes, depth))  # noqa: SLF001
            del referenced_arrays

        tree = HostLaunch(run_child, lambda batch: None, None, None, create_order(ROUND_ROBIN))
        words, referenced_arrays = self._argument_words(arguments)
        self._run(tree, _GridLaunch(grid, block, words, shared_bytes), on_progress, blocks)
        del referenced_arrays

    def _run(
        self,
        tree: HostLaunch,
        launch: _GridLaunch,
        on_progress: Callable[[float], None] = lambda fraction: None,
        blocks: range | None = None,
    ) -> None:
        """Run a grid, or some of its blocks, and the kernels that it launches."""
        grid, block, words, shared_bytes, depth = launch
        shape = self._get_shape(tuple(block))
        failed, launched = np.zeros(7, np.int64), LaunchRecords(self._sites)
        runtime_variables = {
            FAILURE_VARIABLE: failed,
            SHARED_STRIDE_VARIABLE: np.array([shape.compute_shared_stride(shared_bytes)]),
            HANDLE_COUNT_VARIABLE: np.zeros(1, np.int64),
            LAUNCH_CALLBACK_VARIABLE: launched.callback_address,
        }
        memories = {**self._variables, **runtime_variables}
        addresses = [_array_address(memories[name]) for name in shape.variables]
        packed = np.frombuffer(b"".join([*words, *addresses, bytes(WORD_BYTES)]), np.uint8)

        def memory() -> tuple[Array, Array]:
            worker_memory = shape.allocate_memory(shared_bytes)
            launched.register_owned_memory(*worker_memory)
            return worker_memory

        block_range = range(prod(grid)) if blocks is None else blocks
        if prod(shape.cluster) > 1:
            # The launch then counts clusters instead of blocks.
            unit, blocks_per_cluster = compute_cluster_unit(grid, shape.cluster), prod(shape.cluster)
            block_range = range(
                block_range.start // unit * unit // blocks_per_cluster,
                -(-block_range.stop // unit) * unit // blocks_per_cluster,
            )
        if self._runs_in_order or blocks is not None or min(_worker_count(), len(block_range)) == 1:
            scratch, shared = memory()
            piece = max(-(-len(block_range) // _PIECES_PER_WORKER), 1)
            for first in block_range[::piece]:
                count = min(piece, block_range.stop - first)
                shape.code.run(scratch.ctypes.data, shared.ctypes.data, packed.ctypes.data, first, count, *grid)
                if failed[0]:
                    break
                on_progress((first + count - block_range.start) / len(block_range))
        else:
            self._distribute(shape, memory, packed, block_range, grid, on_progress)
        if failed[0]:
            raise _launch_error(shape.failures[failed[0] - 1], failed[1:4], failed[4:7])
        tree.run_in_order(list(launched.iterate_children(grid)), depth + 1)

    def _distribute(
        self,
        shape: _CompiledShape,
        memory: Callable[[], tuple[Array, Array]],
        packed: Array,
        block_range: range,
        grid: Sequence[int],
        on_progress: Callable[[float], None],
    ) -> None:
        """Let workers run pieces of the grid until none is left; this thread is a worker, and reports progress."""
        workers = min(_worker_count(), len(block_range))
        piece = -(-len(block_range) // (workers * _PIECES_PER_WORKER))
        next_block = np.array([block_range.start], np.int64)
        take = native_code.get_piece_runner().run_pieces
        memories = [memory() for _ in range(workers)]

        def work(scratch: Array, shared: Array, pieces: int) -> None:
            arguments = (shape.code.address, scratch.ctypes.data, shared.ctypes.data, packed.ctypes.data)
            take(*arguments, next_block.ctypes.data, block_range.stop, piece, pieces, *grid)

        others = [_worker_pool().submit(work, *arguments, len(block_range)) for arguments in memories[1:]]
        try:
            while next_block[0] < block_range.stop:
                work(*memories[0], 1)
                on_progress((min(int(next_block[0]), block_range.stop) - block_range.start) / len(block_range))
        finally:
            next_block[0] = block_range.stop  # if this thread was interrupted, the others stop too
            for other in others:
                other.result()
        on_progress(1.0)

    def _get_shape(self, block: tuple[int, ...], on_compile: Callable[[], None] = lambda: None) -> _CompiledShape:
        if block not in self._shapes:
            self._shapes[block] = _CompiledShape(self._function, block, self._constants, on_compile)
        return self._shapes[block]

    def _argument_words(
        self, arguments: Sequence[Array | SimulatedTensorMap | np.generic | None]
    ) -> tuple[list[bytes], list[Array]]:
        """Return a word of 8 bytes per argument, and the arrays that the words point to."""
        words: list[bytes] = []
        referenced_arrays: list[Array] = []
        for argument, (name, type) in zip(arguments, self._function.parameters, strict=True):
            if argument is None:
                if not isinstance(type, Pointer):
                    raise LaunchError(f"{self._function.name}: {name} is missing.")
                words.append(bytes(WORD_BYTES))
            elif isinstance(argument, SimulatedTensorMap):
                encoded = argument.encode(argument.data.ctypes.data)
                referenced_arrays += (argument.data, np.frombuffer(encoded.tobytes(), np.uint8))
                words.append(_array_address(referenced_arrays[-1]))
            elif isinstance(type, Pointer):
                assert isinstance(argument, np.ndarray)
                words.append(_array_address(argument))
            elif isinstance(type, Scalar) or type.size <= WORD_BYTES:
                words.append(argument.tobytes().ljust(WORD_BYTES, b"\0"))
            else:
                referenced_arrays.append(np.frombuffer(argument.tobytes(), np.uint8))
                words.append(_array_address(referenced_arrays[-1]))
        return words, referenced_arrays


class _CompiledShape:
    """A kernel compiled for one shape of block, or loaded from the cache."""

    def __init__(
        self,
        function: ir.Function,
        block: tuple[int, ...],
        constants: frozenset[str],
        on_compile: Callable[[], None],
    ) -> None:
        key = native_code.compute_cache_key(function, block, sorted(constants))
        entry = native_code.read_cached_code(key)
        if entry is None:
            on_compile()
            compiled = compile_kernel(function, block, constants, function.cluster or (1, 1, 1))
            entry = _launch_data(compiled), native_code.compile_text(compiled.text)
            native_code.write_cached_code(key, *entry)
        data, code = entry
        self.code = native_code.NativeCode(code)
        self.variables: tuple[str, ...] = tuple(data["variables"])
        self.failures = [
            ThreadFailure(**{**failure, "position": SourcePosition(*failure["position"])})
            for failure in data["failures"]
        ]
        self._scratch: int = data["scratch_bytes"]
        self._shared: int = data["shared_bytes"]
        self.cluster = function.cluster or (1, 1, 1)

    def compute_shared_stride(self, dynamic_bytes: int) -> int:
        """Return the distance in bytes between the shared memories of a cluster's blocks."""
        return -(-(self._shared + dynamic_bytes) // _ALIGNMENT) * _ALIGNMENT

    def allocate_memory(self, dynamic_bytes: int) -> tuple[Array, Array]:
        """Allocate the memory that one worker needs."""
        return _align_size(self._scratch), _align_size(self.compute_shared_stride(dynamic_bytes) * prod(self.cluster))


def _launch_data(compiled: KernelText) -> dict[str, Any]:
    """Return the information, besides the code, that a launch needs, as JSON data."""
    return {
        "scratch_bytes": compiled.scratch_bytes,
        "shared_bytes": compiled.shared_bytes,
        "variables": list(compiled.variables),
        "failures": [
            {**vars(failure), "position": dataclasses.astuple(failure.position)} for failure in compiled.failures
        ],
    }


def _child_words(child: ChildLaunch) -> tuple[list[bytes], list[Array]]:
    """Return a word of 8 bytes per argument of a child, and the arrays that the words point to."""
    words, referenced_arrays = [], []
    for argument in child.arguments:
        referenced_arrays.append(np.frombuffer(argument, np.uint8))
        words.append(argument if len(argument) == WORD_BYTES else _array_address(referenced_arrays[-1]))
    return words, referenced_arrays


def _launch_error(failure: ThreadFailure, thread: Array, block: Array) -> LaunchError:
    thread_name = format_sanitizer_name(thread, block)
    return LaunchError(
        f"{failure.position}: {thread_name} {failure.description}.",
        position=failure.position,
        advice=failure.advice,
        kind=failure.kind,
        thread=thread_name,
    )


def _align_size(size: int) -> Array:
    buffer = np.zeros(size + 2 * _ALIGNMENT, np.uint8)
    return buffer[-buffer.ctypes.data % _ALIGNMENT :]


def _array_address(array: Array) -> bytes:
    return int(array.ctypes.data).to_bytes(WORD_BYTES, sys.byteorder)


@cache
def _worker_count() -> int:
    return os.cpu_count() or 1


@cache
def _worker_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_worker_count(), thread_name_prefix="blocks")
