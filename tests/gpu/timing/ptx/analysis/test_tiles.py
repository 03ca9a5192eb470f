"""Tiles for tensor cores: every element has its lane, and products take what a data sheet says they do."""

from __future__ import annotations

import os
import re
import subprocess

import numpy as np
import pytest

from gpu.base.devices.probe import find_nvcc
from gpu.base.paths import KERNELS
from gpu.patterns import find_pattern
from gpu.run.modeling.timing_model import model_pattern
from gpu.timing import compiler
from gpu.timing.gpus import find_gpu
from gpu.timing.ptx.analysis.tiles import compute_tile_offsets, expand_tile_accesses
from gpu.timing.ptx.program import parse_ptx
from tests import needs


@pytest.mark.parametrize(
    ("what", "shape", "element", "words", "side", "size"),
    [
        ("a", "m16n16k8", "tf32", 4, (16, 8), 4),
        ("b", "m16n16k8", "tf32", 4, (8, 16), 4),
        ("a", "m32n8k16", "f16", 8, (32, 16), 2),
        ("b", "m8n32k16", "f16", 8, (16, 32), 2),
        ("b", "m32n8k16", "f16", 2, (16, 8), 2),
        ("a", "m16n16k16", "s8", 2, (16, 16), 1),
        ("d", "m16n16k16", "f32", 8, (16, 16), 4),
        ("c", "m8n32k16", "f32", 8, (8, 32), 4),
        ("a", "m8n8k4", "f64", 1, (8, 4), 8),
    ],
)
def test_every_element_of_a_tile_has_its_lane(what, shape, element, words, side, size) -> None:
    rows, columns = side
    # Elements that a register holds lie side by side in an operand along k: in rows of A, in columns of B.
    layout, apart, along = ("col", rows, columns) if what == "b" else ("row", columns, rows)
    packed = max(1, 4 // size) if what in "ab" else 1
    found = np.concatenate(
        [
            compute_tile_offsets((what, layout, shape, element, str(word * packed)), np.int64(apart), np.arange(32))
            for word in range(words)
        ]
    )
    wanted = np.arange(0, apart * along * size, size * packed)
    assert sorted(found.tolist()) == wanted.tolist()


def test_a_load_of_a_tile_is_a_load_of_each_register() -> None:
    load = "wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r1, %r2, %r3, %r4}, [%rd1], %r9;"
    kernel = parse_ptx(f".visible .entry k()\n{{\n{load}\nret;\n}}\n").find_kernel("k")
    made = [each for block in expand_tile_accesses(kernel).blocks for each in block.instructions]
    assert [each.opcode for each in made] == ["tileplace", "ld"] * 4 + ["ret"]
    assert [each.operands[0] for each in made if each.opcode == "ld"] == ["%r1", "%r2", "%r3", "%r4"]


NEEDS_NVCC = needs.nvcc


@pytest.mark.parametrize("source", ["ir", pytest.param("sass", marks=NEEDS_NVCC)])
def test_a_matrix_product_by_tensor_cores_is_modeled(source, monkeypatch) -> None:
    if source == "ir":
        monkeypatch.setattr(compiler, "find_nvcc", lambda: "")
    pattern, gpu = find_pattern("matmul"), find_gpu("h200")
    params = pattern.check({"n": 512})
    run = model_pattern(
        pattern.variant("tensor"), pattern.prepare_inputs({}, params, 1), params, "h200", pattern="matmul"
    )
    assert run.error is not None, "its cases are measured, and count among matmul's"
    assert run.error.pattern == "matmul"
    found = run.data()
    # Six products of TF32 for one, of 64 blocks on as many multiprocessors.
    least = 6 * 2 * 512**3 / gpu.tensor_lanes / 64 / gpu.clock_ghz / 1e3
    assert found["source"] == source
    assert least < found["time_us"] < 20 * least


@NEEDS_NVCC
def test_a_kernel_has_the_registers_that_nvcc_gives_it() -> None:
    """Of what is still to be linked the assembler makes other code: of this kernel with 88 registers, not 64."""
    file, defines = KERNELS / "matmul_tensor.cu", {"ROWS": 64, "COLUMNS": 64, "DEPTH": 16}
    found = compiler.assemble(file.read_text("utf-8"), "9.0", defines, [KERNELS], file.name)
    options = [f"-D{name}={value}" for name, value in defines.items()]
    command = [find_nvcc(), "-cubin", "-arch=sm_90", "-std=c++17", "-Xptxas=-v", *options, "-o", os.devnull, str(file)]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    wanted = re.search(r"Used (\d+) registers", log)
    assert found is not None
    assert wanted is not None
    assert found.kernels["matmul_tensor"].registers == int(wanted[1])


@pytest.mark.parametrize(
    ("variant", "products", "source"),
    [
        ("halves", 3 / 2, "ir"),
        pytest.param("halves", 3 / 2, "sass", marks=NEEDS_NVCC),
        ("warpgroups", 3 / 4, "ir"),
        pytest.param("warpgroups", 3 / 4, "sass", marks=[NEEDS_NVCC, pytest.mark.sweep]),
        pytest.param("peak", 0, "ir", marks=pytest.mark.sweep),
        pytest.param("peak", 0, "sass", marks=NEEDS_NVCC),
    ],
)
def test_tiles_that_are_copied_meanwhile_are_modeled(source, variant, products, monkeypatch) -> None:
    """Each tile is asked for once, and nobody waits for it beyond the products, of which halves take three."""
    if source == "ir":
        monkeypatch.setattr(compiler, "find_nvcc", lambda: "")
    pattern, gpu = find_pattern("matmul"), find_gpu("h200")
    params = pattern.check({"n": 128})
    run = model_pattern(
        pattern.variant(variant), pattern.prepare_inputs({}, params, 1), params, "h200", pattern="matmul"
    )
    found = run.data()
    least = products * 2 * 128**3 / gpu.tensor_lanes / 4 / gpu.clock_ghz / 1e3
    assert found["source"] == source
    assert least < found["time_us"] < 80
    # Of each matrix every block row or column of 64 takes what it needs, as floats or as two halves.
    assert found["l2_sectors"] >= 2 * 2 * 128 * 128 * 4 / 32
