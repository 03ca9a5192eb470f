"""Products of tiles in shared memory by four warps, `wgmma.mma_async`, against NumPy: layouts, flags, and who waits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, LaunchError
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.checkers.warpgroups import WarpgroupChecker
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch
from tests.gpu.simulator.trace_checks import find_ancestry, list_operators, trace_kernel
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]

THREAD = np.arange(128)
WARP, LANE = THREAD // 32, THREAD % 32


def _layout_d(columns: int) -> tuple[Array, Array]:
    """Return row and column of each of a thread's results: the figure "WGMMA .m64nNk16 register fragment layout"."""
    i = np.arange(columns // 2)[:, None]
    return 16 * WARP + LANE // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (LANE % 4) + i % 2


# The layouts of a matrix in shared memory, as the canonical ones of CUTLASS's mma_traits_sm90_gmma.hpp: what a line is
# (a row of A, a column of B) and how deep an element lies, to its byte. Here lines are groups of 8 that are SBO apart.
LEADING, STRIDE = {0: 256, 1: 2048, 2: 2048, 3: 2048}, 1024
WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}


def _tile_offsets(line: Array, deep: Array, size: int, mode: int, turned: bool) -> Array:
    width, unit = WIDTHS[mode], WIDTHS[mode] // size
    if not turned and mode == 0:  # ((8,n),2):((1,SBO),LBO)
        at = line % 8 * 16 + line // 8 * STRIDE + deep // unit * LEADING[0] + deep % unit * size
    elif not turned:  # ((8,n),2):((W,SBO),1)
        at = line % 8 * width + line // 8 * STRIDE + deep * size
    elif mode == 0:  # ((1,n),(8,k)):((X,SBO),(1,LBO))
        at = line % unit * size + line // unit * STRIDE + deep % 8 * 16 + deep // 8 * LEADING[0]
    else:  # ((W,n),(8,k)):((1,LBO),(W,SBO))
        at = line % unit * size + line // unit * LEADING[mode] + deep % 8 * width + deep // 8 * STRIDE
    swizzled = {0: 0, 1: 7, 2: 3, 3: 1}[mode]
    return at ^ ((at >> 7 & swizzled) << 4)


def _lay_out_tile(values: Array, mode: int, turned: bool, room: int = 32) -> Array:
    """Return the bytes of a tile's lines, each one `values[line]`."""
    found = np.zeros(room * 1024, np.uint8)
    line, deep = np.indices(values.shape)
    place = _tile_offsets(line, deep, values.itemsize, mode, turned)
    for byte in range(values.itemsize):
        found[place + byte] = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, -1)[..., byte]
    assert len(np.unique(place)) == values.size
    return found


def _make_source(
    columns: int, kind: str = "f16", flags: str = "1, 1, 0, 0", adds: str = "p", in_registers: bool = False
) -> str:
    count, depth = columns // 2, 8 if kind == "tf32" else 16
    sums = "{" + ", ".join(f"%{i}" for i in range(count)) + "}"
    of_a = "{" + ", ".join(f"%{count + 2 + i}" for i in range(4)) + "}" if in_registers else f"%{count + 2}"
    given = ", ".join(f'"r"(a[{i}])' for i in range(4)) if in_registers else '"l"(of_a)'
    taken = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return f"""
__global__ void k(const uint4 *in_a, const uint4 *in_b, const unsigned *held, float *c, int adds, int mode) {{
    __shared__ __align__(1024) uint4 tile_a[512], tile_b[2048];
    int t = threadIdx.x;
    for (int i = t; i < 2048; i += 128) tile_b[i] = in_b[i], tile_a[i % 512] = in_a[i % 512];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long rest = (unsigned long long)mode << 62 | {STRIDE // 16}ull << 32 | (mode ? 128ull : 16ull) << 16;
    unsigned long long of_a = rest | (__cvta_generic_to_shared(tile_a) & 0x3ffff) >> 4;
    unsigned long long of_b = rest | (__cvta_generic_to_shared(tile_b) & 0x3ffff) >> 4;
    float d[{count}];
    unsigned a[4];
    for (int i = 0; i < 4; ++i) a[i] = held[t * 4 + i];
    for (int i = 0; i < {count}; ++i) d[i] = c[i * 128 + t];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{count}, 0;\\n"
                 "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{kind}.{kind} {sums}, {of_a}, %{count + 1}, "
                 "{adds}, {flags}; }}" : {taken} : "r"(adds), "l"(of_b), {given});
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {count}; ++i) c[i * 128 + t] = d[i];
}}"""


