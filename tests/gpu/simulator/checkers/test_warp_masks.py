"""Masks of __syncwarp and exchanges in a warp: those that leave out who calls, or name who does not come, are found."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate

BEFORE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
const unsigned ALL = 0xffffffffu;
__device__ int total(unsigned mask, int v) {
    for (int o = 16; o; o /= 2)
        v += __shfl_xor_sync(mask, v, o);
    return v;
}
"""
_FIRST_LINE = BEFORE.count("\n") + 2


def list_findings(body: str, *, block: int = 32, schedule: str = "round-robin", traced: bool = False) -> list[Finding]:
    source = f"{BEFORE}__global__ void f(int *a) {{ int i = threadIdx.x, l = i % 32, v = i;\n{body}\n}}"
    simulation = simulate("test.cu", "f", 1, block, ["zeros:256"], source=source, schedule=schedule, traced=traced)
    return simulation.findings


# The block's threads, what is in the body, the line of the finding, its first thread, and what it says.
WRONG: dict[str, tuple[int, str, int, int, str]] = {
    "a shuffle in half a warp": (
        32,
        "if (l < 16)\nv = __shfl_down_sync(ALL, v, 8);",
        2,
        0,
        "with the mask 0xffffffff, which names lanes 16-31, but these do not arrive",
    ),
    "a shuffle in the other half": (64, "if (l >= 16)\nv = __shfl_up_sync(ALL, v, 1);", 2, 16, "names lanes 0-15,"),
    "a vote in a branch": (32, "if (l != 5)\na[i] = __any_sync(ALL, v);", 2, 0, "names lane 5,"),
    "a ballot in both branches": (
        32,
        "if (l & 1)\na[i] = __ballot_sync(ALL, v);\nelse a[i] = __ballot_sync(ALL, v);",
        2,
        1,
        "names lanes 0, 2, 4,",
    ),
    "a match": (32, "if (l > 3) a[i] = __match_any_sync(~1u, v);", 1, 4, "names lanes 1-3,"),
    "match all": (32, "int all; if (l > 3) a[i] = __match_all_sync(ALL, v, &all);", 1, 4, "names lanes 0-3,"),
    "a reduction": (32, "if (l < 4) a[i] = __reduce_add_sync(0xffu, v);", 1, 0, "names lanes 4-7,"),
    "a reduction that leaves lanes out": (
        32,
        "a[i] = __reduce_max_sync(0xffu, v);",
        1,
        8,
        "does not name the lane itself",
    ),
    "a shuffle that leaves lanes out": (64, "a[i] = __shfl_sync(0x1, v, 0);", 1, 1, "does not name the lane itself"),
    "a shuffle from a lane outside the mask": (
        32,
        "if (l < 16) a[i] = __shfl_sync(0xffffu, v, l < 9 ? 3 : 20);",
        1,
        9,
        "with the mask 0xffff, reads lane 20, which the mask does not name",
    ),
    "a width": (32, "a[i] = __shfl_down_sync(ALL, v, 1, 12);", 1, 0, "with the width 12, which is not a power of two"),
    "a width of two warps": (32, "a[i] = __shfl_sync(ALL, v, 1, 64);", 1, 0, "with the width 64, which is not"),
    "a width of no lane": (32, "a[i] = __shfl_up_sync(ALL, v, 1, 0);", 1, 0, "with the width 0, which is not"),
    "a width of some lanes": (32, "a[i] = __shfl_xor_sync(ALL, v, 1, l < 5 ? 32 : -8);", 1, 5, "with the width -8,"),
    "a function": (32, "if (l < 16) v = total(ALL, v);", 6 - _FIRST_LINE + 1, 0, "names lanes 16-31,"),
    "a loop that lanes leave": (
        32,
        "for (int k = 0; k < l; k++)\nv += __shfl_xor_sync(ALL, v, 1);",
        2,
        1,
        "names lane 0,",
    ),
    "a mask from before the branch": (
        32,
        "unsigned m = __activemask();\nif (l < 20)\nv = __shfl_down_sync(m, v, 1);",
        3,
        0,
        "names lanes 20-31,",
    ),
    "a lane that has exited": (
        32,
        "if (l == 0) return;\nv = __shfl_sync(ALL, v, 0);",
        2,
        1,
        "reads lane 0, which the mask names but which has exited",
    ),
    "lanes that have exited": (
        64,
        "if (i >= 40) return;\nfor (int o = 16; o; o /= 2)\nv += __shfl_down_sync(ALL, v, o);",
        3,
        32,
        "reads lane 16, which the mask names but which has exited",
    ),
    "a lane that is not in the block": (
        48,
        "v += __shfl_down_sync(ALL, v, 16);",
        1,
        32,
        "reads lane 16, which the mask names but which the block does not have",
    ),
    "masks that overlap": (
        32,
        "v += __shfl_xor_sync(l < 16 ? 0xffffu : 0xffffff00u, v, 8);",
        1,
        16,
        "names lanes 8-15, calling with another mask",
    ),
    "a mask that lane 0 does not have": (
        32,
        "v = __shfl_sync(l ? ALL : 1u, v, l);",
        1,
        1,
        "names lane 0, calling with another mask",
    ),
    "a side of ?:": (32, "a[i] = l < 8 ? __shfl_sync(ALL, v, 0) : 0;", 1, 0, "names lanes 8-31,"),
    "the right of &&": (32, "if (l < 8 && __any_sync(ALL, v)) a[i] = 1;", 1, 0, "names lanes 8-31,"),
    "__syncwarp in half a warp": (32, "if (l < 16)\n__syncwarp();", 2, 0, "__syncwarp at test.cu"),
    "__syncwarp with a mask": (32, "if (l < 16)\n__syncwarp(0x1ffffu);", 2, 0, "names lane 16,"),
    "__syncwarp that leaves lanes out": (32, "__syncwarp(1);", 1, 1, "does not name the lane itself"),
    "__syncwarp before __syncthreads": (
        64,
        "if (l < 3)\n__syncwarp();\n__syncthreads();\nif (l >= 3) __syncwarp();",
        2,
        0,
        "names lanes 3-31,",
    ),
    "__syncwarp once and twice": (
        32,
        "if (l < 16) { __syncwarp();\n__syncwarp(); } else __syncwarp();",
        2,
        0,
        "names lanes 16-31,",
    ),
    "__syncwarp with other masks": (
        32,
        "if (l < 16)\n__syncwarp(0xffffffu);\nelse __syncwarp();",
        2,
        0,
        "lanes 16-23,",
    ),
    "a tile in half of it": (
        32,
        "auto t = cg::tiled_partition<8>(cg::this_thread_block());\nif (l % 8 < 4)\na[i] = t.shfl_down(v, 1);",
        3,
        0,
        "names lanes 4-7,",
    ),
}


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:4"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mask_is_found_at_its_line(name: str, schedule: str) -> None:
    block, body, line, thread, what = WRONG[name]
    finding = list_findings(body, block=block, schedule=schedule)[0]
    assert finding.kind == "warp-mask"
    assert [position.line - _FIRST_LINE + 1 for position in finding.positions] == [line]
    assert finding.message.startswith("Barrier error detected. ")
    assert what in finding.message
    if schedule == "round-robin":
        assert finding.threads == (f"thread ({thread},0,0) in block (0,0,0)",)


