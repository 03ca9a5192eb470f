"""Edits of the patterns' kernels with a known truth: wrong for some valid input, or right for all.

They were written before the edge cases on which an edited kernel runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array, Pattern
from gpu.engines.base import kernel_text


@dataclass(frozen=True)
class Edit:
    """An edit of a variant's kernel file: the first `old` text after `within` becomes the `new` text."""

    name: str
    pattern: str
    variant: str
    old: str
    new: str
    within: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, file: str) -> str:
        """Return the edited text of a kernel file."""
        text = kernel_text(file, {})
        start = text.index(self.within)
        at = text.index(self.old, start)
        return text[:at] + self.new + text[at + len(self.old) :]

    def __str__(self) -> str:
        return f"{self.pattern}-{self.variant}-{self.name}"


def sample_inputs(pattern: Pattern, edit: Edit) -> Mapping[str, Array]:
    """Return a gray image for a pattern of images; else nothing: the pattern generates its input."""
    if pattern.input_kind(pattern.check(edit.params)) != "image":
        return {}
    image = np.random.default_rng(5).integers(0, 256, (120, 159), np.uint8)
    return {"image": image, "maxval": np.array(255, np.uint32)}


_MAX = {"operator": "max"}
_FLOATS = {"dtype": "float32"}

WRONG_EDITS = (
    # Reduction.
    Edit("zero-for-max", "reduction", "shared", "data[i] : IDENTITY", "data[i] : 0", "reduce_shared(", _MAX),
    Edit("zero-for-max", "reduction", "grid-stride", "value = IDENTITY", "value = 0", "reduce_grid_stride(", _MAX),
    Edit("one-too-far", "reduction", "interleaved", "blockDim.x < n", "blockDim.x <= n", "reduce_interleaved("),
    Edit("stops-early", "reduction", "last-warp", "stride >= WARP", "stride > WARP", "reduce_last_warp("),
    Edit("tail-of-one", "reduction", "peak", "threadIdx.x < n % 4", "threadIdx.x < n % 2", "reduce_peak("),
    Edit("no-empty-input", "reduction", "neighbored", "i < n ? data[i] : IDENTITY", "data[i]", "reduce_neighbored("),
    Edit("every-second-tail", "reduction", "one-thread", "size % 2 == 1", "size % 4 == 1", "reduce_one_thread("),
    Edit(
        "magnitudes",
        "reduction",
        "interleaved",
        "COMBINE(s[t], s[t + stride])",
        "COMBINE(s[t], fabsf(s[t + stride]))",
        "reduce_interleaved(",
        _FLOATS,
    ),
    Edit(
        "unsigned-max",
        "reduction",
        "two-blocks",
        "value = COMBINE(value, data[i + blockDim.x])",
        "value = (unsigned)value > (unsigned)data[i + blockDim.x] ? value : data[i + blockDim.x]",
        "reduce_two_blocks(",
        {**_MAX, "n": 1000},
    ),
    # Scan.
    Edit("zero-for-max", "scan", "shuffle", "? left : IDENTITY", "? left : 0", "lane_before(", _MAX),
    Edit(
        "zero-for-max",
        "scan",
        "brent-kung",
        "s[i - 1] : IDENTITY",
        "s[i - 1] : 0",
        "scan_brent_kung(",
        {**_MAX, "kind": "exclusive"},
    ),
    Edit("store-one-too-far", "scan", "three-kernels", "if (i + 2 < n) out", "if (i + 2 <= n) out", "store_vector("),
    Edit("tail-not-stored", "scan", "three-kernels", "if (i < n) out[i] = value.x;", "", "store_vector("),
    Edit("last-distance", "scan", "kogge-stone", "distance < count;", "distance < count - 1;", "scan_kogge_stone("),
    Edit("wide-before", "scan", "naive", "VALUE sum = in[start];", "unsigned char sum = in[start];", "scan_naive("),
    # Compaction.
    Edit("or-equal", "compaction", "three-kernels", "((value) > threshold)", "((value) >= threshold)"),
    Edit("last-not-counted", "compaction", "three-kernels", "positions[i] + flags[i];", "positions[i];"),
    Edit("magnitude", "compaction", "ballot", "((value) > threshold)", "(fabsf(value) > threshold)"),
    Edit(
        "odd-remainder",
        "compaction",
        "ballot",
        "((value) & 1)",
        "((value) % 2)",
        "",
        {"dtype": "int32", "predicate": "odd"},
    ),
    Edit("load-one-too-far", "compaction", "look-back", "i + 2 < n ?", "i + 2 <= n ?", "load_vector("),
    # Histogram.
    Edit(
        "byte-run",
        "histogram",
        "aggregated",
        "unsigned int run = 0;",
        "unsigned char run = 0;",
        "histogram_aggregated(",
        {"blocks": 1, "block": "8"},
    ),
    Edit("first-channel", "histogram", "interleaved", "image + blockIdx.y * n", "image", "histogram_interleaved("),
    Edit(
        "channels-together",
        "histogram",
        "privatized",
        "&bins[blockIdx.y * bin_count + bin]",
        "&bins[bin]",
        "histogram_privatized(",
    ),
    Edit("no-z", "histogram", "privatized", "letter < 26", "letter < 25", "", {"of": "letters", "letters": 1}),
    Edit(
        "last-edge-open", "histogram", "interleaved", "value <= EDGES", "value < EDGES", "", {"of": "ranges", "n": 5000}
    ),
    Edit(
        "edges-below",
        "histogram",
        "interleaved",
        "value >= EDGES[middle]",
        "value > EDGES[middle]",
        "",
        {"of": "ranges", "n": 5000},
    ),
    Edit(
        "below-range",
        "histogram",
        "interleaved",
        "fmaxf(value * bin_count, 0.0f)",
        "(value * bin_count)",
        "",
        {"of": "numbers", "dtype": "float32", "n": 5000, "numbers": "uniform"},
    ),
    Edit("dropped-tail", "histogram", "block-partition", "(n + threads - 1) / threads", "n / threads"),
    Edit("byte-counters", "histogram", "one-thread", "]++;", "] += 1, bins[0] &= 1023;", "histogram_one_thread("),
    # Matrix product.
    Edit("stride-of-squares", "matmul", "coalesced", "b[i * n + column]", "b[i * k + column]", "matmul_coalesced("),
    Edit("stride-of-squares", "matmul", "tiled", "a[row * k + first", "a[row * n + first", "matmul_tiled("),
    Edit("stride-of-squares", "matmul", "naive", "row * n + column, sum", "row * m + column, sum", "matmul_naive("),
    Edit("no-alpha", "matmul", "tiled", "sum, alpha, beta", "sum, 1.0f, beta", "matmul_tiled("),
    Edit("no-beta", "matmul", "coalesced", "sum, alpha, beta", "sum, alpha, 0.0f", "matmul_coalesced("),
    Edit("positive-beta", "matmul", "one-thread", "beta != 0.0f", "beta > 0.0f", "matmul_one_thread("),
    Edit(
        "no-tail",
        "matmul",
        "registers-2d",
        "first < k; first += DEPTH",
        "first < k / DEPTH * DEPTH; first += DEPTH",
        "matmul_registers_2d(",
    ),
    # Softmax.
    Edit("zero-maximum", "softmax", "naive", "greatest = -INFINITY", "greatest = 0.0f", "softmax_naive("),
    Edit(
        "no-maximum",
        "softmax",
        "shared",
        "greatest = s[0];",
        "greatest = 0.0f;",
        "softmax_shared(",
    ),
    Edit("nan-of-infinities", "softmax", "online", "x == greatest ? 1.0f : expf", "expf", "void add("),
    Edit("stride-of-squares", "softmax", "naive", "in + row * columns", "in + row * rows", "softmax_naive("),
    Edit(
        "first-chunk",
        "softmax",
        "online",
        "i < columns; i += BLOCK_SIZE) add",
        "i < min(columns, 256); i += BLOCK_SIZE) add",
    ),
    # Sort.
    Edit("round-missing", "sort", "odd-even", "phase < count;", "phase < count - 1;", "sort_odd_even("),
    Edit("no-sign", "sort", "block-radix", "bit < bits;", "bit < bits - 1;", "sort_block_radix("),
    Edit(
        "equal-collide",
        "sort",
        "merge",
        "left ? before(met, key) : !before(key, met)",
        "before(met, key)",
        "sort_merge(",
    ),
    Edit(
        "unstable",
        "sort",
        "bitonic",
        "place_b < place_a",
        "place_b > place_a",
        "compare_exchange(",
        {"result": "places"},
    ),
    Edit("signed-difference", "sort", "one-thread", "before(keys[j], keys[least])", "keys[j] - keys[least] < 0"),
    Edit("lost-equal", "sort", "quicksort", "met == own && other < i", "met == own && other > i + 1", "select_places("),
    # Transposition.
    Edit("stride-of-squares", "transpose", "scatter", "column * rows + row", "column * columns + row"),
    Edit("stride-of-squares", "transpose", "padded", "in[row * columns", "in[row * rows", "transpose_padded("),
    Edit("quad-bound", "transpose", "vectors", "column + 1 < columns) found.y", "column + 2 < columns) found.y"),
    # Convolution.
    Edit(
        "transposed-filter",
        "convolution",
        "naive",
        "filter[(dy + radius) * (2 * radius + 1) + dx + radius]",
        "filter[(dx + radius) * (2 * radius + 1) + dy + radius]",
    ),
    Edit(
        "transposed-filter",
        "convolution",
        "constant",
        "FILTER[dy * DIAMETER + dx]",
        "FILTER[dx * DIAMETER + dy]",
        "convolve_constant(",
    ),
    Edit(
        "flipped-filter",
        "convolution",
        "tiled",
        "FILTER[dy * DIAMETER + dx]",
        "FILTER[(DIAMETER - 1 - dy) * DIAMETER + dx]",
        "convolve_tiled(",
    ),
    Edit(
        "rows-for-columns",
        "convolution",
        "separable",
        "FILTER_COLUMN[DIAMETER - 1 - j]",
        "FILTER_ROW[DIAMETER - 1 - j]",
        "convolve_columns(",
    ),
    Edit(
        "first-channel",
        "convolution",
        "naive",
        "image + blockIdx.z * width * height",
        "image",
        "convolve_naive(",
    ),
    # Stencil.
    Edit("stride-of-cubes", "stencil", "naive", "(z * rows + y) * columns + x]", "(z * columns + y) * rows + x]"),
    Edit("no-around", "stencil", "tiled", "+ around * sum", "+ sum", "stencil_tiled("),
    Edit("edge", "stencil", "naive", "0 <= x && x < columns", "0 <= x && x <= columns", "float point("),
    Edit("store-one-too-far", "stencil", "vectors", "x + 2 < columns) place", "x + 1 < columns) place"),
    Edit(
        "no-halo-below",
        "stencil",
        "registers",
        "point(in, first - 1, y, x, planes, rows, columns)",
        "0.0f",
        "stencil_registers(",
    ),
    Edit("twice", "stencil", "coarse", "here[j - 1][i] + here[j + 1][i]", "2 * here[j + 1][i]", "stencil_coarse("),
    # Sparse product.
    Edit("magnitude", "spmv", "scalar", "* x[columns[k]]", "* fabsf(x[columns[k]])", "spmv_scalar("),
    Edit("one-iteration", "spmv", "vector", "k < end; k += ROW_LANES", "k < end; k = end", "sum_of_row("),
    Edit("one-row-too-many", "spmv", "fitted", "row < n && threadIdx.x", "row <= n && threadIdx.x", "spmv_fitted("),
    Edit("bound-of-rows", "spmv", "ell", "j * n + row] * x", "j * (n - 1) + row] * x", "spmv_ell("),
    # N-body.
    Edit(
        "last-body-again",
        "nbody",
        "tiled",
        "start + t < n ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f)",
        "bodies[min(start + t, n - 1)]",
        "nbody_tiled(",
    ),
    Edit("no-mass", "nbody", "naive", "return mass * inverse", "return inverse", "pull_of("),
    Edit("no-softening", "nbody", "naive", "dz * dz + softening_squared", "dz * dz + 0.0009f", "pull_of("),
)

