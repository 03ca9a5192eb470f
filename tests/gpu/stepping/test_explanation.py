"""Statements told with the values of one thread."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.recording.recording import Recording
from gpu.stepping.explanation.sentences import explain
from tests.gpu.simulator import statements
from tests.gpu.stepping.recordings import record, record_launch
from tests.gpu.stepping.test_tally import BRENT_KUNG, SHUFFLE


def explain_statements(
    body: str, arguments=(), *, parameters: str = "int *a", thread: int = 1, before: str = "", block: int = 8
):
    """Return what is told of each statement of a kernel's body, by thread."""
    source = f"{before}\n__global__ void k({parameters}) {{\n{body}\n}}"
    recording = record_launch(source, list(arguments) or [np.arange(10, 74, dtype=np.int32)], block=block)
    assert not recording.failure
    texts = [explain(recording, moment, 0, thread).text for moment in range(recording.event_count)]
    return [text for text in texts if text]


def test_brent_kung_as_a_lecturer_wants_it():
    values = np.array([3, 1, 7, 0, 4, 1, 6, 3, 5, 2, 2, 8, 1, 0, 9, 4], np.int32)
    recording = record_launch(BRENT_KUNG, [values], block=8)
    texts = [explain(recording, moment, 0, 0).text for moment in range(recording.event_count)]
    assert "s[11] = 17 + 25 = 42" in texts
    assert "i + stride < 16  →  7 + 4 < 16 is true" in texts
    assert "i = (0 + 1) * 4 * 2 - 1 = 7" in texts
    assert "stride < 16  →  1 < 16 is true" in texts
    assert "stride = 1 * 2 = 2" in texts
    assert "__syncthreads(): waits" in texts
    assert texts[:2] == ["t = 0", "s[0] = a[0] = 3"]
    moment = texts.index("s[11] = 17 + 25 = 42")
    assert dict(explain(recording, moment, 0, 0).variables) == {"t": "0", "stride": "4", "i": "7"}
    assert explain(recording, moment, 0, 1).text == "", "it takes no part"
    assert explain(recording, moment, 1, 0).text == "", "there is no such block"
    assert explain(recording, recording.event_count, 0, 0).text == ""


@pytest.mark.parametrize("expression", ["a[0] * a[0] + a[1]", "a[1] + a[0] * a[0]", "-(-a[1] - a[0] * a[0])"])
def test_a_fused_sum_has_the_value_that_was_computed(expression):
    x = np.float32(1 + 2.0**-12)
    values = np.array([x, -(x * x), *[0] * 62], np.float32)
    body = f"float y = {expression}; a[int(1e9f * ({expression}))] = 3; y -= a[0] * 0; y += a[0] * a[0];"
    first, second, *_, last = explain_statements(body, [values], parameters="float *a", thread=0, block=1)
    assert first.endswith(" = 5.96046e-08"), first
    assert second == "a[59] = 3"
    assert last.endswith(" = 1.00049"), last