def _run_on_both(module: SimulatedModule, *arguments: Any, block: int = 128) -> Array:
    *_, found = launch(module, "k", *arguments, block=block)
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    bound = [each.reshape(-1).view(np.uint8) if isinstance(each, np.ndarray) else each for each in copies]
    module.compiled_kernel("k").launch((1, 1, 1), (block, 1, 1), bound)
    (out,) = [each for each in copies[-3:] if isinstance(each, np.ndarray)]
    np.testing.assert_array_equal(out, found)
    return found


def _draw_elements(kind: str, shape: tuple[int, int], random: np.random.Generator) -> tuple[Array, Array]:
    """Return elements as memory has them, and as numbers."""
    values = random.standard_normal(shape).astype(np.float32)
    if kind == "f16":
        return values.astype(np.float16), values.astype(np.float16).astype(np.float64)
    kept = values.view(np.uint32) & np.uint32(0xFFFF0000 if kind == "bf16" else 0xFFFFE000)
    held = (kept >> 16).astype(np.uint16) if kind == "bf16" else kept
    return held, kept.view(np.float32).astype(np.float64)


HELD = np.zeros((128, 4), np.uint32)

CASES = [
    # columns, elements, mode of the places, rows and columns exchanged of A and of B
    (8, "f16", 1, 0, 0),
    (16, "f16", 0, 0, 0),
    (8, "f16", 2, 0, 0),
    (8, "f16", 3, 0, 0),
    (8, "f16", 1, 1, 1),
    (16, "bf16", 0, 1, 1),
    (40, "bf16", 2, 0, 1),
    (24, "f16", 3, 1, 1),
    (8, "tf32", 1, 0, 0),
]


@pytest.mark.parametrize(("columns", "kind", "mode", "turns_a", "turns_b"), CASES)
def test_four_warps_multiply_what_lies_as_a_descriptor_says(
    columns: int, kind: str, mode: int, turns_a: int, turns_b: int
) -> None:
    random, depth = np.random.default_rng(columns), 8 if kind == "tf32" else 16
    (held_a, a), (held_b, b) = (_draw_elements(kind, (lines, depth), random) for lines in (64, columns))
    flags = "1, 1" if kind == "tf32" else f"1, 1, {turns_a}, {turns_b}"
    tiles = _lay_out_tile(held_a, mode, bool(turns_a), 8), _lay_out_tile(held_b, mode, bool(turns_b))
    c = random.standard_normal((64, columns)).astype(np.float32)
    given = np.ascontiguousarray(c[_layout_d(columns)])
    found = np.zeros_like(c)
    found[_layout_d(columns)] = _run_on_both(
        build(_make_source(columns, kind, flags)), *tiles, HELD, given, np.int32(1), np.int32(mode)
    )
    np.testing.assert_allclose(found, a @ b.T + c, rtol=2.0**-24 * 1.001, atol=2.0**-40)


def test_flags_may_be_handed_over_as_constants() -> None:
    """As CUTLASS does, whose template arguments they are."""
    random = np.random.default_rng(2)
    (held_a, a), (held_b, b) = (_draw_elements("f16", (lines, 16), random) for lines in (64, 8))
    tiles = _lay_out_tile(held_a, 1, False, 8), _lay_out_tile(held_b, 1, True)
    source = "const int TURNED = 1;" + _make_source(8, "f16", "1, 1, 0, %7").replace(
        '"l"(of_a)', '"l"(of_a), "n"(TURNED)'
    )
    found = np.zeros((64, 8), np.float32)
    given = np.zeros((4, 128), np.float32)
    found[_layout_d(8)] = _run_on_both(build(source), *tiles, HELD, given, np.int32(1), np.int32(1))
    np.testing.assert_allclose(found, a @ b.T, rtol=2.0**-22, atol=2.0**-20)


