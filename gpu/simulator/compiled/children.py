"""Child launches of compiled kernels: the record that a launch passes to the host, and the child it becomes.

The children of a block run in the order in which its threads launched them. Threads run one after the other between two
barriers, so this order differs from the lockstep executor's; streams allow both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.thread_names import format_sanitizer_name
from gpu.simulator import ir
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.ir.walking import find_reachable_functions, walk
from gpu.simulator.types import Pointer, leaves

Array = npt.NDArray[Any]

WORD_BYTES = 8
ARGUMENTS = 17 * WORD_BYTES
"""Offset of the arguments in a record, in bytes. The words of 8 bytes before them are the number of the launch site,
threadIdx, blockIdx, the grid, the block, the bytes of shared memory, the stream, and the begin and end of the thread's
local variables."""

_CALLBACK_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True)
class LaunchSite:
    """A launch of another kernel in a kernel's code: the launched function, and the source position."""

    function: ir.Function
    position: SourcePosition


def find_launch_sites(kernel: ir.Function) -> list[LaunchSite]:
    """Return the launch sites in a kernel and the functions that it calls."""
    sites: dict[tuple[int, SourcePosition], LaunchSite] = {}
    for function in find_reachable_functions(kernel):
        for node in walk(function.body):
            if isinstance(node, ir.LaunchCall):
                sites[id(node.function), node.position] = LaunchSite(node.function, node.position)
    return list(sites.values())


def compute_parameter_offsets(function: ir.Function) -> list[int]:
    """Return the byte offset of each argument of a kernel in a record, and the record's size."""
    offsets = [ARGUMENTS]
    for _, type in function.parameters:
        offsets.append(offsets[-1] + -(-type.size // WORD_BYTES) * WORD_BYTES)
    return offsets


@dataclass(frozen=True)
class _NamedThread:
    name: str

    def describe(self, lane: int) -> str:
        return self.name


class LaunchRecords:
    """The launches by the blocks of one launch.

    Attributes
    ----------
    callback_address : array
        The address of the callback that machine code calls with the address of a record.
    """

    def __init__(self, sites: Sequence[LaunchSite]) -> None:
        self._sites = sites
        self._sizes = [compute_parameter_offsets(site.function)[-1] for site in sites]
        self._records: list[bytes] = []
        self._owned_ranges: list[tuple[int, int]] = []
        self.callback_address = np.zeros(1, np.int64)
        if sites:
            self._callback = _CALLBACK_TYPE(self._record_launch)
            self.callback_address[0] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def register_owned_memory(self, *memories: Array) -> None:
        """Register memory that ends with the blocks, which children must not use."""
        self._owned_ranges += [(memory.ctypes.data, memory.ctypes.data + memory.nbytes) for memory in memories]

    def _record_launch(self, address: int) -> None:
        number = ctypes.c_int64.from_address(address).value
        self._records.append(ctypes.string_at(address, self._sizes[number]))

    def iterate_children(self, grid: Sequence[int]) -> Iterator[ChildLaunch]:
        """Yield the children block by block; each argument is its bytes, in words of 8 bytes."""
        heads = [(np.frombuffer(each, np.int64, ARGUMENTS // WORD_BYTES).tolist(), each) for each in self._records]
        self._records = []
        for head, record in sorted(heads, key=lambda pair: (pair[0][6] * grid[1] + pair[0][5]) * grid[0] + pair[0][4]):
            site = self._sites[head[0]]
            offsets = compute_parameter_offsets(site.function)
            child = ChildLaunch(
                site.function,
                tuple(head[7:10]),
                tuple(head[10:13]),
                head[13],
                tuple(record[start:end] for start, end in pairwise(offsets)),
                head[14],
                site.position,
                _NamedThread(format_sanitizer_name(head[1:4], head[4:7])),
                0,
            )
            self._reject_owned_memory(child, (head[15], head[16]))
            yield child

    def _reject_owned_memory(self, child: ChildLaunch, frame: tuple[int, int]) -> None:
        owned_ranges = (*self._owned_ranges, frame)
        for (name, type), argument in zip(child.function.parameters, child.arguments, strict=True):
            for offset, leaf in leaves(type):
                address = int.from_bytes(argument[offset : offset + leaf.size], "little")
                if isinstance(leaf, Pointer) and any(start <= address < end for start, end in owned_ranges):
                    raise child.build_error(
                        f"its argument {name} points to the parent's own memory.",
                        "Pass a pointer to global memory, or the value itself.",
                    )