RIGHT_EDITS = (
    Edit(
        "index",
        "reduction",
        "shared",
        "blockIdx.x * 2 * blockDim.x + t",
        "2 * blockIdx.x * blockDim.x + t",
        "reduce_shared(",
    ),
    Edit(
        "operands",
        "reduction",
        "shared",
        "COMBINE(s[2 * t], s[2 * t + stride])",
        "COMBINE(s[2 * t + stride], s[2 * t])",
    ),
    Edit("shift", "reduction", "interleaved", "stride /= 2", "stride >>= 1", "reduce_interleaved(", _FLOATS),
    Edit(
        "while-loop",
        "reduction",
        "grid-stride",
        "for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) value = "
        "COMBINE(value, data[i]);",
        "int i = blockIdx.x * blockDim.x + t;\n    while (i < n) {\n        value = COMBINE(data[i], value);\n"
        "        i += gridDim.x * blockDim.x;\n    }",
        "reduce_grid_stride(",
        _MAX,
    ),
    Edit(
        "backwards",
        "reduction",
        "shuffle",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)",
        "for (int i = n - 1 - (int)(blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i -= gridDim.x * blockDim.x)",
        "reduce_shuffle(",
        _FLOATS,
    ),
    Edit(
        "association",
        "reduction",
        "peak",
        "COMBINE(value, COMBINE(pair, other))",
        "COMBINE(COMBINE(value, other), pair)",
        "reduce_peak(",
        _FLOATS,
    ),
    Edit("operands", "scan", "naive", "COMBINE(sum, in[j])", "COMBINE(in[j], sum)", "scan_naive(", _FLOATS),
    Edit("operands", "scan", "kogge-stone", "COMBINE(left, s[t])", "COMBINE(s[t], left)", "scan_kogge_stone(", _MAX),
    Edit(
        "running-sum",
        "scan",
        "one-thread",
        "for (int i = 1; i < n; ++i) out[i] = COMBINE(out[i - 1], in[exclusive ? i - 1 : i]);",
        "VALUE sum = n > 0 ? out[0] : IDENTITY;\n    for (int i = 1; i < n; ++i) {\n"
        "        sum = COMBINE(sum, in[i - (exclusive ? 1 : 0)]);\n        out[i] = sum;\n    }",
        "scan_one_thread(",
    ),
    # The host program launches nothing for an empty input.
    Edit("no-empty-input", "scan", "one-thread", "if (n > 0) out[0]", "out[0]", "scan_one_thread("),
    Edit("comparison", "compaction", "three-kernels", "((value) > threshold)", "(threshold < (value))"),
    Edit("popcount", "compaction", "ballot", "((1u << lane) - 1)", "~(0xffffffffu << lane)", "phase: write"),
    Edit("always-merge", "histogram", "privatized", "if (block_bins[bin] > 0) ", "", "histogram_privatized("),
    Edit(
        "equal-first",
        "histogram",
        "aggregated",
        "            run_bin = bin;\n            run = 0;\n        }\n        ++run;",
        "            run = 0;\n            run_bin = bin;\n        }\n        run += 1;",
        "histogram_aggregated(",
    ),
    Edit(
        "operands",
        "matmul",
        "coalesced",
        "a[row * k + i] * b[i * n + column]",
        "b[column + i * n] * a[i + row * k]",
        "matmul_coalesced(",
    ),
    Edit(
        "backwards",
        "matmul",
        "tiled",
        "for (int i = 0; i < TILE; ++i) sum",
        "for (int i = TILE - 1; i >= 0; --i) sum",
        "matmul_tiled(",
    ),
    Edit("reciprocal", "softmax", "naive", "expf(x[i] - greatest) / sum", "expf(x[i] - greatest) * (1.0f / sum)"),
    Edit("operands", "softmax", "shared", "fmaxf(greatest, x[i])", "fmaxf(x[i], greatest)", "softmax_shared("),
    Edit("padding", "transpose", "padded", "TILE + PADDING", "TILE + 1", "transpose_padded("),
    Edit(
        "renamed",
        "transpose",
        "scatter",
        "out[column * rows + row] = in[row * columns + column]",
        "const float element = in[column + columns * row];\n    out[row + rows * column] = element",
    ),
    Edit(
        "columns-first",
        "convolution",
        "naive",
        "for (int dy = -radius; dy <= radius; ++dy)\n        for (int dx = -radius; dx <= radius; ++dx)",
        "for (int dx = -radius; dx <= radius; ++dx)\n        for (int dy = -radius; dy <= radius; ++dy)",
    ),
    Edit(
        "operands",
        "convolution",
        "tiled",
        "FILTER[dy * DIAMETER + dx] * tile[threadIdx.y + dy][threadIdx.x + dx]",
        "tile[dy + threadIdx.y][dx + threadIdx.x] * FILTER[dx + DIAMETER * dy]",
        "convolve_tiled(",
    ),
    Edit(
        "operands",
        "stencil",
        "naive",
        "(z * rows + y) * columns + x;",
        "x + columns * (y + rows * z);",
        "stencil_naive(",
    ),
    Edit(
        "order",
        "stencil",
        "registers",
        "below + above + here[j - 1][i]",
        "here[j - 1][i] + above + below",
        "stencil_registers(",
    ),
    Edit("order", "stencil", "vectors", "left + own.y", "own.y + left"),
    Edit(
        "renamed",
        "spmv",
        "scalar",
        "sum += entries[k] * x[columns[k]];",
        "{\n        int column = columns[k];\n        sum = sum + x[column] * entries[k];\n    }",
        "spmv_scalar(",
    ),
    Edit("exchange", "spmv", "vector", "__shfl_down_sync", "__shfl_xor_sync", "sum_of_row("),
    Edit(
        "skip-itself",
        "nbody",
        "naive",
        "float dx = bodies[j].x",
        "if (j == i) continue;\n        float dx = bodies[j].x",
        "nbody_naive(",
    ),
    Edit("operands", "nbody", "tiled", "ax += dx * pull;", "ax = pull * dx + ax;", "nbody_tiled("),
    Edit("and", "sort", "odd-even", "phase % 2", "(phase & 1)", "sort_odd_even("),
    Edit("fewer-tests", "sort", "bitonic", "i < n && j < n", "j < n", "sort_bitonic_step("),
    Edit("downwards", "sort", "one-thread", "for (int j = i + 1; j < n; ++j)", "for (int j = n - 1; j > i; --j)"),
)
