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
