"""Products of tiles by a warp: who holds what is as the PTX ISA says, and the result is NumPy's in float64."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import CompileError, LaunchError
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build, launch
from tests.gpu.simulator.trace_checks import find_ancestry, input_elements, list_operators, trace_kernel

Array = np.ndarray[Any, Any]
LANE = np.arange(32)
GROUP, IN_GROUP = LANE // 4, LANE % 4


def _to_bf16(values: Array) -> Array:
    """Return the 16 upper bits of floats, to the nearest even."""
    words = np.asarray(values, np.float32).view(np.uint32)
    return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)


def _from_bf16(words: Array) -> Array:
    return (words.astype(np.uint32) << 16).view(np.float32)


def _truncate_to_tf32(values: Array) -> Array:
    """Return floats as TF32 has them: the last 13 bits are not looked at."""
    return (np.asarray(values, np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32)


def _run_on_both(module: SimulatedModule, kernel: str, *arrays: Array, block: int = 32) -> list[Array]:
    found = launch(module, kernel, *arrays, block=block)
    given = [each.copy() for each in arrays]
    module.compiled_kernel(kernel).launch((1, 1, 1), (block, 1, 1), [each.view(np.uint8).reshape(-1) for each in given])
    for lockstep, compiled in zip(found, given, strict=True):
        np.testing.assert_array_equal(compiled.view(np.uint8), lockstep.view(np.uint8))
    return found


def _is_correctly_rounded(found: Array, a: Array, b: Array, c: Array, bits: int = 23) -> None:
    """The sum is rounded once; float64 itself rounds far below that."""
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2.0 ** -(bits + 1) * 1.001, atol=2.0**-40)


# WMMA.

WMMA = """
#include <mma.h>
using namespace nvcuda;
template <int M, int N, int K, typename T, typename Stored, typename Sum, typename LayoutA, typename LayoutB>
__global__ void product(const Stored *a, const Stored *b, const Sum *c, Sum *d, int lda, int ldb) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc, twice;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
    wmma::fill_fragment(twice, (Sum)0);
    wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; ++i) twice.x[i] = fc.x[i] + fc.x[i];
    wmma::store_matrix_sync(d, fc, N, wmma::mem_row_major);
    wmma::store_matrix_sync(d + M * N, twice, M, wmma::mem_col_major);
}
"""
# Shape, the element's name and its stored one, the sum's name and type, and the layouts of A and B.
PRODUCTS = [
    ((16, 16, 16), "half", "half", "float", np.float32, "row", "col"),
    ((16, 16, 16), "half", "half", "half", np.float16, "col", "row"),
    ((32, 8, 16), "half", "half", "float", np.float32, "col", "col"),
    ((8, 32, 16), "half", "half", "float", np.float32, "row", "row"),
    ((16, 16, 16), "__nv_bfloat16", "__nv_bfloat16", "float", np.float32, "row", "row"),
    ((8, 32, 16), "__nv_bfloat16", "__nv_bfloat16", "float", np.float32, "col", "col"),
    ((32, 8, 16), "signed char", "signed char", "int", np.int32, "row", "col"),
    ((8, 32, 16), "unsigned char", "unsigned char", "int", np.int32, "col", "row"),
    ((16, 16, 8), "wmma::precision::tf32", "float", "float", np.float32, "row", "col"),
    ((8, 8, 4), "double", "double", "double", np.float64, "row", "col"),
]


def _make_operand(name: str, shape: tuple[int, int], random: np.random.Generator) -> tuple[Array, Array]:
    """Return a matrix as it is stored, and its numbers."""
    if name.endswith("char"):
        kind = np.int8 if name.startswith("signed") else np.uint8
        limits = np.iinfo(kind)
        whole = random.integers(limits.min, limits.max, shape, endpoint=True).astype(kind)
        return whole, whole
    values = random.standard_normal(shape)
    match name:
        case "half":
            return values.astype(np.float16), values.astype(np.float16)
        case "__nv_bfloat16":
            return _to_bf16(values), _from_bf16(_to_bf16(values))
        case "double":
            return values, values
    return values.astype(np.float32), _truncate_to_tf32(values)


@pytest.mark.parametrize(("shape", "element", "stored", "sum_name", "kind", "of_a", "of_b"), PRODUCTS)
def test_a_product_of_wmma_is_that_of_numpy(
    shape: tuple[int, int, int], element: str, stored: str, sum_name: str, kind: Any, of_a: str, of_b: str
) -> None:
    m, n, k = shape
    random = np.random.default_rng(m + k)
    (held_a, a), (held_b, b) = _make_operand(element, (m, k), random), _make_operand(element, (k, n), random)
    c = (10 * random.standard_normal((m, n))).astype(kind)

    def padded(held: Array, layout: str) -> tuple[Array, np.int32]:
        """Return a matrix with 16 elements of nothing behind each row, or column."""
        lines = held if layout == "row" else held.T
        wide = np.full((lines.shape[0], lines.shape[1] + -lines.shape[1] % 16 + 16), 99, held.dtype)
        wide[:, : lines.shape[1]] = lines
        return wide, np.int32(wide.shape[1])

    (in_a, lda), (in_b, ldb) = padded(held_a, of_a), padded(held_b, of_b)
    types = f"{m}, {n}, {k}, {element}, {stored}, {sum_name}, wmma::{of_a}_major, wmma::{of_b}_major"
    module, out = build(WMMA), np.zeros((2, m * n), kind)
    *_, found = launch(module, f"product<{types}>", in_a, in_b, c, out, lda, ldb)
    arrays = [each.view(np.uint8).reshape(-1) for each in (in_a, in_b, c, out)]
    module.compiled_kernel(f"product<{types}>").launch((1, 1, 1), (32, 1, 1), [*arrays, lda, ldb])
    np.testing.assert_array_equal(out.view(np.uint8), found.view(np.uint8))
    result = found[0].reshape(m, n)
    np.testing.assert_array_equal(found[1].reshape(n, m).T, result + result)
    if np.dtype(kind).kind == "i":
        np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32) + c)
    elif kind == np.float64:
        np.testing.assert_allclose(result, a @ b + c, rtol=1e-13)
    else:
        _is_correctly_rounded(result, a, b, c, 10 if kind == np.float16 else 23)


def test_an_int_sum_wraps_and_a_float_sum_knows_infinity_and_nan() -> None:
    source = (
        WMMA
        + """
    __global__ void limits(const half *a, const half *b, float *d, int *whole) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::load_matrix_sync(fa, a, 16), wmma::load_matrix_sync(fb, b, 16), wmma::fill_fragment(fc, 0.0f);
        wmma::mma_sync(fc, fa, fb, fc);
        wmma::store_matrix_sync(d, fc, 16, wmma::mem_row_major);
        wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> ia;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> ib;
        wmma::fragment<wmma::accumulator, 16, 16, 16, int> ic;
        wmma::fill_fragment(ia, (signed char)1), wmma::fill_fragment(ib, (signed char)1);
        wmma::fill_fragment(ic, 2147483647);
        wmma::mma_sync(ic, ia, ib, ic);
        wmma::store_matrix_sync(whole, ic, 16, wmma::mem_row_major);
    }"""
    )
    a, b = np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)
    a[0, 0], a[1, 3], b[2, 3] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        exact = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float32)
    found = _run_on_both(build(source), "limits", a, b, np.zeros((16, 16), np.float32), np.zeros((16, 16), np.int32))
    np.testing.assert_array_equal(found[2], exact)
    assert np.isnan(exact).any()
    assert np.isinf(exact).any()
    assert (found[3] == -(2**31) + 15).all()


# mma.sync, its operands in registers as the PTX ISA has them: row and column of each element of a lane's.


def _layout_a(k: int, packed: int) -> tuple[Array, Array]:
    """Return rows and columns of A's elements: shape (elements, 32)."""
    rows, columns = [], []
    for i in range(16 * k // 32):
        # "row = groupID for a_i where ...; groupID + 8 otherwise": registers take turns.
        register, within = divmod(i, packed)
        rows.append(GROUP + 8 * (register % 2))
        columns.append(IN_GROUP * packed + within + 4 * packed * (register // 2))
    return np.array(rows), np.array(columns)


def _layout_b(k: int, packed: int) -> tuple[Array, Array]:
    rows, columns = [], []
    for i in range(8 * k // 32):
        register, within = divmod(i, packed)
        rows.append(IN_GROUP * packed + within + 4 * packed * register)
        columns.append(GROUP)
    return np.array(rows), np.array(columns)


# "row = groupID for c_0 and c_1, groupID + 8 for c_2 and c_3; col = threadID_in_group * 2 + (i & 1)".
C_ROWS = np.array([GROUP + 8 * (i >= 2) for i in range(4)])
C_COLUMNS = np.array([IN_GROUP * 2 + (i & 1) for i in range(4)])

MMA = [
    ("m16n8k8", "f16", "f32"),
    ("m16n8k16", "f16", "f32"),
    ("m16n8k16", "f16", "f16"),
    ("m16n8k8", "bf16", "f32"),
    ("m16n8k16", "bf16", "f32"),
    ("m16n8k4", "tf32", "f32"),
    ("m16n8k8", "tf32", "f32"),
    ("m16n8k16", "s8", "s32"),
    ("m16n8k32", "s8", "s32"),
    ("m16n8k32", "u8", "s32"),
]
_NAMES = {"f16": "half", "bf16": "__nv_bfloat16", "tf32": "float", "s8": "signed char", "u8": "unsigned char"}


def _mma_source(shape: str, element: str, of_sum: str) -> str:
    k, packed = int(shape.rpartition("k")[2]), {"f16": 2, "bf16": 2, "tf32": 1}.get(element, 4)
    a, b = 16 * k // 32 // packed, 8 * k // 32 // packed
    sums = 2 if of_sum == "f16" else 4
    kind, letter = {"f32": ("float", "f"), "s32": ("int", "r"), "f16": ("unsigned", "r")}[of_sum]
    numbers = iter(range(100))

    def registers(count: int) -> str:
        return "{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}"

    text = f"mma.sync.aligned.{shape}.row.col.{of_sum}.{element}.{element}.{of_sum} "
    text += ", ".join(map(registers, (sums, a, b))) + ", {" + ", ".join(f"%{each}" for each in range(sums)) + "};"
    taken = ", ".join(f'"+{letter}"(c[{sums} * lane + {i}])' for i in range(sums))
    given = [f'"r"(a[{a} * lane + {i}])' for i in range(a)] + [f'"r"(b[{b} * lane + {i}])' for i in range(b)]
    return f"""
    __global__ void f(const unsigned *a, const unsigned *b, {kind} *c) {{
        int lane = threadIdx.x;
        asm volatile("{text}" : {taken} : {", ".join(given)});
    }}"""


@pytest.mark.parametrize(("shape", "element", "of_sum"), MMA)
def test_mma_sync_multiplies_what_lanes_hold_as_the_isa_says(shape: str, element: str, of_sum: str) -> None:
    k, packed = int(shape.rpartition("k")[2]), {"f16": 2, "bf16": 2, "tf32": 1}.get(element, 4)
    random = np.random.default_rng(k)
    (held_a, a), (held_b, b) = (_make_operand(_NAMES[element], size, random) for size in ((16, k), (k, 8)))
    kind = {"f32": np.float32, "s32": np.int32, "f16": np.float16}[of_sum]
    c = (10 * random.standard_normal((16, 8))).astype(kind)
    in_a = np.ascontiguousarray(held_a[_layout_a(k, packed)].T).view(np.uint32)
    in_b = np.ascontiguousarray(held_b[_layout_b(k, packed)].T).view(np.uint32)
    in_c = np.ascontiguousarray(c[C_ROWS, C_COLUMNS].T)
    *_, out = _run_on_both(build(_mma_source(shape, element, of_sum)), "f", in_a, in_b, in_c)
    found = np.zeros_like(c)
    found[C_ROWS.T, C_COLUMNS.T] = out
    if of_sum == "s32":
        np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32) + c)
    else:
        _is_correctly_rounded(found, a, b, c, 10 if of_sum == "f16" else 23)


def test_fragments_of_wmma_are_those_of_mma_sync() -> None:
    source = """
    #include <mma.h>
    using namespace nvcuda;
    __global__ void held(const half *a, const half *b, const float *c, float *out) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
        wmma::load_matrix_sync(fa, a, 16), wmma::load_matrix_sync(fb, b, 16);
        wmma::load_matrix_sync(fc, c, 16, wmma::mem_row_major);
        for (int i = 0; i < 16; ++i) {
            out[i * 32 + threadIdx.x] = fa.x[i], out[(16 + i) * 32 + threadIdx.x] = fb.x[i];
        }
        for (int i = 0; i < 8; ++i) out[(32 + i) * 32 + threadIdx.x] = fc.x[i];
    }"""
    numbered = np.arange(256).reshape(16, 16)
    given = numbered.astype(np.float16)
    *_, out = _run_on_both(
        build(source), "held", given, given, numbered.astype(np.float32), np.zeros((40, 32), np.float32)
    )
    of_a, of_b = numbered[_layout_a(16, 2)], numbered[_layout_b(16, 2)]
    np.testing.assert_array_equal(out[:16], np.tile(of_a, (2, 1)))
    np.testing.assert_array_equal(out[16:32], np.tile(np.concatenate([of_b, of_b + 8]), (2, 1)))
    of_c = numbered[C_ROWS, C_COLUMNS]
    np.testing.assert_array_equal(out[32:], np.concatenate([of_c, of_c + 8]))


LDMATRIX = """
#include <cuda_fp16.h>
__global__ void f(const half *in, half *plain, half *turned, half *back) {
    __shared__ __align__(16) half tile[32 * 8 + 64], other[64 * 8];
    int lane = threadIdx.x;
    for (int i = 0; i < 8; ++i) tile[64 + lane * 8 + i] = in[lane * 8 + i];
    __syncthreads();
    unsigned address = (unsigned)__cvta_generic_to_shared(tile + 64 + lane * 8), r[4], s[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
    asm volatile("{ .reg .u64 p; .reg .u32 q; cvta.to.shared.u64 p, %2; cvt.u32.u64 q, p;\\n"
                 "  ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [q]; }"
                 : "=r"(s[0]), "=r"(s[1]) : "l"(tile + 64 + lane * 8));
    for (int i = 0; i < 4; ++i) ((unsigned *)plain)[i * 32 + lane] = r[i];
    for (int i = 0; i < 2; ++i) ((unsigned *)turned)[i * 32 + lane] = s[i];
    unsigned to = (unsigned)__cvta_generic_to_shared(other + (lane & 31) * 8);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3]) : "memory");
    __syncthreads();
    for (int i = 0; i < 8; ++i) back[lane * 8 + i] = other[lane * 8 + i];
}"""


def test_ldmatrix_deals_out_rows_and_columns_of_matrices() -> None:
    rows = np.arange(256).astype(np.float16).reshape(4, 8, 8)
    _, plain, turned, back = _run_on_both(
        build(LDMATRIX), "f", rows, np.zeros((4, 32, 2), np.float16), np.zeros((2, 32, 2), np.float16), rows * 0
    )
    # "Each thread of a warp receives a fragment of a row": two elements of row lane / 4.
    np.testing.assert_array_equal(plain, rows.reshape(4, 32, 2))
    np.testing.assert_array_equal(turned, rows[:2].transpose(0, 2, 1).reshape(2, 32, 2))
    np.testing.assert_array_equal(back, rows)


def test_tf32_is_rounded_to_the_nearest_away_from_zero() -> None:
    source = """
    __global__ void f(const float *in, float *out) {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(((unsigned *)out)[threadIdx.x]) : "f"(in[threadIdx.x]));
    }"""
    given = np.array([1 + 2**-11, -1 - 2**-11, 1 + 2**-11 - 2**-23, 1 + 3 * 2**-11, 3e38, np.inf], np.float32)
    *_, out = _run_on_both(build(source), "f", given, np.zeros(6, np.float32), block=6)
    expected = [1 + 2**-10, -1 - 2**-10, 1, 1 + 2**-9, np.float32(3e38), np.inf]
    np.testing.assert_allclose(out, expected, rtol=2**-11 * 1.001)
    np.testing.assert_array_equal(out[:4], expected[:4])


# All 32 lanes take part.

PARTS = """
#include <mma.h>
using namespace nvcuda;
__global__ void f(const half *a, float *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 16), wmma::load_matrix_sync(fb, a, 16), wmma::fill_fragment(fc, 0.0f);
    if (threadIdx.x < COUNT) {
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(d + threadIdx.x / 32 * 256, fc, 16, wmma::mem_row_major);
}"""


def test_lanes_that_do_not_come_are_an_error_with_its_line() -> None:
    module = build(PARTS, {"COUNT": 40})
    given = [np.zeros(256, np.float16).view(np.uint8), np.zeros(512, np.float32).view(np.uint8)]
    divergent = r"Barrier error detected. Divergent thread\(s\) in warp"
    with pytest.raises(LaunchError, match=rf"test.cu:10:9: {divergent}.* thread \(40,0,0\) .* does not reach it"):
        module.kernel("f").launch((1, 1, 1), (64, 1, 1), given)
    # Each half of the warp waits for the other one, here and where that goes on.
    with pytest.raises(
        LaunchError, match=rf"test.cu:1[02]:\d: {divergent}.* operation at test.cu:1[02]:\d names thread"
    ):
        module.kernel("f").launch((1, 1, 1), (64, 1, 1), given, schedule="lanes:1")
    with pytest.raises(LaunchError, match=r"test.cu:10:9: thread \(32,0,0\) .*all 32 lanes of the warp are here"):
        module.compiled_kernel("f").launch((1, 1, 1), (64, 1, 1), given)


def test_whole_warps_may_go_apart_and_a_block_of_part_of_one_may_not() -> None:
    a = np.random.default_rng(5).standard_normal((16, 16)).astype(np.float16)
    _, found = _run_on_both(build(PARTS, {"COUNT": 32}), "f", a, np.full((2, 16, 16), 7, np.float32), block=64)
    _is_correctly_rounded(found[0], a, a, np.zeros(1))
    assert not found[1].any()
    module = build(PARTS, {"COUNT": 48})
    given = [a.view(np.uint8).reshape(-1), np.zeros(512, np.float32).view(np.uint8)]
    for kernel in (module.kernel("f"), module.compiled_kernel("f")):
        with pytest.raises(LaunchError, match=r"test\.cu:8:5: "):
            kernel.launch((1, 1, 1), (48, 1, 1), given)


def test_lanes_on_their_own_meet_for_a_product() -> None:
    a = np.random.default_rng(6).standard_normal((16, 16)).astype(np.float16)
    out = np.zeros((16, 16), np.float32)
    module = build(PARTS, {"COUNT": 32})
    given = [a.view(np.uint8).reshape(-1), out.view(np.uint8).reshape(-1)]
    module.kernel("f").launch((1, 1, 1), (32, 1, 1), given, schedule="lanes:2")
    _is_correctly_rounded(out, a, a, np.zeros(1))


def test_a_recording_knows_which_products_an_element_is_the_sum_of() -> None:
    source = WMMA.replace("product(", "k(") + "template __global__ void k<16, 16, 16, half, half, float, "
    source += "wmma::row_major, wmma::row_major>(const half *, const half *, const float *, float *, int, int);"
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    c, name = np.zeros((16, 16), np.float32), "k<16, 16, 16, half, half, float, wmma::row_major, wmma::row_major>"
    arguments = [a, b, c, np.zeros(512, np.float32), np.int32(16), np.int32(16)]
    made, _ = trace_kernel(source, arguments, kernel=name)
    found = find_ancestry(made, "d", 5 * 16 + 11)
    assert list_operators(found) == ["fma"] * 16
    inputs = sorted((node.array, node.element) for node in found.inputs)
    rows, columns, sums = [5 * 16 + k for k in range(16)], [16 * k + 11 for k in range(16)], [5 * 16 + 11]
    assert [element for _, element in inputs] == [*rows, *columns, *sums]
    assert input_elements(found) == sorted([*rows, *columns, *sums])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "wmma::fragment<wmma::matrix_a, 16, 16, 8, half, wmma::row_major> f;",
            "there is no such fragment of matrix_a",
        ),
        ("wmma::fragment<wmma::matrix_b, 16, 16, 16, half> f;", "matrix_b are row_major or col_major"),
        (
            'asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};" : "+r"(a[0]));',
            "does not support the instruction mma.sync.aligned.m8n8k4",
        ),
        (
            'asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};" : "+r"(a[0]));',
            "does not support the instruction mma.sync.aligned.m16n8k8",
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=re.escape(reason)):
        build(f"#include <mma.h>\nusing namespace nvcuda;\n__global__ void f(unsigned *a) {{ {text} }}").kernel("f")


def test_a_stride_that_no_tensor_core_takes_is_an_error() -> None:
    module = build(WMMA)
    name = "product<16, 16, 16, half, half, float, wmma::row_major, wmma::row_major>"
    a = np.zeros((16, 20), np.float16)
    with pytest.raises(LaunchError, match="ldm is a multiple of 16 bytes"):
        launch(module, name, a, a, np.zeros(256, np.float32), np.zeros(512, np.float32), np.int32(20), np.int32(20))