@pytest.mark.parametrize("negated", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_a_sum_is_added_to_or_begins_anew_and_factors_are_negated(negated: tuple[int, int]) -> None:
    random = np.random.default_rng(3)
    (held_a, a), (held_b, b) = (_draw_elements("f16", (lines, 16), random) for lines in (64, 8))
    c = random.standard_normal((64, 8)).astype(np.float32)
    module = build(_make_source(8, flags=f"{negated[0]}, {negated[1]}, 0, 0"))
    product = negated[0] * negated[1] * (a @ b.T)
    for adds in (0, 7):
        given = np.ascontiguousarray(c[_layout_d(8)])
        tiles = _lay_out_tile(held_a, 1, False, 8), _lay_out_tile(held_b, 1, False)
        found = _run_on_both(module, *tiles, HELD, given, np.int32(adds), np.int32(1))
        expected = product + c if adds else product
        np.testing.assert_allclose(found, expected[_layout_d(8)], rtol=2.0**-24 * 1.001, atol=2.0**-40)


def test_rows_of_a_may_come_from_registers() -> None:
    """As those of mma.sync's A of 16 rows, for each warp: a register has k 2t and 2t + 1 of row g or g + 8."""
    random = np.random.default_rng(4)
    (held_a, a), (held_b, b) = (_draw_elements("f16", (lines, 16), random) for lines in (64, 16))
    pairs = held_a.view(np.uint32)
    row, word = 16 * WARP + LANE // 4, LANE % 4
    held = np.stack([pairs[row, word], pairs[row + 8, word], pairs[row, word + 4], pairs[row + 8, word + 4]], axis=1)
    module = build(_make_source(16, flags="1, 1, 0", in_registers=True))
    tiles = _lay_out_tile(held_a * 0, 1, False, 8), _lay_out_tile(held_b, 1, False)
    found = _run_on_both(module, *tiles, held.copy(), np.zeros((8, 128), np.float32), np.int32(0), np.int32(1))
    np.testing.assert_allclose(found, (a @ b.T)[_layout_d(16)], rtol=2.0**-24 * 1.001, atol=2.0**-40)


# Tiles that are all begun anew: their values do not matter.
ORDER = """
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(L) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(L) : "memory")
#define MULTIPLY() asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, "   \
                                "1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))
__global__ void k(const unsigned *in, float *out) {
    __shared__ __align__(1024) unsigned tiles[72 * 8];
    int t = threadIdx.x;
    for (int i = t; i < 72 * 8; i += 128) tiles[i] = in[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long a = 16ull << 32 | 8ull << 16 | (__cvta_generic_to_shared(tiles) & 0x3ffff) >> 4, b = a + 128;
    float d[4] = {};
    unsigned x = 0;
    BEFORE
    FENCE();
    MULTIPLY();
    BETWEEN
    COMMIT();
    WAIT(0);
    BEHIND
    for (int i = 0; i < 4; ++i) out[i * 128 + t] = d[i] + x;
}"""
TILES = np.arange(72 * 8, dtype=np.uint32)


def _order_source(before: str = "", between: str = "", behind: str = "") -> str:
    text = ORDER.replace("BEFORE", before)
    return text.replace("BETWEEN", between).replace("BEHIND", behind)


@pytest.mark.parametrize(
    ("between", "behind", "races"),
    [
        # Whoever changes what products still read.
        ("if (t == 5) tiles[0] = 1;", "", True),
        ("if (t < 64) tiles[64 * 8 + t] = 1;", "", True),
        ("x = tiles[t];", "", False),
        # A barrier is no wait, nor is one for groups before this one, or for copies.
        ("__syncthreads(); if (t == 5) tiles[0] = 1;", "", True),
        ('asm volatile("cp.async.wait_all;"); __syncthreads(); if (t == 5) tiles[0] = 1;', "", True),
        ("COMMIT(); WAIT(1); __syncthreads(); if (t == 5) tiles[0] = 1;", "", True),
        ("COMMIT(); COMMIT(); WAIT(1); __syncthreads(); if (t == 5) tiles[0] = 1;", "", False),
        # Another warp's products need a barrier behind the wait.
        ("", "if (t == 5) tiles[64 * 8] = 1;", True),
        ("", "__syncthreads(); if (t == 5) tiles[64 * 8] = 1;", False),
    ],
)
def test_who_changes_what_products_read_races_until_they_are_waited_for(between: str, behind: str, races: bool) -> None:
    checker = RaceChecker()
    launch_watched(checker, _order_source("", between, behind), TILES, np.zeros(512, np.float32), kernel="k", block=128)
    assert bool(checker.findings) == races
    if races:
        text = _order_source("", between, behind).splitlines()
        changed = next(number for number, line in enumerate(text, 1) if "= 1;" in line)
        product = next(number for number, line in enumerate(text, 1) if line == "    MULTIPLY();")
        assert set(finding_lines(checker.findings)) == {(product, changed)}


@pytest.mark.parametrize(("adds", "unset"), [(0, False), (1, True)])
def test_sums_are_read_only_where_a_product_is_added_to_them(adds: int, unset: bool) -> None:
    checker = UninitializedChecker()
    source = _order_source().replace("float d[4] = {};", "float d[4];").replace("%4, %5, 1, ", f"%4, %5, {adds}, ")
    launch_watched(checker, source, TILES, np.zeros(512, np.float32), kernel="k", block=128)
    assert bool(checker.findings) == unset


def test_one_lane_says_for_its_warp_that_its_products_are_done() -> None:
    """A thread of another warp, which waits for one lane of each of four, may then change what they have read."""
    source = _order_source(
        """__shared__ unsigned long long done;
    unsigned at = (unsigned)__cvta_generic_to_shared(&done);
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(at));
    __syncthreads();
    if (t >= 128) {
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;"
                     "@p bra over; bra again; over: }" ::"r"(at) : "memory");
        tiles[t - 128] = 1;
        return;
    }""",
        "",
        'if (t % 32 == WHO) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");',
    )
    checker = RaceChecker()
    source = source.replace("i += 128", "i += 160").replace("WHO", "3")
    launch_watched(checker, source, TILES, np.zeros(512, np.float32), kernel="k", block=160)
    assert not checker.findings


@pytest.mark.parametrize(
    ("between", "behind", "races"),
    [
        ("x = (unsigned)d[0];", "", True),
        ("d[t % 4] = 3;", "", True),
        # A barrier is no wait, nor is one for groups before this one.
        ("__syncthreads(); d[3] += 1;", "", True),
        ("COMMIT(); WAIT(1); d[3] += 1;", "", True),
        ("COMMIT(); COMMIT(); WAIT(1); d[3] += 1;", "", False),
        ("", "d[3] += 1;", False),
        # Products of the same sums follow each other, and what is between others and these needs a fence.
        ("MULTIPLY();", "", False),
        ("", "d[0] += 1; FENCE(); MULTIPLY(); COMMIT(); WAIT(0);", False),
        ("", "d[0] += 1; MULTIPLY(); COMMIT(); WAIT(0);", True),
        ("", "MULTIPLY(); COMMIT(); WAIT(0);", False),
    ],
)
def test_who_touches_sums_waits_for_products_and_is_fenced_from_the_next(
    between: str, behind: str, races: bool
) -> None:
    checker = WarpgroupChecker()
    launch_watched(checker, _order_source("", between, behind), TILES, np.zeros(512, np.float32), kernel="k", block=128)
    assert bool(checker.findings) == races


_PROXY = 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'


@pytest.mark.parametrize(
    ("fenced", "before", "missing"),
    [
        (True, "", False),
        (False, "", True),
        # By who has it read, behind the barrier; and not before what is stored last.
        (False, _PROXY, False),
        (True, "if (t == 7) tiles[64 * 8 + 3] = 1; __syncthreads();", True),
        (True, f"if (t == 7) tiles[64 * 8 + 3] = 1; {_PROXY} __syncthreads();", False),
    ],
)
def test_what_threads_store_is_fenced_before_tensor_cores_read_it(fenced: bool, before: str, missing: bool) -> None:
    checker = WarpgroupChecker()
    source = _order_source(before) if fenced else _order_source("@").replace(_PROXY, "").replace("@", before)
    launch_watched(checker, source, TILES, np.zeros(512, np.float32), kernel="k", block=128)
    assert bool(checker.findings) == missing
    assert all("add a fence.proxy.async between them" in each.message for each in checker.findings)


def test_a_finding_says_what_is_missing() -> None:
    waiting, fencing = WarpgroupChecker(), WarpgroupChecker()
    launch_watched(waiting, _order_source("", "d[1] = 2;"), TILES, np.zeros(512, np.float32), kernel="k", block=128)
    (only,) = waiting.findings
    assert finding_lines(waiting.findings) == [(17, 18)]
    assert "Write access at test.cu:18 by thread (0,0,0)" in only.message
    assert "add a wgmma.wait_group between them" in only.message
    source = _order_source().replace("    FENCE();\n", "")
    launch_watched(fencing, source, TILES, np.zeros(512, np.float32), kernel="k", block=128)
    (only,) = fencing.findings
    assert "add a wgmma.fence before the product" in only.message


def test_a_recording_knows_which_products_an_element_is_the_sum_of() -> None:
    made, _ = trace_kernel(_order_source(), [TILES, np.zeros(512, np.float32)], kernel="k", block=128)
    assert list_operators(find_ancestry(made, "out", 0)).count("fma") == 16


def test_parts_of_a_warpgroup_and_tiles_outside_of_shared_memory_are_errors() -> None:
    given = [TILES.view(np.uint8), np.zeros(512, np.float32).view(np.uint8)]
    module = build(_order_source())
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        with pytest.raises(LaunchError, match="wgmma has whole warpgroups of 128 threads"):
            kernel.launch((1, 1, 1), (64, 1, 1), given)
    with pytest.raises(LaunchError, match="element 576 of tiles, which has 576"):
        build(_order_source("b += 16;")).kernel("k").launch((1, 1, 1), (128, 1, 1), given)
    module = build(_order_source("if (t < 70) return;"))
    with pytest.raises(LaunchError, match="all 32 lanes must execute this together"):
        module.kernel("k").launch((1, 1, 1), (128, 1, 1), given)
    with pytest.raises(LaunchError, match="all 32 lanes of the warp are here"):
        module.compiled_kernel("k").launch((1, 1, 1), (128, 1, 1), given)


@pytest.mark.parametrize(
    ("instruction", "operands"),
    [
        ("m64n12k16.f32.f16.f16", "{%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0"),
        ("m64n8k32.s32.s8.s8", "{%0, %1, %2, %3}, %4, %4, 1"),
        ("m64n8k16.f16.f16.f16", "{%0, %1}, %4, %4, 1, 1, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16", "{%0, %1}, %4, %4, 1, 1, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16", "{%0, %1, %2, %3}, %4, %4, 1, 2, 1, 0, 0"),
        ("m64n8k8.f32.tf32.tf32", "{%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0"),
    ],
)
def test_what_is_not_there_is_refused_by_name(instruction: str, operands: str) -> None:
    text = f"wgmma.mma_async.sync.aligned.{instruction} {operands};"
    source = f"""__global__ void k(float *d, unsigned long long a) {{
        asm volatile("{text}" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a));
    }}"""
    reason = f"does not support the instruction wgmma.mma_async.sync.aligned.{instruction}"
    with pytest.raises(CompileError, match=re.escape(reason)):
        build(source).kernel("k")