# Lanes that run independently meet at both calls, or each computes a mask of itself alone.
RIGHT_BY_LANES = {"a ballot in both branches", "a mask from before the branch"}


@pytest.mark.parametrize("name", sorted(WRONG.keys() - RIGHT_BY_LANES))
def test_a_wrong_mask_is_found_when_lanes_run_independently(name: str) -> None:
    block, body, line, _, _ = WRONG[name]
    finding = list_findings(body, block=block, schedule="lanes:1")[0]
    assert finding.kind in ("warp-mask", "barrier")
    assert [position.line - _FIRST_LINE + 1 for position in finding.positions] == [line]


def test_a_barrier_of_the_block_ends_the_waiting_of_each_warp() -> None:
    body = "if (l < 3)\n__syncwarp();\n__syncthreads();\nif (l >= 3) __syncwarp();"
    assert [found.count for found in list_findings(body, block=96)] == [3 * 3, 3 * 29]


@pytest.mark.parametrize("name", ["a vote in a branch", "__syncwarp in half a warp", "__syncwarp before __syncthreads"])
def test_a_recording_has_the_finding(name: str) -> None:
    block, body, *_ = WRONG[name]
    assert list_findings(body, block=block, traced=True) == list_findings(body, block=block)


RIGHT = {
    "all lanes": (64, "v = total(ALL, v); __syncwarp(); a[i] = __ballot_sync(ALL, v);"),
    "half a warp that names itself": (32, "if (l < 16) v = __shfl_down_sync(0xffffu, v, 8);"),
    "two halves, each with its mask": (64, "v += __shfl_xor_sync(l < 16 ? 0xffffu : 0xffff0000u, v, 8);"),
    "a branch each with its mask": (
        32,
        "if (l < 8) v = __reduce_add_sync(0xffu, v); else v = __reduce_add_sync(~0xffu, v); __syncwarp();",
    ),
    "who is active": (32, "if (l % 3) { unsigned m = __activemask(); v = __shfl_sync(m, v, __ffs(m) - 1); }"),
    "who is active in a loop": (32, "for (int k = 0; k < l; k++) v += __popc(__ballot_sync(__activemask(), v));"),
    "a ballot says who is in the branch": (
        64,
        """unsigned m = __ballot_sync(ALL, i < 45);
if (i < 45) for (int o = 16; o; o /= 2) v += __shfl_down_sync(m, v, o);""",
    ),
    "a last warp with its own mask": (
        40,
        "unsigned m = i < 32 ? ALL : 0xffu;\nfor (int o = 4; o; o /= 2) v += __shfl_down_sync(m, v, o);",
    ),
    "a last warp within its width": (40, "for (int o = 4; o; o /= 2) v += __shfl_down_sync(ALL, v, o, 8);"),
    # "All non-exited threads named in mask": those that have ended, or never were, may be named.
    "a vote after lanes have exited": (32, "if (l > 20) return;\na[i] = __any_sync(ALL, v); __syncwarp();"),
    "a reduction in a block of 8": (8, "a[i] = __reduce_add_sync(ALL, v); __syncwarp();"),
    "__syncwarp in both branches": (32, "if (l < 16) { v++; __syncwarp(); } else { __syncwarp(); v--; }"),
    "__syncwarp twice in both branches": (
        64,
        "if (l < 16) { __syncwarp(); __syncwarp(); } else { __syncwarp(); v++; __syncwarp(); }\n__syncwarp();",
    ),
    "__syncwarp of three": (
        32,
        "if (l == 1) __syncwarp(0xe); else if (l == 2) __syncwarp(0xe); else if (l == 3) __syncwarp(0xe);",
    ),
    "__syncwarp in a loop of one lane": (32, "for (int k = 0; k < 3; k++) { if (l == k) v++; __syncwarp(); }"),
    "a shuffle from the last lane of the mask": (32, "if (l < 16) a[i] = __shfl_sync(0xffffu, v, 15);"),
    "a shuffle that may leave the mask at its edge": (32, "if (l < 16) a[i] = __shfl_down_sync(0xffffu, v, 8);"),
    "match": (32, "unsigned m = __match_any_sync(ALL, v / 5); v = __shfl_sync(m, v, __ffs(m) - 1); __syncwarp(m);"),
    "tiles": (32, "auto t = cg::tiled_partition<8>(cg::this_thread_block()); a[i] = t.shfl_xor(v, 1); t.sync();"),
    "a tile in a branch": (
        32,
        "auto t = cg::tiled_partition<8>(cg::this_thread_block());\nif (t.meta_group_rank() == 2) a[i] = t.any(v);",
    ),
    "who is coalesced": (32, "if (l & 2) { auto g = cg::coalesced_threads(); a[i] = g.shfl(v, 0); g.sync(); }"),
    "a form from before Volta": (32, "if (l < 16) { v = __shfl_down(v, 8); v += __popc(__ballot(v)); }"),
    "another function for each lane": (32, "v = l < 16 ? total(0xffff, v) : total(0xffff0000u, v);"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_mask_is_not_found(name: str) -> None:
    block, body = RIGHT[name]
    for schedule in ("round-robin", "shuffle:1", "lanes:1"):
        assert [
            found for found in list_findings(body, block=block, schedule=schedule) if found.kind == "warp-mask"
        ] == []


_LANES = st.integers(0, 2**32 - 1)


@settings(max_examples=30, deadline=None)
@given(_LANES, _LANES, st.integers(1, 32), st.sampled_from(["a[i] = __ballot_sync(M, 1)", "__syncwarp(M)"]))
@example(2**32 - 1, 0, 32, "__syncwarp(M)")
@example(0xFF, 0xFF00, 8, "__syncwarp(M)")
def test_masks_are_right_where_they_name_just_those_that_come(coming: int, more: int, block: int, call: str) -> None:
    """`coming` are the lanes in the branch; the mask names them too, or leaves some out where `more` is odd."""
    alive = (1 << block) - 1
    mask = coming & more if more & 1 else coming | more
    here = coming & alive
    is_right = here & ~mask == 0 and (mask & alive == here or not here)
    body = f"unsigned M = {mask}u;\nif ({coming}u >> l & 1) {call};"
    assert (list_findings(body, block=block) == []) == is_right