def test_shuffles():
    recording = record_launch(SHUFFLE, [np.arange(32, dtype=np.int32)])
    texts = [explain(recording, moment, 0, 3).text for moment in range(recording.event_count)]
    assert "v += __shfl_down_sync(0xffffffff, v, d): 3 + 19 = 22" in texts
    assert "v = a[3] = 3" in texts
    texts = [explain(recording, moment, 0, 31).text for moment in range(recording.event_count)]
    assert "v += __shfl_down_sync(0xffffffff, v, d): 31 + 31 = 62" in texts, "the last lane reads its own value"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a[threadIdx.x] *= a[2] + 1;", "a[1] = 11 * (12 + 1) = 143"),
        ("a[1] -= -5;", "a[1] = 11 - (-5) = 16"),
        ("a[threadIdx.x]++;", "a[1] = 11 + 1 = 12"),
        ("a[2] = a[threadIdx.x] == 11 ? a[5] : a[6];", "a[2] = 15"),
        ("a[0] = 7 / 2 * 2.5f;", "a[0] = 7 / 2 * 2.5f = 7"),
        ("a[0] = a[1] / 2 * 2.5f;", "a[0] = 11 / 2 * 2.5 = 12"),
        ("a[0] = (int)(a[1] / 2.f);", "a[0] = 11 / 2 = 5"),
        ("a[0] = min(a[1], 5) + max(1, 2);", "a[0] = min(11, 5) + max(1, 2) = 7"),
        ("if (threadIdx.x > 3 && a[0] > 1) a[0] = 1;", "threadIdx.x > 3 && a[0] > 1  →  1 > 3 is false"),
        ("int *p = a + 3; *p = p[1] + p[2];", "*p = 14 + 15 = 29"),
        ("return;", "return"),
        ("int x;", "int x"),
        ("for (int i = 0, j = 9; i < 1; i++, j -= 2) ;", "i = 0 + 1 = 1, j = 9 - 2 = 7"),
        ("do { a[1] = 1; } while (a[1] > 1);", "a[1] > 1  →  1 > 1 is false"),
        ("a[1] = 4; // not; this", "a[1] = 4"),
        ("__shared__ int s[8][4]; s[threadIdx.x][2] = a[1] +\n  2;", "s[1][2] = 11 + 2 = 13"),
        (
            "int s[2][4] = {}; if (threadIdx.x == 1 && s[a[1] - 10][2] == 0) a[1] = 0;",
            "threadIdx.x == 1 && s[a[1] - 10][2] == 0  →  1 == 1 && 0 == 0 is true",
        ),
        ("int s[4] = {1, 2, a[1]}; a[1] = s[2];", "s = {1, 2, a[1], 0} = {1, 2, 11, 0}"),
        ("a[1] = (a[2] & 7) << (a[3] - 12) | 1;", "a[1] = ((12 & 7) << (13 - 12)) | 1 = 9"),
        ("a[1] = -a[2] - -3 + (a[3] - (a[4] - 1));", "a[1] = -12 - (-3) + (13 - (14 - 1)) = -9"),
        (
            "if ((unsigned)(threadIdx.x - 2) < a[1]) a[1] = 0;",
            "(unsigned)(threadIdx.x - 2) < a[1]  →  1 - 2 < 11 is false",
        ),
        ("int &v = a[threadIdx.x]; v += 2;", "v = a[1]"),
        ("auto f = [&](int v) { return a[3] + v; }; a[1] = f(4);", "a[1] = f(4) = 17"),
        (
            "int x = threadIdx.x; a[1] = __shfl_down_sync(255, x * 2, 1) + 1;",
            "a[1] = __shfl_down_sync(255, x * 2, 1) + 1: 4 + 1 = 5",
        ),
        ("int i = 3; i++; a[i--] = 7;", "a[4] = 7"),
        ("a[1] = a[2] = 5;", "a[1] = a[2] = 5"),
        ("unsigned u = 0; u -= 1;", "u = 0 - 1 = 4294967295"),
        ("bool b = a[1] > 3; a[1] = !b;", "a[1] = !true = 0"),
        ("float f = sqrtf(a[6] * 1.f); a[0] = f;", "f = sqrtf(16 * 1) = 4"),
        ("float f = 16777216; f += a[1] - 10;", "f = 16777216 + (11 - 10) = 16777216"),
        ("switch (a[1] % 4) { case 3: a[1] = 0; }", "a[1] % 4  →  11 % 4  →  3"),
        ("atomicMax(&a[40], threadIdx.x + 100);", "atomicMax(&a[40], 1 + 100): a[40] from 100 to 101"),
        ("a[1] = [](int x) { return x + 1; }(3);", None),
    ],
)
def test_statements(body, expected):
    texts = explain_statements(body)
    assert expected in texts if expected else texts[-1] == "a[1] = {}(3) = 4"


def test_calls_macros_vectors_and_structs():
    before = """
    #define COMBINE(a, b) ((a) + (b))
    #define LARGER(a, b) max(a, b)
    struct P { int x, y; };
    __device__ int twice(int x) { return 2 * x; }"""
    texts = explain_statements("""
    a[1] = COMBINE(a[2], a[3]);
    a[1] = LARGER(a[2], a[3]);
    P p;
    p.y = twice(a[2]);
    a[3] = p.y;
    int4 v = ((int4 *)a)[2];
    a[4] = v.y + 1;
    """, before=before)  # fmt: skip
    assert texts[:3] == ["a[1] = 12 + 13 = 25", "a[1] = max(12, 13) = 13", "P p"]
    assert texts[3:7] == ["p.y = twice(12) = 24", "return 2 * 12 = 24", "p.y = twice(12) = 24", "a[3] = p.y = 24"]
    assert texts[-1].endswith("= 20")


