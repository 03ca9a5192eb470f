"""What warps, and whole launches, wait for: reckoned by hand from latencies, for small kernels of PTX."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.timing.gpus import find_gpu
from gpu.timing.launch import LaunchEstimate, LaunchModel
from gpu.timing.ptx.assembler import assemble_kernel
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape

H200 = find_gpu("h200")
LATENCY = H200.memory_cycles

START = """
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
"""
CHAIN = """
    mov.f32 %f1, 0f00000000;
    mov.u32 %r5, 0;
$L9:
    add.f32 %f1, %f1, 0f3F800000;
    add.s32 %r5, %r5, 1;
    setp.lt.s32 %p2, %r5, ROUNDS;
    @%p2 bra $L9;
"""


def estimate(
    body: str, grid: int = 1, block: int = 32, *, assembled: bool = False, size: int = 1 << 20
) -> LaunchEstimate:
    """Model a kernel with an array of so many bytes; `assembled` applies the assembler's transformations."""
    text = f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0)\n{{\n{START}{body}\n}}\n"
    kernel = parse_ptx(text).find_kernel("k")
    model = LaunchModel(PtxMachine(assemble_kernel(kernel) if assembled else kernel, {}), H200, 16)
    memory = SampledMemory({0: np.zeros(size, np.uint8)})
    address = np.array([memory.address(0)], np.int64).view(np.uint8)
    return model.estimate_launch(GridShape((grid, 1, 1), (block, 1, 1)), address, memory)


def count_cycles(body: str, grid: int = 1, block: int = 32, *, assembled: bool = False) -> float:
    """Return the cycles of a kernel with an array of a MiB."""
    return estimate(body, grid, block, assembled=assembled).time_us * 1e3 * H200.clock_ghz


def count_divergent_cycles(jumping: int, first: str, others: str) -> float:
    """Return what it takes where so many lanes of 32 jump over what the first ones do, and do something else."""
    return count_cycles(f"""
        setp.lt.u32 %p1, %r1, {jumping};
        @%p1 bra $L1;
        {first}
        bra.uni $L2;
    $L1:
        {others}
    $L2:
        st.global.f32 [%rd3], %f1;
        ret;
    """)


def test_lanes_that_jump_wait_for_those_that_do_not() -> None:
    load = "ld.global.f32 %f1, [%rd3];"
    ways = f"{load} add.f32 %f1, %f1, 0f3F800000;", load
    assert count_divergent_cycles(16, *ways) - count_divergent_cycles(0, *ways) == pytest.approx(LATENCY, rel=0.15)


@pytest.mark.parametrize("others", ["mov.f32 %f1, 0f00000000;", "cvt.rn.f32.u32 %f1, %r1;"])
def test_what_some_lanes_wait_for_is_waited_for_where_they_meet(others) -> None:
    load = "ld.global.f32 %f1, [%rd3];"
    assert count_divergent_cycles(16, load, others) > count_divergent_cycles(32, load, others) + 0.9 * LATENCY


def test_loads_under_a_condition_with_a_short_alternative_are_issued_together() -> None:
    """The assembler predicates both sides, so that four such loads wait once: `inside ? in[i] : 0`."""
    load = """
        setp.lt.u32 %p{0}, %r1, {1};
        @%p{0} bra $L{0};
        mov.f32 %f1{0}, 0f00000000;
        bra.uni $M{0};
    $L{0}:
        ld.global.f32 %f1{0}, [%rd3+{1}];
    $M{0}:
        add.f32 %f1, %f1, %f1{0};
    """
    bodies = ("".join(load.format(number, 4096 * number) for number in range(1, loads + 1)) for loads in (1, 4))
    one, four = (
        count_cycles(f"mov.f32 %f1, 0f00000000; {body} st.global.f32 [%rd3], %f1; ret;", assembled=True)
        for body in bodies
    )
    assert one > LATENCY
    assert four - one < 0.5 * LATENCY


