"""Submissions written by hand, right and wrong, for tasks of the lessons."""

from __future__ import annotations

import pytest

from tests.gpu.lessons.edited_solutions import Edits, grade, is_rejected

ADD = "01-threads-and-indices/add"
STRIDE = "01-threads-and-indices/grid-stride"
GROUPS = "07-warp-primitives/groups"
FIRST = "07-warp-primitives/first-negative"
RANK = "07-warp-primitives/rank"
TREE = "08-reduction/tree"
LAST = "11-memory-order/last-block"
CHAIN = "11-memory-order/chain"
FIXED = "22-float-sums/fixed-order"
KAHAN = "22-float-sums/compensated"
SIZE = "14-occupancy/shared-size"
PRIVATE = "13-histogram/private"
LOADS = "14-occupancy/four-loads"

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
BALLOT = """    bool negative = i < n && x[i] < 0;
    unsigned votes = __ballot_sync(0xffffffffu, negative);"""
MATCH = (
    "unsigned m = __ballot_sync(~0u, i < n); if (i < n) y[i] = __popc(__match_any_sync(m, {}) & ((1u << lane) - 1));"
)
KEY = "int key = i < n ? x[i] : 0; int r = 0; "
PASS_ON = """int before = 0;
if (part > 0) {{ while (flags[part - 1] == 0) {{}} {after} before = sums[part - 1]; }}
sums[part] = before + own; {between} flags[part] = 1;"""
FENCE = "__threadfence();"

COUNT = """        __threadfence();
        last = atomicAdd(finished, 1) == gridDim.x - 1;
        __threadfence();"""

