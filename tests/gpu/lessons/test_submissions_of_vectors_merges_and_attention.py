"""Submissions written by hand for the lessons on vector loads, merge path and attention."""

from __future__ import annotations

import pytest

from tests.gpu.lessons.edited_solutions import Edits, grade, is_rejected

QUADS = "23-vector-loads/quads"
RANGE = "23-vector-loads/range"
SPLIT = "24-merge-and-segments/split"
MERGE = "24-merge-and-segments/merge"
SEGMENTS = "24-merge-and-segments/segments"
WARP = "24-merge-and-segments/warp-segments"
SCORES = "25-attention/scores"
SOFTMAX = "25-attention/softmax"
ONLINE = "25-attention/online"
TILES = "25-attention/tiles"

SEARCH = """while (low < high) {{
        int mid = (low + high) / 2;
        if ({}) low = mid + 1; else high = mid;
    }}
    return low;"""
PICK = "bool from_a = i < n && (j == m || a[i] <= b[j]);"
UPDATE = """if (score > largest) {{
        float f = expf(largest - score); sum *= f; largest = score;
        for (int c = 0; c < 4; ++c) {};
    }}
    float p = {}; sum += p;
    for (int c = 0; c < 4; ++c) out[c] += p * V[4 * k + c];"""
TAIL = "    int last = 4 * quads + i;\n    if (last < n) y[last] = 2.0f * x[last];\n"

# A text replaces the gap; pairs replace parts of the solution.
WRONG: list[tuple[str, str | Edits]] = [
    (QUADS, "for (int k = 4 * i; k < min(4 * i + 4, n); ++k) y[k] = 2.0f * x[k];"),
    (QUADS, ((TAIL, "    if (i < (4 - n % 4) % 4) y[4 * quads + i] = 2.0f * x[4 * quads + i];\n"),)),
    (QUADS, (("2.0f * v.z", "2.0f * (int)v.z"),)),
    (QUADS, (("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x"),)),
    (RANGE, (("int aligned = min((first + 3) / 4 * 4, n)", "int aligned = min(4, n)"),)),
    (RANGE, (("(first + 3) / 4 * 4", "first / 4 * 4 + 4"), ("if (first + i < aligned)", "if (i < 3)"))),
    (RANGE, (("int rest = aligned + 4 * quads", "int rest = n / 4 * 4"),)),
    (SPLIT, "while (low < high && a[low] <= b[d - 1 - low]) ++low; return low;"),
    (SPLIT, SEARCH.format("a[mid] - b[d - 1 - mid] <= 0")),
    (SPLIT, SEARCH.format("(float)a[mid] <= (float)b[d - 1 - mid]")),
    (SPLIT, SEARCH.format("(short)a[mid] <= (short)b[d - 1 - mid]")),
    (SPLIT, "return d * n / (n + m);"),
    (MERGE, ((PICK, "int p = i < n ? a[i] : 2147483647, q = j < m ? b[j] : 2147483647; bool from_a = p <= q;"),)),
    (MERGE, (("blockIdx.x * blockDim.x", "blockIdx.x * 32"),)),
    (MERGE, (("a[i++] : b[j++]", "(float)a[i++] : (float)b[j++]"),)),
    (SEGMENTS, (("int sum = t >= stride && f[t] == 0", "int sum = t >= stride && begins[t] == 0"),)),
    (SEGMENTS, (("stride < 64", "stride < 32"),)),
    (SEGMENTS, (("__shared__ int s", "__shared__ short s"),)),
    (WARP, (("31 - __clz(votes & (0xffffffffu >> (31 - lane)))", "__ffs(votes) - 1"),)),
    (WARP, (("threadIdx.x % 32", "threadIdx.x"),)),
    (WARP, (("        int before = __shfl_up_sync(0xffffffffu, sum, d);\n        if (lane - d >= first) sum += before;",
             "        if (lane - d >= first) sum += __shfl_up_sync(0xffffffffu, sum, d);"),)),
    (SCORES, (("sqrtf(d)", "2.0f"),)),
    (SCORES, (("sqrtf(d)", "sqrtf(m)"),)),
    (SOFTMAX, (("expf(row[k] - largest)", "expf(fminf(row[k], 80.0f))"),)),
    (SOFTMAX, (("float largest = -INFINITY", "float largest = -100.0f"),)),
    (SOFTMAX, (("k += 32) largest", "k += 64) largest"),)),
    (ONLINE, UPDATE.format("out[c] += f", "expf(score - largest)")),
    (ONLINE, UPDATE.format("out[c] *= f", "expf(score)")),
    (ONLINE, (("-INFINITY", "-100.0f"),)),
    (ONLINE, (("power * V[4 * k + c]", "power * (int)V[4 * k + c]"),)),
    (TILES, (("__syncthreads", "__syncwarp"),)),
    (TILES, (("first < m;", "first < min(m, 32);"),)),
    (TILES, (("own[c] * keys[4 * k + c]", "own[c] * K[4 * (first + k) + c]"),)),
]  # fmt: skip
RIGHT: list[tuple[str, str | Edits]] = [
    (QUADS, (("if (i < quads) {", "if (4 * i + 3 < n) {"),
             (TAIL, "    if (i == quads)\n        for (int k = 4 * i; k < n; ++k) y[k] = x[k] + x[k];\n"))),
    (RANGE, (("(first + 3) / 4 * 4", "((first + 3) & ~3)"),)),
    (RANGE, (("    int i = b", "    auto work = [&] {\n    int i = b"),
             ("+ i] *= 2.0f;\n}", "+ i] *= 2.0f;\n    };\n    work();\n}"))),
    (SPLIT, """int i = low, count = high - low;
    while (count > 0) {
        int half = count / 2;
        if (b[d - 1 - i - half] < a[i + half]) { count = half; continue; }
        i += half + 1;
        count -= half + 1;
    }
    return i;"""),
    (SPLIT, """while (low < high) {
        unsigned mid = (low + high + 1u) / 2;
        if (a[mid - 1] <= b[d - mid]) low = mid; else high = mid - 1;
    }
    return low;"""),
    (MERGE, ((PICK, "bool from_a = true; if (i >= n) from_a = false; else if (j < m) from_a = !(b[j] < a[i]);"),)),
    (SEGMENTS, (("s[t] += sum;", "s[t] = sum + s[t];"), ("f[t] |= flag;", "if (flag) f[t] = 1;"))),
    (WARP, (("0xffffffffu >> (31 - lane)", "(2u << lane) - 1"), ("lane - d >= first", "lane >= first + d"))),
    (WARP, (("    int sum =", "    if (i >= n) return;\n    int sum ="),)),  # lanes that return do not take part
    (SCORES, (("sum / sqrtf(d)", "sum * rsqrtf(d)"),)),
    (SCORES, (("float sum = 0.0f;\n    for (int c", "double sum = 0.0;\n    for (int c"),)),
    (SOFTMAX, (("expf(row[k] - largest)", "exp2f(1.44269504f * (row[k] - largest))"),)),
    (ONLINE, UPDATE.format("out[c] *= f", "expf(score - largest)")),
    (TILES, (("fmaxf(largest, score)", "max(largest, score)"), ("/ sum", "* (1.0f / sum)"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_wrong_submissions_are_rejected(name: str, change: str | Edits) -> None:
    assert is_rejected(name, change)


@pytest.mark.parametrize("is_quick", [True, pytest.param(False, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(("name", "change"), RIGHT)
def test_right_submissions_are_accepted(name: str, change: str | Edits, is_quick: bool) -> None:
    judgment = grade(name, change, is_quick=is_quick)
    assert judgment.accepted, judgment.sentences
