"""PTX that is run gives what NumPy gives, and what it asked of memory is what a GPU would count."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.errors import KernelError
from gpu.simulator.counting import traffic
from gpu.timing.caches import iterate_visits
from gpu.timing.ptx.assembler import assemble_kernel
from gpu.timing.ptx.machine import PtxMachine
from gpu.timing.ptx.memory import SampledMemory
from gpu.timing.ptx.path import RepeatedIterations, Visit
from gpu.timing.ptx.program import parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def run(
    body: str,
    *arrays: np.ndarray,
    grid: int = 1,
    block: int = 64,
    blocks: range | None = None,
    rewritten=True,
    values=True,
):
    names = [f"p{number}" for number in range(len(arrays))]
    text = f"{HEAD}.visible .entry k({', '.join(f'.param .u64 {name}' for name in names)})\n{{\n{body}\n}}\n"
    kernel = parse_ptx(text).find_kernel("k")
    memory = SampledMemory(dict(enumerate(array.reshape(-1).view(np.uint8) for array in arrays)))
    parameters = np.array([memory.address(number) for number in range(len(arrays))], np.int64).view(np.uint8)
    machine = PtxMachine(assemble_kernel(kernel) if rewritten else kernel, {}, values=values)
    path = machine.run(GridShape((grid, 1, 1), (block, 1, 1)), parameters, blocks or range(grid), memory)
    return path, memory


STORE = """
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
"""


def _to_bits(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).view(np.uint16).astype(np.int64)


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("add.s32 %r2, %r1, -3;", lambda t: t - 3),
        ("mad.lo.s32 %r2, %r1, %r1, 7;", lambda t: t * t + 7),
        ("mul.hi.u32 %r2, %r1, 0x80000000;", lambda t: t // 2),
        ("cvt.u16.u32 %rs1, %r1; mul.hi.u16 %rs2, %rs1, -21845; cvt.u32.u16 %r2, %rs2;", lambda t: t * 43691 >> 16),
        ("shl.b32 %r2, %r1, 3;", lambda t: t << 3),
        ("shl.b32 %r2, %r1, 32;", lambda t: t * 0),
        ("div.s32 %r2, -100, %r1;", lambda t: np.where(t == 0, -1, np.trunc(-100 / np.maximum(t, 1)))),
        ("rem.s32 %r2, -100, 7;", lambda t: t * 0 - 2),
        ("popc.b32 %r2, %r1;", lambda t: np.bitwise_count(t)),
        ("brev.b32 %r3, %r1; brev.b32 %r2, %r3;", lambda t: t),
        ("clz.b32 %r2, %r1;", lambda t: 32 - np.ceil(np.log2(t + 1))),
        ("bfe.u32 %r2, %r1, 1, 3;", lambda t: t >> 1 & 7),
        ("bfe.s32 %r2, %r1, 2, 3;", lambda t: (t >> 2 & 7) - (t >> 1 & 8)),
        (
            "mul.wide.u32 %rd4, %r1, 0x40000000; bfe.u64 %rd5, %rd4, 31, 8; cvt.u32.u64 %r2, %rd5;",
            lambda t: t >> 1,
        ),
        (
            "cvt.u64.u32 %rd4, %r1; bfi.b64 %rd5, %rd4, 0, 33, 9; shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r2, %rd6;",
            lambda t: 2 * t,
        ),
        ("setp.lt.s32 %p1, %r1, 10; selp.b32 %r2, 5, 6, %p1;", lambda t: np.where(t < 10, 5, 6)),
        ("cvt.rn.f32.s32 %f1, %r1; mul.f32 %f2, %f1, 0f3F000000; cvt.rzi.s32.f32 %r2, %f2;", lambda t: t // 2),
        ("shfl.sync.bfly.b32 %r2|%p1, %r1, 1, 31, -1;", lambda t: t ^ 1),
        ("shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1;", lambda t: np.where(t % 32 < 28, t + 4, t)),
        (
            "and.b32 %r3, %r1, 1; setp.eq.s32 %p1, %r3, 1; vote.sync.ballot.b32 %r2, %p1, -1;",
            lambda t: t * 0 + 0xAAAAAAAA,
        ),
        ("redux.sync.add.s32 %r2, %r1, -1;", lambda t: 496 + t // 32 * 1024),
        ("and.b32 %r3, %r1, 3; match.any.sync.b32 %r4, %r3, -1; popc.b32 %r2, %r4;", lambda t: t * 0 + 8),
        ("mov.u32 %r2, %laneid;", lambda t: t % 32),
        # The compiler reads registers that it never writes where the value does not matter.
        ("and.b32 %r2, %r9, 0; add.s32 %r2, %r2, %r1;", lambda t: t),
        ("prmt.b32 %r2, %r1, 0, 0x4440;", lambda t: t & 255),
        # Blocks of a cluster are taken to have the same in shared memory.
        (
            "cvt.rn.f32.s32 %f1, %r1; mul.f32 %f2, %f1, 0f3DCCCCCD; cvt.rn.f16x2.f32 %r2, %f1, %f2;",
            lambda t: _to_bits(t) << 16 | _to_bits(t.astype(np.float32) * np.float32(0.1)),
        ),
        ("mapa.u64 %rd4, %rd2, 1; cvt.u32.u64 %r2, %rd4;", lambda t: 4 * t),
    ],
)
def test_an_instruction_computes_what_ptx_says(instructions, expected) -> None:
    found = np.zeros(64, np.int32)
    run(f"{STORE}{instructions}\n st.global.u32 [%rd3], %r2; ret;", found)
    threads = np.arange(64)
    assert np.array_equal(found, np.asarray(expected(threads)).astype(np.int64).astype(np.uint32).view(np.int32))


LOOP = f"""{STORE}
    mov.u32 %r2, 0;
    mov.u32 %r4, 0;