def test_a_load_waits_for_the_one_before_it_into_the_same_register() -> None:
    """In a loop that is not unrolled, as it has ways within it, one is under way at a time, whatever was meant."""

    def count_loop_cycles(rounds: int) -> float:
        return count_cycles(f"""
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            mov.u32 %r5, 0;
        $L0:
            mov.f32 %f1, %f2;
            ld.global.f32 %f2, [%rd3];
            add.s64 %rd3, %rd3, 4096;
            add.f32 %f3, %f3, %f1;
            setp.lt.s32 %p2, %r5, 0;
            @%p2 bra $L1;
            add.f32 %f3, %f3, %f3;
        $L1:
            add.s32 %r5, %r5, 1;
            setp.lt.s32 %p1, %r5, {rounds};
            @%p1 bra $L0;
            st.global.f32 [%rd1], %f3;
            ret;
        """)

    each = (count_loop_cycles(160) - count_loop_cycles(80)) / 80
    assert each > 0.95 * LATENCY


def test_where_all_blocks_run_at_once_those_with_more_to_do_are_waited_for() -> None:
    def count_masked_cycles(mask: int) -> float:
        return count_cycles(
            f"""
            mov.u32 %r2, %ctaid.x;
            and.b32 %r3, %r2, {mask};
            setp.eq.u32 %p1, %r3, {mask & 1};
            selp.b32 %r4, 4000, 2400, %p1;
            {CHAIN.replace("ROUNDS", "%r4")}
            ret;
            """,
            grid=64,
        )

    some, all_of_them = count_masked_cycles(3), count_masked_cycles(0)
    assert some == pytest.approx(all_of_them, rel=0.05)


@pytest.mark.parametrize("draws", ["atom.global.add.u32 %r2, [%rd1], 1;", "atom.global.inc.u32 %r2, [%rd1], 199;"])
def test_what_the_last_block_does_alone_comes_behind_the_others(draws) -> None:
    def count_tail_cycles(rounds: int, last: int) -> float:
        return count_cycles(
            f"""
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra $L1;
            {draws}
            setp.ne.u32 %p1, %r2, {last};
            @%p1 bra $L1;
            {CHAIN.replace("ROUNDS", str(rounds))}
        $L1:
            ret;
            """,
            grid=200,
        )

    assert count_tail_cycles(4000, 199) - count_tail_cycles(1, 199) > 4000 * H200.arithmetic_cycles
    assert count_tail_cycles(4000, 200) == pytest.approx(count_tail_cycles(1, 200)), "nobody draws that number"


ELEMENT = """
    mov.u32 %r2, %ctaid.x;
    shl.b32 %r3, %r2, 10;
    cvt.u64.u32 %rd4, %r3;
    add.s64 %rd5, %rd3, %rd4;
"""


@pytest.mark.parametrize(("blocks", "written_share"), [(1 << 17, 1.0), (1 << 14, 0.0)])
def test_a_copy_takes_the_rate_of_copies_and_evicts_what_the_copy_before_it_stored(blocks, written_share) -> None:
    """Each thread copies a word to its place. A small copy stays in L2, which then writes nothing to DRAM."""
    size = 1024 * blocks
    copy = estimate(f"{ELEMENT} ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd5], %f1; ret;", blocks, 256, size=size)
    rate = H200.copy_gb_s if written_share else H200.memory_gb_s
    assert copy.breakdown["memory"] == pytest.approx((1 + written_share) * size / rate / 1e3, rel=0.01)


