"""Old values: a thread has read a later write of another thread, but not the earlier one that decides what it does."""

from __future__ import annotations

import pytest

from gpu.kernel.simulate import simulate

MESSAGE = """__global__ void run(volatile int *kind, volatile int *ready, int *sums) {{
    if (blockIdx.x == 0) {{
        {send}
    }} else {{
        {receive}
        else atomicAdd(sums, 5);
    }}
}}"""
WAIT = "while (!*ready) { } __threadfence();"


@pytest.mark.parametrize(
    ("send", "receive", "is_wrong"),
    [
        ("*kind = 1; __threadfence(); *ready = 1;", f"{WAIT} if (*kind == 1) atomicAdd(sums + 1, 5);", False),
        ("*kind = 1; *ready = 1;", f"{WAIT} if (*kind == 1) atomicAdd(sums + 1, 5);", True),
        ("*kind = 1; atomicAdd((int *)ready, 1);", f"{WAIT} if (*kind == 1) atomicAdd(sums + 1, 5);", True),
        ("*kind = 1; *ready = 1;", f"{WAIT} while (!*kind) {{ }} if (*ready) atomicAdd(sums + 1, 5);", False),
        ("*kind = 1; *ready = 1;", f"if (*kind == 1) {{ }} {WAIT} if (*ready) atomicAdd(sums + 1, 5);", False),
        (
            "*kind = 1; *ready = 1;",
            f"{WAIT} for (int n = 0; n < 1; ) if (*kind) n++; if (*ready) atomicAdd(sums + 1, 5);",
            False,
        ),
    ],
    ids=["fence", "no fence", "no fence before an atomic write", "waits for both", "read before", "read again"],
)
def test_a_message_in_two_volatile_words(send: str, receive: str, is_wrong: bool) -> None:
    source = MESSAGE.format(send=send, receive=receive)
    findings = simulate("test.cu", "run", 2, 1, ["zeros:1", "zeros:1", "zeros:2"], source=source).findings
    assert [finding.kind for finding in findings] == ["race"] * is_wrong
    for finding in findings:
        assert "may still read the old value here, as no fence separates the two writes" in finding.message
        assert [position.line for position in finding.positions] == [3, 5]


DEQUE = """__global__ void run(volatile int *top, volatile int *bottom, volatile int *task, int *count) {{
    if (blockIdx.x == 0) {{
        for (int i = 0; i < 3; i++) {{
            task[i] = 2 - i;
            {fence}
            *bottom = i + 1;
        }}
    }} else {{
        for (int tries = 0; tries < 5; tries++) {{
            const int t = *top;
            __threadfence();
            if (t >= *bottom) continue;
            const int mine = task[t];
            if (atomicCAS((int *)top, t, t + 1) == t) atomicAdd(count + mine, 1);
        }}
    }}
}}"""


@pytest.mark.parametrize(("fence", "count"), [("__threadfence();", 0), ("", 1)])
def test_a_task_that_a_thief_validates_by_a_compare_and_swap(fence: str, count: int) -> None:
    """The compare-and-swap validates that no other thief took the task, not that the owner's write is visible."""
    arguments = ["zeros:1", "zeros:1", "zeros:4", "zeros:4"]
    findings = simulate("test.cu", "run", 2, 1, arguments, source=DEQUE.format(fence=fence)).findings
    assert len(findings) == count
    assert all("may still read the old value" in finding.message for finding in findings)


QUEUE = """__global__ void run(volatile int *slots, volatile int *last, int *sums) {{
    if (blockIdx.x == 0) {{
        for (int n = 1; n < 5; n++) {{
            slots[n] = n;
            *last = n;
        }}
    }} else {{
        int at = 0;
        while (!(at = *last)) {{}}
        for (int tries = 0; tries < 9; tries++) {{
            if (slots[at] == at) {{ atomicAdd(sums, at); tries = 9; }}
            else {{ {retry} }}
        }}
    }}
}}"""


@pytest.mark.parametrize(
    ("retry", "count"), [("at = *last;", 0), ("atomicAdd(sums + 1, 1); at = *last;", 1)], ids=["starts over", "acts"]
)
def test_a_reader_that_starts_over_discards_an_old_value(retry: str, count: int) -> None:
    arguments = ["zeros:5", "zeros:1", "zeros:2"]
    findings = simulate("test.cu", "run", 2, 1, arguments, source=QUEUE.format(retry=retry)).findings
    assert len(findings) == count