$L1:
    add.s32 %r4, %r4, %r2;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, COUNT;
    @%p1 bra $L1;
    st.global.u32 [%rd3], %r4;
    ret;
"""


def test_a_short_loop_runs_to_its_end() -> None:
    found = np.zeros(64, np.int32)
    path, _ = run(LOOP.replace("COUNT", "9"), found)
    assert (found == 36).all()
    assert not any(isinstance(step, RepeatedIterations) for step in path.steps)


@pytest.mark.parametrize("rounds", [40, 1000, 100_003])
def test_rounds_that_can_be_foreseen_are_left_out_and_counted(rounds) -> None:
    found = np.zeros(64, np.int32)
    path, _ = run(LOOP.replace("COUNT", str(rounds)), found)
    (loop,) = {visit.block for visit, times in iterate_visits(path.steps) if times > 1}
    assert sum(times for visit, times in iterate_visits(path.steps) if visit.block == loop) == rounds
    assert len(path.steps) < 40


def test_a_loop_within_a_loop_is_left_out_each_time() -> None:
    found = np.zeros(64, np.int32)
    body = f"""{STORE}
        mov.u32 %r5, 0;
        mov.u32 %r4, 0;
    $L0:
        mov.u32 %r2, 0;
    $L1:
        add.s32 %r4, %r4, 1;
        add.s32 %r2, %r2, 1;
        setp.lt.s32 %p1, %r2, 5000;
        @%p1 bra $L1;
        xor.b32 %r5, %r5, 1;
        add.s32 %r6, %r4, 0;
        setp.lt.s32 %p2, %r6, 30000;
        @%p2 bra $L0;
        st.global.u32 [%rd3], %r4;
        ret;
    """
    path, _ = run(body, found)
    assert (found == 30000).all()
    assert len(path.steps) < 200


def test_lanes_that_part_meet_again() -> None:
    found = np.zeros(64, np.int32)
    body = f"""{STORE}
        and.b32 %r2, %r1, 1;
        setp.eq.s32 %p1, %r2, 0;
        mov.u32 %r4, 1;
    $L1:
        add.s32 %r4, %r4, %r4;
        setp.le.s32 %p2, %r4, %r1;
        @%p2 bra $L1;
        @%p1 bra $L2;
        add.s32 %r4, %r4, 1000;
    $L2:
        st.global.u32 [%rd3], %r4;
        ret;
    """
    for rewritten in (False, True):
        found[:] = 0
        run(body, found, rewritten=rewritten)
        threads = np.arange(64)
        powers = np.maximum(2, 2 ** np.ceil(np.log2(threads + 1)).astype(int))
        assert np.array_equal(found, powers + threads % 2 * 1000)


def test_lanes_take_a_condition_or_its_short_alternative() -> None:
    found = np.zeros(64, np.int32)
    body = f"""{STORE}
        setp.lt.u32 %p1, %r1, 20;
        @%p1 bra $L1;
        add.s32 %r4, %r1, 1000;
        bra.uni $L2;
    $L1:
        sub.s32 %r4, 7, %r1;
    $L2:
        st.global.u32 [%rd3], %r4;
        ret;
    """
    for rewritten in (False, True):
        found[:] = 0
        path, _ = run(body, found, rewritten=rewritten)
        threads = np.arange(64)
        assert np.array_equal(found, np.where(threads < 20, 7 - threads, threads + 1000))
    assert len(path.steps) == 1


@pytest.mark.parametrize(("stride", "sectors"), [(4, 4), (8, 8), (32, 32), (128, 32), (0, 1)])
def test_sectors_are_those_that_a_warp_touches(stride, sectors) -> None:
    values = np.zeros(4096, np.int32)
    body = f"""
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, {stride};
        add.s64 %rd3, %rd1, %rd2;
        ld.global.u32 %r2, [%rd3];
        ret;
    """
    path, _ = run(body, values)
    (request,) = (request for visit, _ in iterate_visits(path.steps) for request in visit.requests)
    assert request.counts.tolist() == [sectors, sectors]


@pytest.mark.parametrize(("stride", "passes"), [(4, 1), (8, 2), (128, 32), (132, 1), (0, 1)])
def test_passes_over_shared_memory_are_those_of_the_busiest_bank(stride, passes) -> None:
    body = f"""
        .shared .align 4 .b8 words[16384];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, words;
        mad.lo.s32 %r3, %r1, {stride}, %r2;
        ld.shared.u32 %r4, [%r3];
        ret;
    """
    path, _ = run(body, np.zeros(1, np.int32), block=32)
    (request,) = (request for visit, _ in iterate_visits(path.steps) for request in visit.requests)
    assert request.passes.tolist() == [passes]


@pytest.mark.parametrize(("stride", "lines"), [(1, 1), (4, 2), (8, 4), (64, 32), (0, 1)])
def test_the_constant_cache_serves_a_line_of_64_bytes_at_a_time(stride, lines) -> None:
    body = f"""
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, {stride};
        ld.param.u64 %rd1, [p0];
        add.s64 %rd3, %rd1, %rd2;
        ld.const.u8 %r4, [%rd3];
        ret;
    """
    path, _ = run(body, np.zeros(2048, np.uint8))
    (request,) = (request for visit, _ in iterate_visits(path.steps) for request in visit.requests)
    assert request.passes.tolist() == [lines, lines]


def test_addresses_of_shared_memory_have_32_bits() -> None:
    """An index of 32 bits without sign, such as ~0u, is negative after the address wraps around."""
    found = np.zeros(64, np.int32)
    body = f"""{STORE}
        .shared .align 4 .b8 words[256];
        mov.u64 %rd4, words;
        add.s64 %rd5, %rd4, %rd2;
        st.shared.u32 [%rd5], %r1;
        bar.sync 0;
        not.b32 %r2, %r1;
        mul.wide.u32 %rd6, %r2, 4;
        add.s64 %rd7, %rd4, %rd6;
        ld.shared.u32 %r3, [%rd7+256];
        st.global.u32 [%rd3], %r3;
        ret;
    """
    run(body, found)
    assert found.tolist() == list(range(64))[::-1]


def test_wavefronts_of_equal_accesses_are_counted_once(monkeypatch) -> None:
    counted = []
    original = traffic.count_shared_wavefronts
    monkeypatch.setattr(
        traffic, "count_shared_wavefronts", lambda *args, **options: counted.append(1) or original(*args, **options)
    )
    strides = [4, 8, 128] * 5
    accesses = "\n".join(f"mad.lo.s32 %r3, %r1, {stride}, %r2; st.shared.u32 [%r3], %r1;" for stride in strides)
    body = f".shared .align 4 .b8 words[16384]; mov.u32 %r1, %tid.x; mov.u32 %r2, words;\n{accesses}\nret;"
    path, _ = run(body, np.zeros(1, np.int32), block=32)
    requests = [request for visit, _ in iterate_visits(path.steps) for request in visit.requests]
    assert [request.passes.tolist() for request in requests] == [[1], [2], [32]] * 5
    assert len(counted) == 3


def test_neighboring_words_of_shared_memory_are_loaded_together() -> None:
    found = np.zeros(32, np.int32)
    body = """
        .shared .align 4 .b8 words[16384];
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        shl.b32 %r2, %r1, 4;
        mov.u32 %r3, words;
        add.s32 %r4, %r3, %r2;
        st.shared.u32 [%r4], %r1;
        st.shared.u32 [%r4+4], 10;
        st.shared.u32 [%r4+8], 20;
        st.shared.u32 [%r4+12], 30;
        bar.sync 0;
        ld.shared.u32 %r5, [%r4];
        ld.shared.u32 %r6, [%r4+4];
        ld.shared.u32 %r7, [%r4+8];
        ld.shared.u32 %r8, [%r4+12];
        add.s32 %r9, %r5, %r6; add.s32 %r10, %r7, %r8; add.s32 %r11, %r9, %r10;
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd3, %rd1, %rd2;
        st.global.u32 [%rd3], %r11;
        ret;
    """
    path, _ = run(body, found, block=32)
    assert np.array_equal(found, np.arange(32) + 60)
    loads = [
        r for visit, _ in iterate_visits(path.steps) for r in visit.requests if (r.space, r.kind) == ("shared", "ld")
    ]
    assert [request.passes.tolist() for request in loads] == [[4]]


def test_atomics_on_one_word_are_all_done_and_queue() -> None:
    found = np.zeros(4, np.uint32)
    body = "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; and.b32 %r3, %r1, 3; mul.wide.u32 %rd2, %r3, 4; "
    body += "add.s64 %rd3, %rd1, %rd2; atom.global.add.u32 %r2, [%rd3], %r1; ret;"
    path, _ = run(body, found)
    assert found.tolist() == [np.arange(start, 64, 4).sum() for start in range(4)]
    (request,) = (request for visit, _ in iterate_visits(path.steps) for request in visit.requests)
    assert request.passes.tolist() == [8, 8]


def test_memory_is_as_it_was_after_a_sample() -> None:
    found = np.arange(64, dtype=np.int32)
    _, memory = run(f"{STORE} st.global.u32 [%rd3], 7; st.global.u32 [%rd3], 8; ret;", found)
    assert (found == 8).all()
    memory.restore()
    assert np.array_equal(found, np.arange(64))


def test_what_lies_outside_of_an_array_is_left_alone() -> None:
    found = np.zeros(8, np.int32)
    run(f"{STORE} st.global.u32 [%rd3], 7; ld.global.u32 %r2, [%rd3+4096]; ret;", found)
    assert (found == 7).all()


def test_a_loop_that_waits_for_another_block_is_not_waited_for() -> None:
    flag = np.zeros(1, np.uint32)
    body = "ld.param.u64 %rd1, [p0]; $L1: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; "
    path, _ = run(f"{body} @%p1 bra $L1; ret;", flag)
    assert path.completed


def test_an_instruction_that_is_not_known_is_named() -> None:
    with pytest.raises(KernelError, match=r"instruction frob\.s32"):
        run("frob.s32 %r1, %r2; ret;", np.zeros(1, np.int32))


def test_what_decides_nothing_is_not_computed_and_asks_the_same() -> None:
    """A walk along links in shared memory, that adds up floats on its way: the links decide, the floats do not."""
    body = f"""{STORE}
        .shared .align 4 .b8 links[256];
        ld.param.u64 %rd4, [p1];
        add.s32 %r2, %r1, 7;
        and.b32 %r2, %r2, 63;
        mov.u32 %r3, links;
        shl.b32 %r4, %r1, 2;
        add.s32 %r5, %r3, %r4;
        st.shared.u32 [%r5], %r2;
        bar.sync 0;
        mov.f32 %f1, 0f00000000;
        mov.u32 %r6, %r1;
    $L1:
        mul.wide.u32 %rd5, %r6, 4;
        add.s64 %rd6, %rd4, %rd5;
        ld.global.f32 %f2, [%rd6];
        add.f32 %f1, %f1, %f2;
        shl.b32 %r7, %r6, 2;
        add.s32 %r8, %r3, %r7;
        ld.shared.u32 %r6, [%r8];
        setp.gt.u32 %p1, %r6, 9;
        @%p1 bra $L1;
        st.global.f32 [%rd3], %f1;
        ret;
    """
    values = np.arange(64, dtype=np.float32)
    sums, nothing = np.zeros(64, np.float32), np.zeros(64, np.float32)
    whole, _ = run(body, sums, values)
    less, _ = run(body, nothing, values, values=False)
    assert sums.any()
    assert not nothing.any()
    assert len(whole.steps) == len(less.steps) > 5
    for one, other in zip(whole.steps, less.steps, strict=True):
        assert np.array_equal(one.lanes, other.lanes)
        for asked, again in zip(one.requests, other.requests, strict=True):
            assert np.array_equal(asked.sectors, again.sectors)
            assert np.array_equal(asked.passes, again.passes)


def test_members_of_a_struct_parameter_are_loaded_by_an_address_in_a_register() -> None:
    """LLVM computes the address of a struct parameter once, and of a member that an index selects per lane."""
    text = f"""{HEAD}.visible .entry k(.param .u64 p0, .param .align 8 .b8 p1[16])
    {{
    {STORE}
    mov.b64 %rd4, p1;
    and.b32 %r3, %r1, 3;
    mul.wide.u32 %rd5, %r3, 4;
    add.s64 %rd6, %rd4, %rd5;
    ld.param.b32 %r4, [%rd6];
    ld.param.b32 %r5, [%rd4+8];
    add.s32 %r6, %r4, %r5;
    st.global.u32 [%rd3], %r6;
    }}
    """
    found = np.zeros(64, np.int32)
    memory = SampledMemory({0: found.view(np.uint8)})
    members = np.array([10, 20, 30, 40], np.int32)
    parameters = np.concatenate([np.array([memory.address(0)], np.int64).view(np.uint8), members.view(np.uint8)])
    machine = PtxMachine(assemble_kernel(parse_ptx(text).find_kernel("k")), {})
    machine.run(GridShape((1, 1, 1), (64, 1, 1)), parameters, [0], memory)
    assert found.tolist() == [members[lane % 4] + 30 for lane in range(64)]


def test_a_loop_that_polls_by_an_addition_of_zero_waits_for_other_blocks() -> None:
    waiting = np.zeros(1, np.int32)
    path, _ = run(
        """
        ld.param.u64 %rd1, [p0];
    $again:
        atom.global.add.u32 %r1, [%rd1], 0;
        setp.eq.s32 %p1, %r1, 0;
        @%p1 bra $again;
        ret;
        """,
        waiting,
        values=False,
    )
    assert path.completed
    assert sum(times for _, times in iterate_visits(path.steps)) < 20


def test_blocks_that_are_not_sampled_draw_from_a_queue_too() -> None:
    """Four of 100 blocks that draw tasks until 1000 are drawn execute about ten each, not 250."""
    counter = np.zeros(1, np.int32)
    path, _ = run(
        """
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        setp.ne.s32 %p1, %r1, 0;
        @%p1 bra $end;
    $next:
        atom.global.add.u32 %r2, [%rd1], 1;
        setp.lt.s32 %p2, %r2, 1000;
        @%p2 bra $next;
    $end:
        ret;
        """,
        counter,
        grid=100,
        blocks=range(0, 100, 25),
        values=False,
    )
    draws = sum(
        times for step, times in iterate_visits(path.steps) for request in step.requests if request.kind == "atom"
    )
    assert 10 <= draws <= 12


def test_a_loop_that_stores_the_same_values_again_waits_for_other_blocks() -> None:
    """Each lane copies two words in turn until the second one is set, which no sampled block does."""
    words = np.array([5, 0, 0], np.int32)
    path, _ = run(
        """
        ld.param.u64 %rd1, [p0];
        mov.b32 %r2, 0;
    $next:
        mul.wide.u32 %rd2, %r2, 4;
        add.s64 %rd3, %rd1, %rd2;
        ld.global.u32 %r3, [%rd3];
        st.global.u32 [%rd3], %r3;
        xor.b32 %r2, %r2, 1;
        ld.global.u32 %r4, [%rd1+8];
        setp.eq.s32 %p1, %r4, 0;
        @%p1 bra $next;
        st.global.u32 [%rd1+8], 1;
        ret;
        """,
        words,
        values=False,
    )
    assert path.completed
    assert sum(times for _, times in iterate_visits(path.steps)) < 30
    assert words.tolist() == [5, 0, 1]


def test_a_loop_that_changes_memory_alone_runs_until_it_ends() -> None:
    """Each iteration moves all words by one place, and loads the same values until a one arrives at the first place."""
    words = np.array([0] * 20 + [1] * 2, np.int32)
    moves = "".join(
        f"ld.global.u32 %r1, [%rd1+{4 * place + 4}]; st.global.u32 [%rd1+{4 * place}], %r1;" for place in range(21)
    )
    body = f"ld.param.u64 %rd1, [p0]; $next: {moves} ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0;"
    run(f"{body} @%p1 bra $next; ret;", words, values=False)
    assert words.all()


@pytest.mark.parametrize(
    ("instruction", "passes"),
    [
        ("red.global.add.u32 [%rd1], %r1", 1),
        ("red.global.min.s32 [%rd4], %r1", 1),
        ("red.global.xor.b32 [%rd1], %r1", 1),
        ("@%p1 red.global.max.u32 [%rd1], %r1", 1),
        ("atom.global.add.u32 %r2, [%rd1], 1", 1),
        ("@%p1 atom.global.add.u32 %r2, [%rd4], 1", 1),
        ("atom.global.add.u32 %r2, [%rd4], %r1", 1),
        ("@%p1 atom.global.add.u32 %r2, [%rd1], %r1", 8),
        ("atom.global.min.s32 %r2, [%rd1], %r1", 32),
        ("red.global.max.u64 [%rd1], %rd3", 32),
        ("red.global.add.f32 [%rd1], %f1", 32),
        ("red.global.inc.u32 [%rd1], %r1", 32),
        ("atom.global.add.u32 %r2, [%rd3], 1", 16),
        ("red.global.add.u32 [%rd3], %r1", 16),
    ],
)
def test_the_assembler_combines_operands_of_a_warp_at_an_address_that_does_not_depend_on_the_lane(
    instruction, passes
) -> None:
    """Expected are the operations in nvcc 13.0's code for compute capabilities 8.6 and 9.0."""
    path, _ = run(
        f"""
        ld.param.u64 %rd1, [p0];
        mov.u32 %r1, %tid.x;
        and.b32 %r3, %r1, 1;
        mul.wide.u32 %rd2, %r3, 4;
        add.s64 %rd3, %rd1, %rd2;
        mov.u32 %r4, %ctaid.x;
        mul.wide.u32 %rd5, %r4, 4;
        add.s64 %rd4, %rd1, %rd5;
        setp.lt.u32 %p1, %r1, 8;
        mov.b32 %r2, 0;
        {instruction};
        st.global.u32 [%rd1+8], %r2;
        ret;
        """,
        np.zeros(4, np.int32),
        grid=2,
        block=32,
    )
    (request,) = (
        request
        for visit, _ in iterate_visits(path.steps)
        for request in visit.requests
        if request.kind in ("atom", "red")
    )
    assert set(request.passes.tolist()) == {passes}