def test_loads_alone_take_the_rate_of_loads() -> None:
    size = 1 << 27
    load = estimate(f"{ELEMENT} ld.global.f32 %f1, [%rd5]; ret;", size // 1024, 256, size=size)
    assert load.breakdown["memory"] == pytest.approx(size / H200.memory_gb_s / 1e3, rel=0.01)


def count_shared_sum_cycles(type: str, address: str, block: int, sums: int = 1) -> float:
    """Return what sums of a value per thread in shared memory take beyond none, at words 1024 bytes apart."""
    start = """
        .shared .align 16 .b8 words[8192];
        mov.u32 %r4, words;
        shl.b32 %r5, %r1, 3;
        add.s32 %r6, %r4, %r5;
        mov.b64 %fd1, 0d3FF0000000000000;
    """
    atomics = "".join(
        f"atom.shared.add.{type} %{'fd2' if type == 'f64' else 'r9'}, [{address}+{1024 * number}], "
        f"{'%fd1' if type == 'f64' else '%r1'};"
        for number in range(sums)
    )
    return count_cycles(f"{start} {atomics} ret;", block=block) - count_cycles(f"{start} ret;", block=block)


def test_float_sums_in_shared_memory_are_loops_in_which_one_lane_succeeds_in_each_round() -> None:
    """Load, sum, comparison with exchange, test and jump; an integer sum is one instruction."""
    round_cycles = H200.shared_cycles + H200.double_cycles + H200.shared_atomic_cycles + 2 * H200.arithmetic_cycles
    own_words, one_word, integers = (
        count_shared_sum_cycles(type, address, 32) for type, address in (("f64", "%r6"), ("f64", "%r4"), ("u32", "%r4"))
    )
    assert one_word - own_words == pytest.approx(31 * round_cycles, rel=0.02)
    assert integers < own_words


def test_warps_take_turns_at_a_word_of_shared_memory_but_use_several_words_at_once() -> None:
    alone, four = (count_shared_sum_cycles("f64", "%r4", block) for block in (32, 128))
    assert four == pytest.approx(4 * alone, rel=0.1)
    assert count_shared_sum_cycles("f64", "%r4", 128, sums=3) == pytest.approx((4 + 2) * alone, rel=0.1)
    own_words = [count_shared_sum_cycles("f64", "%r6", block) for block in (32, 128)]
    assert own_words[1] == pytest.approx(own_words[0], rel=0.2)


def test_a_number_that_wraps_around_can_be_drawn_by_each_block() -> None:
    """Each block subtracts 1 from an unsigned word by adding its largest value."""
    atomic = "atom.global.add.u32 %r2, [%rd1], 4294967295; st.global.u32 [%rd3], %r2;"
    body = f"setp.ne.u32 %p1, %r1, 0; @%p1 bra $L1; {atomic}\n$L1:\n ret;"
    assert estimate(body, grid=1000).breakdown["atomics"] > 0


def test_asynchronous_copies_to_shared_memory_are_no_such_loops() -> None:
    """Eight copies are issued one after the other, and take little longer than one."""
    start = """
        .shared .align 16 .b8 words[16384];
        mov.u32 %r4, words;
        mad.lo.s32 %r6, %r1, 16, %r4;
        mul.wide.u32 %rd6, %r1, 16;
        add.s64 %rd7, %rd1, %rd6;
    """
    one, eight = (
        count_cycles(
            start
            + "".join(f"cp.async.cg.shared.global [%r6+{512 * i}], [%rd7+{512 * i}], 16;" for i in range(copies))
            + "cp.async.wait_all; ret;"
        )
        for copies in (1, 8)
    )
    assert eight < one + 8 * H200.shared_atomic_cycles


def test_a_loop_that_waits_for_another_block_ends_though_it_holds_nan() -> None:
    """Its memory and registers are those of an earlier iteration, in which NaN equals itself."""
    cycles = count_cycles("""
    $L1:
        mov.f32 %f1, 0f7FC00000;
        ld.volatile.global.u32 %r2, [%rd3];
        st.global.u32 [%rd3+4096], %r2;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra $L1;
        ret;
    """)
    assert cycles < 20 * LATENCY


@pytest.mark.parametrize("words", [1, 4])
def test_local_memory_beyond_the_last_cache_is_stored_to_dram_and_loaded_from_it(words: int) -> None:
    """Each thread stores an array and loads it, by words or vectors; caches hold a part of all threads' arrays."""
    store, load = ("st.local.u32 [%r6], %r1", "ld.local.u32 %r8, [%r6]")
    if words == 4:
        store, load = "st.local.v4.u32 [%r6], {%r1, %r1, %r1, %r1}", "ld.local.v4.u32 {%r8, %r9, %r10, %r11}, [%r6]"

    def count_dram_bytes(size: int) -> float:
        loops = "".join(
            f"""
            mov.u32 %r5, 0;
        $L{label}:
            add.s32 %r6, %r7, %r5;
            {access};
            add.s32 %r5, %r5, {4 * words};
            setp.lt.u32 %p1, %r5, {size};
            @%p1 bra $L{label};
            """
            for label, access in ((1, store), (2, load))
        )
        return estimate(f".local .align 16 .b8 words[{size}]; mov.u32 %r7, words; {loops} ret;", blocks, 256).dram_bytes

    blocks, resident = 10000, H200.multiprocessors * 2048
    held = H200.last_cache_bytes + H200.multiprocessors * H200.first_cache_bytes
    missing = 1 - held / (resident * 1024)
    assert count_dram_bytes(1024) == pytest.approx(2 * 1024 * blocks * 256 * missing, rel=0.05)
    assert count_dram_bytes(64) < 0.01 * 64 * blocks * 256