SEQUENCE_LOCK = """#include <cuda/atomic>
using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
__global__ void run(unsigned *sequence, unsigned *words, unsigned *out) {{
    if (blockIdx.x == 0) {{
        for (unsigned n = 1; n < 4; n++) {{
            Word(*sequence).store(2 * n - 1, cuda::memory_order_relaxed);
            cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
            for (int w = 0; w < {words}; w++) Word(words[w]).store(n, cuda::memory_order_relaxed);
            Word(*sequence).store(2 * n, cuda::memory_order_release);
        }}
    }} else {{
        unsigned before, after, sum;
        do {{
            before = Word(*sequence).load(cuda::memory_order_acquire);
            sum = 0;
            for (int w = 0; w < {words}; w++) sum += Word(words[w]).load(cuda::memory_order_{data});
            {fence}
            after = Word(*sequence).load(cuda::memory_order_{last});
        }} while (before != after || before % 2);
        out[blockIdx.x] = sum;
    }}
}}"""


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize(
    ("data", "fence", "last", "is_wrong"),
    [
        ("relaxed", "cuda::atomic_thread_fence(cuda::memory_order_acquire);", "relaxed", False),
        ("relaxed", "__threadfence();", "relaxed", False),
        ("acquire", "", "relaxed", False),
        ("relaxed", "", "relaxed", True),
        ("relaxed", "", "acquire", True),
        ("relaxed", "cuda::atomic_thread_fence(cuda::memory_order_release);", "relaxed", True),
    ],
    ids=["acquire fence", "fence", "data acquire", "no fence", "last read acquires", "release fence"],
)
def test_a_reader_of_a_sequence_lock_without_a_fence(
    data: str, fence: str, last: str, is_wrong: bool, words: int
) -> None:
    """An acquire of the last read orders what follows it, but not the reads of the data before it."""
    source = SEQUENCE_LOCK.format(data=data, fence=fence, last=last, words=words)
    findings = simulate("test.cu", "run", 2, 1, ["zeros:1", f"zeros:{words}", "zeros:2"], source=source).findings
    assert [finding.kind for finding in findings] == ["race"] * is_wrong
    for finding in findings:
        assert "may still read the old value here, as no fence separates the two reads" in finding.message
        assert [position.line for position in finding.positions] == [6, 18]


VOLATILE_SEQUENCE_LOCK = """__global__ void run(volatile unsigned *sequence, volatile int *first, volatile int *second,
                    int *sums) {{
    if (blockIdx.x == 0) {{
        for (int n = 1; n < 4; n++) {{
            *sequence = 2 * n - 1;
            {fence}
            *first = n;
            *second = n;
            __threadfence();
            *sequence = 2 * n;
        }}
    }} else {{
        unsigned before, after;
        int one, other;
        do {{
            before = *sequence;
            __threadfence();
            one = *first;
            other = *second;
            __threadfence();
            after = *sequence;
        }} while (before != after || before % 2);
        atomicAdd(sums, one - other);
    }}
}}"""


@pytest.mark.parametrize(("fence", "count"), [("__threadfence();", 0), ("", 1)])
def test_a_writer_of_a_sequence_lock_without_its_first_fence(fence: str, count: int) -> None:
    """The old sequence number ends the reader's loop, since it equals the one that the reader has read before."""
    source = VOLATILE_SEQUENCE_LOCK.format(fence=fence)
    findings = simulate("test.cu", "run", 3, 1, ["zeros:1", "zeros:1", "zeros:1", "zeros:1"], source=source).findings
    assert [finding.kind for finding in findings] == ["race"] * count
    for finding in findings:
        assert "as no fence separates the two writes" in finding.message
        assert [position.line for position in finding.positions] == [5, 21]


FLAG_IN_ANOTHER_BLOCK = """#include <cooperative_groups.h>
__global__ void __cluster_dims__(2, 1, 1) run(int *data, volatile int *words, int *sums) {{
    __shared__ int flags[2];
    auto cluster = cooperative_groups::this_cluster();
    flags[0] = flags[1] = 0;
    cluster.sync();
    volatile int *remote = cluster.map_shared_rank(flags, 1), *own = flags;
    if (cluster.block_rank() == 0) {{
        {before}
        data[0] = 5;
        __threadfence();
        {after}
    }} else {{
        int first, second;
        {read}
        __threadfence();
        atomicAdd(sums, data[0]);
    }}
    cluster.sync();
}}"""


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        (
            "",
            "remote[0] = 1; __threadfence(); remote[1] = 1;",
            "do { first = own[0]; second = own[1]; } while (!first || !second || own[0] != first);",
        ),
        (
            "words[0] = 1; words[1] = 1;",
            "remote[0] = 1;",
            "while (!words[1]) {} while (!words[0]) {} if (words[1] && words[0]) while (!own[0]) {}",
        ),
    ],
    ids=["early reads", "late writes"],
)
def test_a_flag_in_the_shared_memory_of_another_block_orders_what_it_releases(
    before: str, after: str, read: str
) -> None:
    source = FLAG_IN_ANOTHER_BLOCK.format(before=before, after=after, read=read)
    assert simulate("test.cu", "run", 2, 1, ["zeros:1", "zeros:2", "zeros:1"], source=source).findings == []