def test_iterations_of_a_loop_that_lanes_leave_one_after_the_other_are_skipped() -> None:
    """Lane i executes 2000 - 6 i iterations, and stores their number."""
    rounds = 2000 - 6 * np.arange(256)
    counts = np.zeros(256, np.int32)
    path, _ = run(
        f"""
        {STORE}
        mul.lo.s32 %r2, %r1, 6;
        sub.s32 %r3, 2000, %r2;
        mov.u32 %r4, 0;
    $next:
        add.s32 %r4, %r4, 1;
        setp.ne.s32 %p1, %r4, %r3;
        @%p1 bra $next;
        st.global.u32 [%rd3], %r4;
        ret;
        """,
        counts,
        block=256,
    )
    assert np.array_equal(counts, rounds)
    (loop,) = {step.steps[0].block for step in path.steps if not isinstance(step, Visit)}
    visits = [(visit, times) for visit, times in iterate_visits(path.steps) if visit.block == loop]
    assert sum(times * visit.lanes.sum(dtype=int) for visit, times in visits) == pytest.approx(rounds.sum(), rel=0.005)
    assert sum(times * (visit.lanes > 0).sum() for visit, times in visits) == pytest.approx(
        rounds.reshape(-1, 32).max(axis=1).sum(), rel=0.02
    )
    assert len(path.steps) < 600


