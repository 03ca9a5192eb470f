"""Which kernels of a file nvcc has, by their symbols, and whether the front end lowers each."""

from __future__ import annotations

from tools.public_programs import lowered_kernels

MAKEFILE = "CFLAGS = -Iinclude -I$(CUDA)/include -DTILE=4\nall:\n\tnvcc $(CFLAGS)\n"
TEXT = """\
#include "scale.h"
template <typename T, int N>
__global__ void scaled(T *x) { x[threadIdx.x] *= N * SCALE * TILE; }
namespace inner { __global__ void set(int *x) { *x = 1; } }
__global__ void both(int *x) { *x = 1; }
__global__ void both(float *x) { *x = 1; }
__global__ void refused(int *x) { asm("nosuch.instruction;"); }
int main() { scaled<float, 3><<<1, 1>>>(0); }
"""
SYMBOLS = [
    "_Z6scaledIfLi3EEvPT_",
    "_ZN5inner3setEPi",
    "_Z4bothPi",
    "_Z4bothPf",
    "_Z7refusedPi",
    "_ZN3cub7nothingEv",
]
"""As nvcc names them."""


def test_each_kernel_that_nvcc_has_is_lowered_or_told_why_not(tmp_path):
    folder = tmp_path / "a" / "src"
    (tmp_path / "a" / "include").mkdir(parents=True)
    folder.mkdir()
    (tmp_path / "a" / "Makefile").write_text(MAKEFILE)
    (tmp_path / "a" / "include" / "scale.h").write_text("#define SCALE 2\n")
    (folder / "main.cu").write_text(TEXT)
    assert lowered_kernels.find_compile_options(folder / "main.cu", tmp_path) == (
        [tmp_path / "a" / "include"],
        {"TILE": "4"},
    )
    found = lowered_kernels.check_file(folder / "main.cu", tmp_path, SYMBOLS)
    assert found.name == "a/src/main.cu"
    assert found.lowered == ("scaled<float, 3>", "inner::set", "both _Z4bothPi", "both _Z4bothPf")
    assert list(found.refused) == ["refused"]
    assert "nosuch.instruction" in found.refused["refused"]
    assert found.count == 5
