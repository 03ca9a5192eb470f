"""What a launch is compared with: the other kernels of its file, and blocks of other sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu.messages.kernels import KernelLaunch, Signature
from gpu.warp import WARP

LARGEST_BLOCK = 1024
_ROWS = ((32,), (64,), (128,), (256,), (512,), (1024,))
_AREAS = ((8, 8), (16, 8), (16, 16), (32, 8), (32, 16), (32, 32))


@dataclass(frozen=True)
class Contender:
    """One of several launches that are compared.

    Parameters
    ----------
    title : str
        How it differs from the others: a kernel's name, or a block's size.
    launch : KernelLaunch
    refusal : str
        Why it cannot run; "" where it can.
    """

    title: str
    launch: KernelLaunch
    refusal: str = ""


def kernels_beside(launch: KernelLaunch, kernels: Sequence[Signature]) -> list[Contender]:
    """Return the same launch of each kernel of a file; those that take something else are refused."""
    own = next(each for each in kernels if each.name == launch.kernel)

    def refusal(kernel: Signature) -> str:
        if kernel.template:
            return f"{kernel.name} is a template: choose an instantiation of it on the Run tab first."
        if kernel.refusal:
            return kernel.refusal
        return "" if _taken(kernel) == _taken(own) else f"{kernel.name} takes other arguments than {own.name}."

    return [Contender(each.name, replace(launch, kernel=each.name), refusal(each)) for each in kernels]


def by_threads(launch: KernelLaunch) -> tuple[dict[int, KernelLaunch], int]:
    """Return a launch with blocks of several sizes, whole warps, by their threads; and how many its own have."""
    own = math.prod(_whole(launch.block))
    others = {math.prod(_whole(each.launch.block)): each.launch for each in block_sizes(launch)}
    return {threads: each for threads, each in (others | {own: launch}).items() if threads % WARP == 0}, own


def block_sizes(launch: KernelLaunch) -> list[Contender]:
    """Return a launch with blocks of several sizes, its own among them, each with a grid of as many threads or more."""
    block = _whole(launch.block)
    threads = [a * b for a, b in zip(_whole(launch.grid), block, strict=True)]
    flat = block[1] == block[2] == 1
    sizes = {(*each, *block[len(each) :]) for each in (_ROWS if flat else _AREAS)} | {block}
    made = []
    for size in sorted(sizes, key=lambda each: (math.prod(each), each)):
        if math.prod(size) > LARGEST_BLOCK and size != block:
            continue
        grid = tuple(-(-wanted // extent) for wanted, extent in zip(threads, size, strict=True))
        made.append(Contender(_in_words(size), replace(launch, block=size, grid=grid)))
    return made


def _taken(kernel: Signature) -> list[tuple[str, str, int]]:
    """Return the kinds of arguments that a kernel takes: whether it only reads an array makes no difference."""
    return [
        (each.kind, each.type.replace("const", "").replace("__restrict__", "").replace(" ", ""), each.parts)
        for each in kernel.parameters
    ]


def _whole(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*extents, *[1] * (3 - len(extents)))
    return x, y, z


def _in_words(block: Sequence[int]) -> str:
    """Return "256 threads" or "16 × 16"."""
    extents = list(block)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return f"{extents[0]} threads" if len(extents) == 1 else " × ".join(map(str, extents))