@pytest.mark.parametrize("rewritten", [False, True])
def test_iterations_in_which_lanes_finish_a_part_of_a_loop_are_executed(rewritten) -> None:
    """All lanes execute 400 iterations, and lane i loads in the first 1 + i of them; the assembler predicates that."""
    counts = np.zeros(64, np.int32)
    path, _ = run(
        f"""
        {STORE}
        mov.u32 %r2, 0;
        mov.u32 %r4, 0;
        mov.u32 %r5, 7;
    $next:
        setp.eq.u32 %p1, %r5, 0;
        @%p1 bra $skip;
        add.s32 %r4, %r4, 1;
        ld.global.u32 %r5, [%rd3];
        setp.gt.u32 %p2, %r4, %r1;
        selp.b32 %r5, 0, 7, %p2;
    $skip:
        add.s32 %r2, %r2, 1;
        setp.lt.s32 %p3, %r2, 400;
        @%p3 bra $next;
        st.global.u32 [%rd3], %r4;
        ret;
        """,
        counts,
        rewritten=rewritten,
    )
    assert counts.tolist() == list(range(1, 65))
    loads = [
        times * request.lanes.sum(dtype=int)
        for visit, times in iterate_visits(path.steps)
        for request in visit.requests
        if request.kind == "ld"
    ]
    assert sum(loads) == counts.sum()
    assert any(isinstance(step, RepeatedIterations) for step in path.steps)


