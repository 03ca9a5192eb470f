"""What a launch is compared with."""

from __future__ import annotations

import math

import pytest

from gpu.messages.kernels import KernelLaunch, KernelParameter, Signature
from gui.user_kernel.contenders import list_block_size_contenders, list_kernel_contenders

IN = KernelParameter("in", "const float32 *", "pointer", read_only=True, parts=0)
OUT = KernelParameter("out", "float32 *", "pointer", parts=0)
N = KernelParameter("n", "int32", "integer")


def make_launch(grid: tuple[int, ...] = (4,), block: tuple[int, ...] = (64,)) -> KernelLaunch:
    return KernelLaunch("/x/mine.cu", "", "one", grid, block, ("arange:256", "zeros:256", "256"))


def test_kernels_that_take_the_same_are_launched_alike_and_others_refused() -> None:
    kernels = [
        Signature("one", (IN, OUT, N)),
        Signature("two", (OUT, KernelParameter("to", "float32 *", "pointer", parts=0), N)),
        Signature("fewer", (IN, OUT)),
        Signature("whole", (KernelParameter("in", "int32 *", "pointer", parts=0), OUT, N)),
        Signature("any", template=True),
        Signature("strange", (IN, OUT, N), refusal="It jumps."),
    ]
    made = {each.title: each for each in list_kernel_contenders(make_launch(), kernels)}
    assert [name for name, each in made.items() if not each.refusal] == ["one", "two"]
    assert made["two"].launch.kernel == "two"
    assert made["two"].launch.arguments == make_launch().arguments
    assert made["fewer"].refusal == made["whole"].refusal.replace("whole", "fewer")
    assert made["fewer"].refusal == "fewer has other parameters than one."
    assert "template" in made["any"].refusal
    assert made["strange"].refusal == "It jumps."


@pytest.mark.parametrize(
    ("grid", "block", "titles"),
    [
        ((4,), (64,), ["32 threads", "64 threads", "128 threads", "256 threads", "512 threads", "1024 threads"]),
        ((7,), (48,), ["32 threads", "48 threads", "64 threads", "128 threads", "256 threads", "512 threads",
                       "1024 threads"]),
        ((2, 3), (16, 16), ["8 × 8", "16 × 8", "16 × 16", "32 × 8", "32 × 16", "32 × 32"]),
        ((2, 3, 2), (8, 8, 4), ["8 × 8 × 4", "16 × 8 × 4", "16 × 16 × 4", "32 × 8 × 4"]),
    ],
)  # fmt: skip
def test_blocks_of_other_sizes_have_as_many_threads_in_all(
    grid: tuple[int, ...], block: tuple[int, ...], titles: list[str]
) -> None:
    made = list_block_size_contenders(make_launch(grid, block))
    assert [each.title for each in made] == titles
    wanted = [a * b for a, b in zip((*grid, 1, 1)[:3], (*block, 1, 1)[:3], strict=True)]
    for each in made:
        reached = [a * b for a, b in zip(each.launch.grid, each.launch.block, strict=True)]
        assert all(extent <= there < extent + side
                   for extent, there, side in zip(wanted, reached, each.launch.block, strict=True))  # fmt: skip
        assert math.prod(each.launch.block) <= 1024
    own = next(each for each in made if each.launch.block == (*block, 1, 1)[:3])
    assert own.launch.grid == (*grid, 1, 1)[:3]


def test_a_block_that_is_too_large_is_offered_for_it_is_what_is_chosen() -> None:
    assert list_block_size_contenders(make_launch((1,), (2048,)))[-1].title == "2048 threads"
