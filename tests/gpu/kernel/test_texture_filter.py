"""Fetches between elements and beyond edges, against the formulas of the CUDA C++ Programming Guide."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError, LaunchError
from gpu.files.images import write_image
from gpu.kernel.simulate import Simulation, simulate

SOURCE = """texture<float, 2> plane;
texture<float, 1> line;
__global__ void references(const float *x, const float *y, float *out, float *along) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex2D(plane, x[i], y[i]);
    along[i] = tex1D(line, x[i]);
}
__global__ void objects(cudaTextureObject_t plane, cudaTextureObject_t line, const float *x, const float *y, float *out,
                        float *along) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex2D<float>(plane, x[i], y[i]);
    along[i] = tex1D<float>(line, x[i]);
}
__global__ void colors(cudaTextureObject_t t, float4 *out) { out[0] = tex2D<float4>(t, 1.25f, 0.5f); }
__global__ void whole(cudaTextureObject_t t, int *out) { out[0] = tex1D<int>(t, 1.0f); }
"""
PLANE = np.random.default_rng(7).normal(size=(5, 7)).astype(np.float32)
LINE = np.random.default_rng(8).normal(size=7).astype(np.float32)
N = 256


def find_element(values: Any, i: int, n: int, addressing: str) -> int | None:
    """Return which element stands for number i of n; None for the border."""
    if addressing == "clamp":
        return min(max(i, 0), n - 1)
    if addressing == "border":
        return i if 0 <= i < n else None
    if addressing == "wrap":
        return i % n
    return i % n if (i // n) % 2 == 0 else n - 1 - i % n


def expected_fetch(values: Any, places: tuple[float, ...], *, linear: bool, normalized: bool, addressing: str) -> float:
    """Return what the guide says; `places` and the shape of `values` go x, y and rows, columns."""
    shape = values.shape[::-1]
    axes = []
    for place, n in zip(places, shape, strict=True):
        x = float(place) * n if normalized else float(place)
        if not linear:
            axes.append([(math.floor(x), 1.0)])
            continue
        i = math.floor(x - 0.5)
        alpha = round((x - 0.5 - i) * 256) / 256  # 9 bits, 8 of them behind the point
        axes.append([(i, 1 - alpha), (i + 1, alpha)])
    total = 0.0
    for j, of_y in axes[1] if len(axes) == 2 else [(0, 1.0)]:
        for i, of_x in axes[0]:
            column = find_element(values, i, shape[0], addressing)
            row = find_element(values, j, shape[1], addressing) if len(axes) == 2 else 0
            if column is not None and row is not None:
                total += of_x * of_y * float(values.reshape(-1, shape[0])[row, column])
    return total


@pytest.fixture
def save_array(tmp_path: Path):
    def save(values: Any, name: str) -> Path:
        np.save(tmp_path / name, values)
        return tmp_path / name

    return save


def run(kernel: str, *arguments: Any, grid: int = 1, block: int = 1, **options: Any) -> Simulation:
    return simulate("test.cu", kernel, grid, block, arguments, source=SOURCE, **options)


WAYS = [(linear, normalized, addressing) for linear in (False, True) for normalized in (False, True)
        for addressing in ("clamp", "border", *(("wrap", "mirror") if normalized else ()))]  # fmt: skip


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(("linear", "normalized", "addressing"), WAYS)
def test_what_is_fetched_is_the_guides_formula(save_array: Any, linear, normalized, addressing, reference) -> None:
    random = np.random.default_rng(3)
    reach = (-2.3, 3.1) if normalized else (-4.0, 11.0)
    x, y = (random.uniform(*reach, N).astype(np.float32) for _ in range(2))
    words = ",".join(["", *["linear"] * linear, *["normalized"] * normalized, addressing])
    plane, line = f"{save_array(PLANE, 'plane.npy')}{words}", f"{save_array(LINE, 'line.npy')}{words}"
    arguments = (x, y, f"empty:{N}", f"empty:{N}")
    if reference:
        simulation = run("references", *arguments, grid=2, block=128, textures={"plane": plane, "line": line})
    else:
        simulation = run("objects", f"texture:{plane}", f"texture:{line}", *arguments, grid=2, block=128)
    assert simulation.findings == []
    how = {"linear": linear, "normalized": normalized, "addressing": addressing}
    first = 2 if reference else 4
    due = [expected_fetch(PLANE, (a, b), **how) for a, b in zip(x, y, strict=True)]
    assert simulation.arrays[first] == pytest.approx(np.array(due), abs=1e-5)
    assert simulation.arrays[first + 1] == pytest.approx(
        np.array([expected_fetch(LINE, (a,), **how) for a in x]), abs=1e-5
    )
    assert simulation.counters.total["operations"] == 0, "a texture unit's work is none of the kernel's"


def test_weights_have_8_bits_and_the_middle_of_an_element_is_itself(save_array: Any) -> None:
    step = f"texture:{save_array(np.array([0, 1], np.float32), 'step.npy')},linear"
    plane = f"texture:{save_array(np.zeros((2, 2), np.float32), 'none.npy')}"
    x = np.array([0.5, 0.5 + 1 / 1024, 0.5 + 3 / 1024, 0.8, 1.5, np.nan], np.float32)
    along = run("objects", plane, step, x, x, "empty:6", "empty:6", block=6).arrays[5]
    assert along.tolist() == [0, 0, 1 / 256, 77 / 256, 1, 0]


def test_images_are_filtered_as_parts_of_the_greatest_level(tmp_path: Path) -> None:
    color = np.array([[[0, 51, 255], [255, 102, 255]]], np.uint8)
    write_image(tmp_path / "color.png", color)
    out = run("colors", f"texture:{tmp_path / 'color.png'},linear", "empty:1").arrays[1]
    assert out[0].tolist() == pytest.approx([0.75, 0.2 + 0.75 * 0.2, 1, 1])


def test_what_made_a_filtered_value_are_the_elements_around_it(save_array: Any) -> None:
    plane = f"texture:{save_array(PLANE, 'plane.npy')},linear"
    line = f"texture:{save_array(LINE, 'line.npy')},linear"
    x = np.array([2.25], np.float32)
    trace = run("objects", plane, line, x, x, "empty:1", "empty:1", traced=True).trace
    assert trace is not None
    first, *others = trace.ancestry(trace.find_node("out", 0, step=len(trace.events))).groups
    # Columns 1 and 2 of rows 1 and 2, in bytes of an array that has 7 columns.
    assert first.elements.tolist() == [4 * each for each in (8, 9, 15, 16)]
    assert len(others) == 3, "two along x, one along y"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "linear,sharp",
            "'sharp' is not a texture option; valid options are linear, normalized, clamp, border, wrap, mirror.",
        ),
        ("clamp,border", "A texture can use only one of clamp, border."),
        ("wrap", "wrap needs coordinates from 0 to 1, as on a GPU."),
        ("linear,mirror", "mirror needs coordinates from 0 to 1, as on a GPU."),
    ],
)
def test_ways_that_no_gpu_has_are_refused(save_array: Any, words: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        run("whole", f"texture:{save_array(LINE, 'line.npy')},{words}", "empty:1")
    assert said in caught.value.message


def test_whole_numbers_are_not_filtered(save_array: Any) -> None:
    path = save_array(np.arange(4, dtype=np.int32), "whole.npy")
    with pytest.raises(InputError, match=r"whole\.npy cannot be filtered: only float32 and 8- and 16-bit integers can"):
        run("whole", f"texture:{path},linear", "empty:1")
    with pytest.raises(LaunchError, match="t has linear filtering, which requires float, float2 or float4"):
        run("whole", f"texture:{save_array(LINE, 'line.npy')},linear", "empty:1")


def test_a_name_may_have_commas(save_array: Any) -> None:
    path = save_array(np.arange(4, dtype=np.int32), "a,b.npy")
    assert run("whole", f"texture:{path},border", "empty:1").arrays[1].tolist() == [1]
