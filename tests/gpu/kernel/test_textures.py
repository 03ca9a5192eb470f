"""Textures that a kernel reads: objects and references, of one and two dimensions; and what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError, KernelError, LaunchError
from gpu.files.images import write_image
from gpu.kernel.simulate import Simulation, simulate

SOURCE = """texture<float, 2> plane;
texture<float> line;
__global__ void references(float *out) {
    int i = threadIdx.x;
    out[i] = tex2D(plane, i - 1.5f, 1.2f);
    out[8 + i] = tex1D(line, i + 0.5f);
    out[16 + i] = tex1Dfetch(line, i % 4);
}
template <typename T> __device__ T fetch(cudaTextureObject_t t, float x, float y) { return tex2D<T>(t, x, y); }
__global__ void objects(cudaTextureObject_t image, unsigned char *out) {
    out[threadIdx.x] = fetch<unsigned char>(image, threadIdx.x, blockIdx.x);
}
__global__ void colors(cudaTextureObject_t image, uchar4 *out) { out[0] = tex2D<uchar4>(image, 1, 0); }
__global__ void linear(cudaTextureObject_t a, int *out) { out[0] = tex1D<int>(a, 2.0f) + tex1Dfetch<int>(a, 1); }"""


@pytest.fixture
def save_array(tmp_path: Path):
    def save(values: Any, name: str = "values.npy") -> Path:
        np.save(tmp_path / name, values)
        return tmp_path / name

    return save


def run(kernel: str, *arguments: Any, grid: int = 1, block: int = 8, **options: Any) -> Simulation:
    return simulate("test.cu", kernel, grid, block, arguments, source=SOURCE, **options)


@pytest.mark.parametrize("traced", [False, True])
def test_references_read_the_nearest_element_and_the_edges_beyond(save_array: Any, traced: bool) -> None:
    plane = np.arange(12).reshape(3, 4) / 2
    textures = {"plane": save_array(plane), "line": save_array(np.arange(5, dtype=np.float32), "line.npy")}
    simulation = run("references", "empty:24", textures=textures, traced=traced)
    assert simulation.findings == []
    out = simulation.arrays[0]
    assert out[:8].tolist() == [2, 2, 2, 2.5, 3, 3.5, 3.5, 3.5]
    assert out[8:16].tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
    assert out[16:].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert simulation.counters.total["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 3


def test_objects_read_images_and_arrays(save_array: Any, tmp_path: Path) -> None:
    values = np.arange(15, dtype=np.uint8).reshape(3, 5)
    for path in (save_array(values), tmp_path / "image.png"):
        write_image(tmp_path / "image.png", values)
        simulation = run("objects", f"texture:{path}", "empty:24", grid=1)
        assert simulation.arrays[1][:8].tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
    color = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    write_image(tmp_path / "color.png", color)
    assert run("colors", f"texture:{tmp_path / 'color.png'}", "empty:1").arrays[1].tolist() == [[3, 4, 5, 255]]
    assert run("linear", f"texture:{save_array(np.array([1, 2, 30]))}", "empty:1").arrays[1].tolist() == [32]


def test_a_fetch_that_does_not_fit_the_texture_is_refused_with_its_line(save_array: Any) -> None:
    def refusal(kernel: str, *arguments: Any, **options: Any) -> str:
        with pytest.raises(LaunchError) as caught:
            run(kernel, *arguments, **options)
        return caught.value.message

    path = save_array(np.zeros((2, 2), np.float32))
    assert refusal("objects", f"texture:{path}", "empty:24") == (
        "test.cu:9:92: thread (0,0,0) in block (0,0,0) reads a texture by coordinates, but a texel of image has "
        "4 bytes, not 1."
    )
    flat = save_array(np.zeros(4, np.uint8))
    assert "image is 1-dimensional, not 2-dimensional" in refusal("objects", f"texture:{flat}", "empty:24")
    assert "plane is not a texture" in refusal("references", "empty:24")
    assert "image is not a texture" in refusal("objects", "zeros:16", "empty:24")
    assert "a null pointer is not a texture" in refusal("objects", "null", "empty:24")


def test_files_that_are_no_textures_are_refused(save_array: Any, tmp_path: Path) -> None:
    def refusal(path: Any) -> str:
        with pytest.raises(InputError) as caught:
            run("objects", f"texture:{path}", "empty:24")
        return caught.value.message

    assert "it needs one or two dimensions, but is 2 x 2 x 2" in refusal(save_array(np.zeros((2, 2, 2))))
    assert "but is a single number" in refusal(save_array(np.float32(1)))
    assert "textures do not support elements of type complex128" in refusal(save_array(np.zeros(2, complex)))
    assert "its numbers need eight" in refusal(save_array(np.array([1 << 40])))
    assert "There is no file" in refusal(tmp_path / "none.npy")
    assert "There is no file" in refusal(tmp_path / "none.png")


def test_what_is_no_texture_takes_none(save_array: Any) -> None:
    path = save_array(np.zeros(2))
    with pytest.raises(InputError, match="is not a texture object"):
        run("references", f"texture:{path}")
    with pytest.raises(KernelError, match="There is no texture reference 'other'; the file has plane, line"):
        run("references", "empty:24", textures={"other": path})
    with pytest.raises(InputError, match="The file has no __constant__ or __device__ variable 'line'; it has none"):
        run("references", "empty:24", constants={"line": "1"})