# A text replaces the gap; pairs replace parts of the solution.
WRONG: list[tuple[str, str | Edits]] = [
    (ADD, f"{INDEX} float v; if (i < n) v = a[i]; v += b[min(i, n - 1)]; if (i < n) c[i] = v;"),
    (ADD, f"{INDEX} int k = 1 << 32; if (i < n) c[i] = a[i] + b[i] + 0 * k;"),
    (KAHAN, "double d = (double)total + (int)x[i] - lost; total = (float)d; lost = (float)(total - d);"),
    ("06-transpose/scatter", "b[(short)(column * rows + row)] = a[row * columns + column];"),
    ("04-shared-memory/any-block", (("extern __shared__ float s[]", "__shared__ float s[48]"),)),
    ("02-divergence/clamp", "float v = x[i];\nif (v < low) v = low;\nelse if (v >= high + 1.0f) v = high;\ny[i] = v;"),
    (TREE, "for (int k = 1; k < 64; ++k) { if (t == 0) s[0] += s[k]; __syncthreads(); }"),
    (GROUPS, "for (int k = 1; k < 8; ++k) sum += i / 8 * 8 + (i + k) % 8 < n ? x[i / 8 * 8 + (i + k) % 8] : 0.0f;"),
    (GROUPS, "for (int d = 1; d < 8; d *= 2) sum += __shfl_up_sync(0xffffffffu, sum, d, 8);"),
    (GROUPS, "float all = 0; for (int k = 0; k < 8; ++k) all += __shfl_sync(0xffffffffu, sum, k); sum = all;"),
    (GROUPS, "for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, (float)(int)sum, d);"),
    (
        GROUPS,
        "unsigned m = __activemask(); if (i < n) for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(m, sum, d);",
    ),
    (FIRST, ((BALLOT, BALLOT.replace("0xffffffffu", "0xffffu")),)),
    (FIRST, ((BALLOT, "    unsigned votes = __any_sync(0xffffffffu, i < n && x[i] < 0);"),)),
    (FIRST, (("x[i] < 0", "(short)x[i] < 0"),)),
    (FIRST, (("x[i] < 0", "x[i] < -2"),)),
    (FIRST, (("i % 32 == 0", "threadIdx.x == 0"),)),
    (RANK, MATCH.format("(short)x[i]")),
    (RANK, MATCH.format("abs(x[i])")),
    (RANK, "if (i < n) y[i] = __popc(__match_any_sync(__activemask(), x[i]) & ((1u << lane) - 1));"),
    (RANK, f"{KEY} for (int k = 0; k < lane; ++k) r += __shfl_sync(0xffffffffu, key, k) == key; if (i < n) y[i] = r;"),
    (LAST, (("        __threadfence();\n        last", "        __threadfence_block();\n        last"),)),
    (LAST, (("atomicAdd(finished, 1)", "atomicAdd_block(finished, 1)"),)),
    (LAST, (("atomicAdd(finished, 1)", "(*finished)++"),)),
    (LAST, (("    __syncthreads();\n    if (last", "    if (last"),)),
    (LAST, (("blockIdx.x * blockDim.x", "blockIdx.x * 32"),)),
    (CHAIN, PASS_ON.format(after="", between=FENCE)),
    (CHAIN, PASS_ON.format(after=FENCE, between="")),
    (CHAIN, PASS_ON.format(after="__threadfence_block();", between="__threadfence_block();")),
    (CHAIN, PASS_ON.format(after=FENCE, between=FENCE).replace("= 1;", "= own;")),
    (
        CHAIN,
        PASS_ON.format(after=FENCE, between=FENCE)
        .replace("while (", "for (int k = 0; k < 1 << 20 && ")
        .replace(") {}", "; ++k) {}"),
    ),
    (SIZE, (("s[128]", "s[127]"),)),
    (SIZE, (("__syncthreads()", "__syncwarp()"),)),
    (SIZE, (("blockDim.x - 1 - t", "127 - t"),)),
    (LOADS, (("+ 3 * threads < n", "+ 3 * threads <= n"),)),
    (LOADS, (("float a", "int a"),)),
    (LOADS, (("int threads = gridDim.x * blockDim.x", "int threads = 4096"),)),
    (FIXED, (("float own", "int own"),)),
    (FIXED, (("*y = total", "atomicAdd(y, total)"),)),
    (FIXED, (("t < blockDim.x; ++t", "t < 64; ++t"),)),
    (KAHAN, "total += x[i];"),
    ("17-sort/odd-even", (("keys[first] > keys[first + 1]", "keys[first] >= keys[first + 1] + 1"),)),
    ("17-sort/bitonic", (("min(s[t], s[other])", "s[t] - s[other] < 0 ? s[t] : s[other]"),)),
    ("02-divergence/clamp", (("value < low", "value < -fabsf(low)"),)),
    (FIRST, (("x[i] < 0", "-x[i] > 0"),)),
    (RANK, MATCH.format("(float)x[i]")),
    ("08-reduction/largest", (("own = max(own, x[i])", "own = abs(own) > abs(x[i]) ? own : x[i]"),)),
    (PRIVATE, (("if (threadIdx.x < 8) atomicAdd", "if (threadIdx.x / 32 == 1 && threadIdx.x % 32 < 8) atomicAdd"),
               ("threadIdx.x], own[threadIdx.x]", "threadIdx.x % 32], own[threadIdx.x % 32]"))),
    ("03-coalescing/interleave",
     (("atomicAdd(sum, own)", "own = __reduce_add_sync(~0u, own); if (threadIdx.x % 32 == 31) atomicAdd(sum, own)"),)),
    # One thread does the work of all.
    (TREE, "if (t == 0) for (int k = 1; k < 64; ++k) s[0] += s[k];"),
    ("09-scan/kogge-stone",
     "if (stride == 1 && t == 0) for (int k = 1; k < 64; ++k) s[k] += s[k - 1];\n__syncthreads();"),
    ("09-scan/kogge-stone",
     ("int sum = 0; for (int k = 0; k <= t; ++k) sum += s[k];\n"
      "__syncthreads(); s[t] = stride == 32 ? sum : s[t]; __syncthreads();")),
    ("09-scan/double-buffer",
     (("for (int stride = 1;", ("if (t == 0) for (int k = 1; k < 64; ++k) s[0][k] += s[0][k - 1];\n"
                                "__syncthreads();\nfor (int stride = 64;")),)),
    ("09-scan/down-sweep",
     "if (t == 0) for (int k = 1; k < 64; ++k) s[k] = k < n ? s[k - 1] + x[k] : 0;\n__syncthreads();"),
    ("17-sort/odd-even",
     ("if (t == 0) for (int i = 0; i + 1 < n; ++i) if (keys[i] > keys[i + 1]) "
      "{ int key = keys[i]; keys[i] = keys[i + 1]; keys[i + 1] = key; }\n__syncthreads();")),
    (KAHAN, "float value = x[i] - lost; float next = total + value; lost = value - (next - total); total = next;"),
    (KAHAN, "float next = total + x[i]; lost += (next - total) - x[i]; total = next;"),
]  # fmt: skip
RIGHT: list[tuple[str, str | Edits]] = [
    (ADD, f"{INDEX} float v; if (i < n) v = a[i] + b[i]; if (i < n) c[i] = v;"),
    (STRIDE, (("2.0f * x[i]", "x[i] + x[i]"),)),
    (TREE, """for (int half = 32; half > 0; half /= 2) {
        float other = t < half ? s[t + half] : 0.0f;
        __syncthreads();
        s[t] += other;
        __syncthreads();
    }"""),
    (GROUPS, "float all = 0; for (int k = 0; k < 8; ++k) all += __shfl_sync(~0u, sum, k, 8); sum = all;"),
    (GROUPS, ("unsigned m = 0xffu << (threadIdx.x % 32 / 8 * 8);"
             "for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(m, sum, d);")),
    (GROUPS, "for (int d = 4; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d); sum = __shfl_sync(~0u, sum, 0, 8);"),
    (FIRST, ((BALLOT, "    if (i >= n) return;\n    unsigned votes = __ballot_sync(0xffffffffu, x[i] < 0);"),)),
    (FIRST, ((BALLOT, ("    unsigned m = __ballot_sync(~0u, i < n), votes = 0;\n"
                      "    if (i < n) votes = __ballot_sync(m, x[i] < 0);")),)),
    (FIRST, (("__ffs(votes) - 1", "votes ? __clz(__brev(votes)) : -1"),)),
    (RANK, "if (i >= n) return; y[i] = __popc(__match_any_sync(~0u, x[i]) << (31 - lane)) - 1;"),
    (RANK, f"{KEY} for (int k = 0; k < 32; ++k) r += k < lane & __shfl_sync(~0u, key, k) == key; if (i < n) y[i] = r;"),
    (RANK, "unsigned m = __match_any_sync(~0u, i < n ? x[i] : 0); if (i < n) y[i] = __popc(m & ((1u << lane) - 1));"),
    (LAST, (("__global__", "#include <cuda/atomic>\n__global__"),
            (COUNT,
             ("        last = cuda::atomic_ref<int, cuda::thread_scope_device>(*finished)"
             ".fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;")))),
    (LAST, (("__threadfence()", "__threadfence_system()"),)),
    (LAST, (("partial[blockIdx.x] = own", "atomicExch(&partial[blockIdx.x], own)"),)),
    (CHAIN, PASS_ON.format(after="__threadfence_system();", between=FENCE)),
    (CHAIN, PASS_ON.format(after=FENCE, between=FENCE).replace("(flags[part - 1] == 0)", "(flags[part - 1] != 1)")),
    (CHAIN, PASS_ON.format(after=FENCE, between=FENCE).replace("{}", "__nanosleep(20);")),
    (CHAIN, PASS_ON.format(after=FENCE, between=FENCE).replace("{}", "{ __nanosleep(ns); if (ns < 256) ns *= 2; }")
     .replace("int before", "int ns = 8, before")),
    (CHAIN, ("sums[part] = own; if (part) { while (!atomicAdd((int *)&flags[part - 1], 0)) {} __threadfence();"
            "sums[part] += sums[part - 1]; } __threadfence(); atomicExch((int *)&flags[part], 1);")),
    (SIZE, (("s[128]", "s[1024]"),)),
    (SIZE, (("s[t] = i", "s[blockDim.x - 1 - t] = i"), ("y[i] = s[blockDim.x - 1 - t]", "y[i] = s[t]"))),
    (SIZE, (("    s[t] = i < n ? x[i] : 0.0f;\n    __syncthreads();\n",
             "    int j = blockIdx.x * blockDim.x + blockDim.x - 1 - t;\n"),
            ("s[blockDim.x - 1 - t]", "j < n ? x[j] : 0.0f"))),
    (LOADS, (("float b = x[i + threads];\n        float c = x[i + 2 * threads];",
              "float c = x[i + 2 * threads], b = x[i + threads];"),)),
    (LOADS, (("i + 3 * threads < n", "i < n - 3 * threads"),)),
    (LOADS, (("2.0f * a", "a + a"),)),
    (FIXED, (("t = 0; t < blockDim.x; ++t", "t = blockDim.x - 1; t >= 0; --t"),)),
    (FIXED, (("float total = 0.0f", "double total = 0.0"),)),
    ("10-any-length/ticket",
     (("part = atomicAdd(next, 1);", ("int old = *next, seen;\n"
                                      "do { seen = old; old = atomicCAS(next, seen, seen + 1); } while (old != seen);\n"
                                      "part = old;")),)),
    ("13-histogram/atomic", "int *bin = &bins[x[min(i, n - 1)]];\nif (i >= n) goto done;\natomicAdd(bin, 1);\ndone:;"),
    (KAHAN, "float value = x[i] - lost, old = total; total = old + value; lost = total - old; lost -= value;"),
    (KAHAN, "float v = __fsub_rn(x[i], lost), w = __fadd_rn(total, v); lost = w - total - v; total = w;"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_wrong_submissions_are_rejected(name: str, change: str | Edits) -> None:
    assert is_rejected(name, change)


@pytest.mark.parametrize("is_quick", [True, pytest.param(False, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(("name", "change"), RIGHT)
def test_right_submissions_are_accepted(name: str, change: str | Edits, is_quick: bool) -> None:
    judgment = grade(name, change, is_quick=is_quick)
    assert judgment.accepted, judgment.sentences