def test_a_statement_that_calls_a_function_takes_effect_after_the_call():
    source = """
    __device__ int twice(int x) { return 2 * x; }
    __global__ void k(int *a) { a[1] = twice(a[2]); }"""
    recording = record_launch(source, [np.arange(4, dtype=np.int32)], block=1)
    seen = [explain(recording, moment, 0, 0) for moment in range(recording.event_count)]
    assert [each.text for each in seen] == ["a[1] = twice(2) = 4", "return 2 * 2 = 4", "a[1] = twice(2) = 4"]
    assert [each.call for each in seen] == ["twice", "", ""]


def test_macros_stand_for_their_values():
    before = """
    #define WARP 32
    #define HALF (WARP / 2)
    #ifndef OPEN
    #define OPEN 4
    #else
    #define OPEN 5
    #endif"""
    assert explain_statements("a[1] = HALF + threadIdx.x;", before=before) == ["a[1] = 16 + 1 = 17"]
    assert explain_statements("int x = OPEN * 2; if (x < HALF) return;", before=before)[:2] == [
        "x = OPEN * 2 = 8",
        "x < HALF  →  8 < 16 is true",
    ]
    assert explain_statements("a[1] = OPEN * 2;", before=before) == ["a[1] = OPEN * 2 = 8"]

    def program(engine, module):
        built = engine.build("kernel.cu", {"SIZE": 9})
        engine.launch(built.kernel("k"), (1, 1, 1), (1, 1, 1), engine.upload(np.zeros(4, np.int32)))

    source = """
    #ifndef SIZE
    #define SIZE 3
    #endif
    __global__ void k(int *a) { a[0] = SIZE - 1; }"""
    recording = record(source, program)
    assert explain(recording, 0, 0, 0).text == "a[0] = SIZE - 1 = 8"


def test_vectors_are_told_with_all_their_parts():
    texts = explain_statements(
        "float4 *v = (float4 *)a; v[1] = v[threadIdx.x]; float4 w = v[0]; w.y += 1; v[2] = w;",
        [np.arange(32, dtype=np.float32)],
        parameters="float *a",
    )
    assert texts[1] == "v[1] = v[1] = (4, 5, 6, 7)"
    assert texts[-1].endswith("(0, 2, 2, 3)")


def test_doubles_and_sixteen_bits():
    texts = explain_statements("a[threadIdx.x] = a[threadIdx.x] / 3;", [np.ones(8)], parameters="double *a")
    assert texts == ["a[1] = 1 / 3 = 0.333333"]
    texts = explain_statements("a[1] += 70000;", [np.ones(8, np.int16)], parameters="short *a")
    assert texts == ["a[1] = 1 + 70000 = 4465"]


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=statements.bodies(), seed=st.integers(0, 1000))
def test_random_programs(body, seed):
    """Whatever is told as a result is what was recorded, and nothing computed on the way contradicts it."""
    source = f"""
    #define LEAVE(value) {{ out[t] = (value); return; }}
    __global__ void k(const int *in, int *out) {{
        int t = threadIdx.x;
        int a = in[t], b = in[t + 40], c = t;
        {body}
    }}
    """
    values = np.random.default_rng(seed).integers(-20, 20, 80).astype(np.int32)
    recording = record_launch(source, [values, np.zeros(40, np.int32)], block=40)
    for moment in range(min(recording.event_count, 60)):
        event = recording.launches[0].trace.events[moment]
        for lane in event.lanes[:: max(1, event.lanes.size // 3)].tolist():
            text = explain(recording, moment, 0, lane).text
            assert text
            if event.true_lanes is not None:
                assert text.endswith(f"is {'true' if lane in event.true_lanes else 'false'}")
            changed = [each.values[lane] for each in event.registers.values() if each.defined[lane]]
            if event.true_lanes is None and changed:
                assert {str(value) for value in changed} <= set(re.findall(r"-?\d+", text)), text
            if event.true_lanes is None and len(changed) == 1:
                assert text.endswith(f" = {changed[0]}"), text


def test_what_is_told_is_saved(tmp_path):
    recording = record_launch(BRENT_KUNG, [np.arange(16, dtype=np.int32)], block=8)
    recording.save(tmp_path / "recording.zip")
    loaded = Recording.load(tmp_path / "recording.zip")
    for moment in range(recording.event_count):
        assert explain(loaded, moment, 0, 2) == explain(recording, moment, 0, 2)
