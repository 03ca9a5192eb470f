"""Launches to compare a launch with: other kernels of the file, and other block sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu.base.warp import WARP
from gpu.messages.kernels import KernelLaunch, Signature

MAX_THREADS = 1024
_BLOCK_LENGTHS = ((32,), (64,), (128,), (256,), (512,), (1024,))
_BLOCK_AREAS = ((8, 8), (16, 8), (16, 16), (32, 8), (32, 16), (32, 32))


@dataclass(frozen=True)
class Contender:
    """One of several launches that are compared.

    Parameters
    ----------
    title : str
        The difference from the others: a kernel name or a block size.
    refusal : str
        The reason why it cannot run, or "".
    """

    title: str
    launch: KernelLaunch
    refusal: str = ""


def list_kernel_contenders(launch: KernelLaunch, kernels: Sequence[Signature]) -> list[Contender]:
    """Return the launch with each kernel of the file; kernels with other parameters are refused."""
    selected = next(each for each in kernels if each.name == launch.kernel)

    def find_refusal(kernel: Signature) -> str:
        if kernel.template:
            return f"{kernel.name} is a template: select an instantiation on the Run tab first."
        if kernel.refusal:
            return kernel.refusal
        return (
            ""
            if _parameter_kinds(kernel) == _parameter_kinds(selected)
            else f"{kernel.name} has other parameters than {selected.name}."
        )

    return [Contender(each.name, replace(launch, kernel=each.name), find_refusal(each)) for each in kernels]


def map_launches_by_threads(launch: KernelLaunch) -> tuple[dict[int, KernelLaunch], int]:
    """Return a launch with several block sizes in whole warps, by threads per block; and its own threads per block."""
    own_threads = math.prod(_pad_to_three(launch.block))
    others = {
        math.prod(_pad_to_three(block_size_contender.launch.block)): block_size_contender.launch
        for block_size_contender in list_block_size_contenders(launch)
    }
    return {
        threads: each for threads, each in (others | {own_threads: launch}).items() if threads % WARP == 0
    }, own_threads


def list_block_size_contenders(launch: KernelLaunch) -> list[Contender]:
    """Return a launch with several block sizes, its own included; each grid has at least as many threads."""
    block = _pad_to_three(launch.block)
    threads = [a * b for a, b in zip(_pad_to_three(launch.grid), block, strict=True)]
    flat = block[1] == block[2] == 1
    sizes = {(*each, *block[len(each) :]) for each in (_BLOCK_LENGTHS if flat else _BLOCK_AREAS)} | {block}
    contenders = []
    for size in sorted(sizes, key=lambda each: (math.prod(each), each)):
        if math.prod(size) > MAX_THREADS and size != block:
            continue
        grid = tuple(-(-count // extent) for count, extent in zip(threads, size, strict=True))
        contenders.append(Contender(_describe_block(size), replace(launch, block=size, grid=grid)))
    return contenders


def _parameter_kinds(kernel: Signature) -> list[tuple[str, str, int]]:
    """Return the kinds and types of a kernel's parameters, regardless of const and __restrict__."""
    return [
        (
            parameter.kind,
            parameter.type.replace("const", "").replace("__restrict__", "").replace(" ", ""),
            parameter.parts,
        )
        for parameter in kernel.parameters
    ]


def _pad_to_three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, *[1] * (3 - len(extents)))
    return x, y, z


def _describe_block(block: Sequence[int]) -> str:
    """Format a block size as "256 threads" or "16 × 16"."""
    extents = list(block)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f"{extents[0]} threads" if len(extents) == 1 else " × ".join(map(str, extents))