def test_skipped_iterations_advance_counts_and_positions() -> None:
    chosen = np.add.outer(np.arange(1000), np.arange(32)) % 4 == 0
    body = (
        STORE
        + """
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    mov.u32 %r4, 50000;
    mov.u64 %rd5, %rd3;
$L1:
    ld.global.u32 %r5, [%rd5];
    setp.ne.u32 %p1, %r5, 0;
    selp.b32 %r6, 1, 0, %p1;
    add.s32 %r3, %r3, %r6;
    sub.s32 %r4, %r4, %r6;
    add.s64 %rd5, %rd5, 128;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p2, %r2, 1000;
    @%p2 bra $L1;
    st.global.u32 [%rd3], %r3;
    st.global.u32 [%rd3+128], %r4;
"""
    )
    path, memory = run(body, chosen.astype(np.uint32), block=32)
    assert any(isinstance(step, RepeatedIterations) for step in path.steps)
    counts, positions = memory.load(memory.address(0) + 4 * np.arange(64), np.dtype(np.uint32)).reshape(2, 32)
    assert counts.tolist() == chosen.sum(axis=0).tolist()
    assert (counts + positions == 50_000).all()


@pytest.mark.parametrize("stored", [[3], [1, 60, 255], np.arange(256)])
def test_restoring_memory_undoes_stores_to_few_and_to_most_of_its_values(stored) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 30, 256).astype(np.int32)
    expected = values.copy()
    memory = SampledMemory({0: values.view(np.uint8)})
    for places, dtype in (([7, 8], np.int32), (stored, np.int32), (stored, np.uint8), ([7, 9], np.int64)):
        memory.store(memory.address(0) + np.asarray(places) * np.dtype(dtype).itemsize, np.int64(1), np.dtype(dtype))
    assert (values != expected).any()
    memory.restore()
    assert values.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("between", "stores"),
    [
        ("", 1),
        ("ld.shared.u32 %r9, [%r4+4]; add.s32 %r8, %r8, %r9;", 2),  # what the first store wrote
        ("st.shared.u32 [%r7], %r8;", 3),  # may be one of the words
        ("add.s32 %r5, %r5, 100;", 2),  # a stored value changes
        ("bar.sync 0;", 2),
    ],
)
def test_adjacent_stores_to_shared_memory_are_one_unless_something_between_needs_them(between, stores) -> None:
    body = f"""
        .shared .align 16 .b8 own[1024];
        {STORE}
        mov.u32 %r2, own;
        shl.b32 %r3, %r1, 4;
        add.s32 %r4, %r2, %r3;
        add.s32 %r5, %r1, 1000;
        add.s32 %r6, %r1, 2000;
        mov.u32 %r8, 5;
        add.s32 %r7, %r4, 12;
        st.shared.u32 [%r4+4], %r6;
        st.shared.u32 [%r4], %r5;
        {between}
        st.shared.u32 [%r4+12], %r1;
        st.shared.u32 [%r4+8], %r8;
        ld.shared.u32 %r10, [%r4];
        ld.shared.u32 %r11, [%r4+4];
        ld.shared.u32 %r12, [%r4+8];
        ld.shared.u32 %r13, [%r4+12];
        mad.lo.s32 %r14, %r10, 3, %r11;
        mad.lo.s32 %r15, %r12, 7, %r13;
        mad.lo.s32 %r16, %r14, 11, %r15;
        st.global.u32 [%rd3], %r16;
        ret;
    """
    found = []
    for rewritten in (True, False):
        sums = np.zeros(64, np.int32)
        path, _ = run(body, sums, rewritten=rewritten)
        found.append(sums.tolist())
        requests = [each for visit in path.steps for each in visit.requests if each.space == "shared"]
        if rewritten:
            assert sum(each.kind == "st" for each in requests) == stores
    assert found[0] == found[1]
    assert len(set(found[0])) == 64
