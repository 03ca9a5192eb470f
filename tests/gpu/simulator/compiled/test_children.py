"""Kernels that kernels launch, as machine code: beside lockstep, which launches them in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpu.base.errors import LaunchError
from gpu.simulator.compiled import native_code
from gpu.simulator.simulated_module import SimulatedModule

_TREE = """
struct Range { long long first; int count; char step; };
__device__ int shift = 3;
__global__ void fill(int *data, Range range, bool odd, float by) {
    for (int i = threadIdx.x; i < range.count; i += blockDim.x) {
        int *place = &data[range.first + i * range.step];
        if (odd == i % 2) atomicAdd(place, (int)(by * i) + shift + blockIdx.x);
    }
}
__global__ void last(int *data, const int *found, int n) { data[n] = found[1] + found[n - 2]; }
__global__ void halve(int *data, int first, int count) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    if (t < 2) s[t] = first + t * (count / 2);
    __syncthreads();
    if (count > 8) {
        if (t < 2) {
            cudaStream_t own;
            cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
            halve<<<1, 32, 8, own>>>(data, s[t], count / 2);
            cudaStreamDestroy(own);
        }
    } else if (t == 7) {
        fill<<<2, dim3(2, 2)>>>(data, {first, count, 1}, first % 16 == 0, 1.5f);
    }
}
__global__ void root(int *data, int n) {
    if (threadIdx.x == 0 && blockIdx.x == 1) last<<<1, 1, 0, cudaStreamTailLaunch>>>(data, data, n);
    if (threadIdx.x == 5 && blockIdx.x == 0) halve<<<1, 32, 8>>>(data, 0, n);
}
"""


def _run(text: str, name: str, grid: int, *arguments: Any, block: int = 32) -> list[npt.NDArray[np.int32]]:
    results = []
    for how in ("kernel", "compiled_kernel"):
        data = np.zeros(65, np.int32)
        kernel = getattr(SimulatedModule(text, Path("tree.cu"), {}), how)(name)
        kernel.launch((grid, 1, 1), (block, 1, 1), [data.view(np.uint8), *arguments])
        results.append(data)
    return results


def test_a_tree_of_launches_gives_what_it_gives_in_lockstep() -> None:
    plain, compiled = _run(_TREE, "root", 2, np.int32(64))
    assert plain[64] == plain[1] + plain[62] != 0
    assert compiled.tolist() == plain.tolist()


def test_what_launches_itself_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    made: list[int] = []
    compile_text = native_code.compile_text
    monkeypatch.setattr(native_code, "compile_text", lambda text: made.append(1) or compile_text(text))
    text = """
    __global__ void k(int *data, int depth) {
        data[depth] += 1;
        if (depth < 5) k<<<1, 1>>>(data, depth + 1);
        if (depth < 5) k<<<1, 1>>>(data, depth + 1);
    }
    """
    data = np.zeros(8, np.int32)
    SimulatedModule(text, Path("k.cu"), {}).compiled_kernel("k").launch(
        (1, 1, 1), (1, 1, 1), [data.view(np.uint8), np.int32(0)]
    )
    assert data.tolist() == [1, 2, 4, 8, 16, 32, 0, 0]
    assert len(made) == 1


@pytest.mark.parametrize(
    "launch",
    [
        "if (n == 0) child<<<1, 2000>>>(data)",
        "if (n == 0) child<<<0, 1>>>(data)",
        "if (n == 0) child<<<1, 1, 1 << 20>>>(data)",
        "k<<<1, 1>>>(data, n + 1)",
        "k<<<1, 1>>>(data, 0); k<<<1, 1>>>(data, 30)",
    ],
)
def test_a_child_that_cannot_run_ends_the_launch_as_in_lockstep(launch: str) -> None:
    text = f"""
    __global__ void child(int *data) {{ data[0] = 1; }}
    __global__ void k(int *data, int n) {{
        if (n > 30) return;
        {launch};
    }}
    """
    module, said = SimulatedModule(text, Path("k.cu"), {}), []
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        with pytest.raises(LaunchError) as failure:
            kernel.launch((1, 1, 1), (1, 1, 1), [np.zeros(64, np.uint8), np.int32(0)])
        said.append((failure.value.message, failure.value.kind, failure.value.position, failure.value.thread))
    assert said[0] == said[1]


@pytest.mark.parametrize("own", ["shared", "local", "held.there"])
def test_a_child_is_not_given_its_parents_own_memory(own: str) -> None:
    text = f"""
    struct Held {{ int *there; }};
    __global__ void child(int *data) {{ data[0] = 1; }}
    __device__ void start(int *given) {{ child<<<1, 1>>>(given); }}
    __global__ void k(int *data) {{
        __shared__ int shared[32];
        int local[8];
        for (int i = 0; i < 8; ++i) local[i] = data[i];
        Held held = {{data[0] ? data : local + data[1]}};
        if (threadIdx.x == 3 && blockIdx.x == 1) start({own});
        data[2] = local[data[1]] + shared[data[1]];
    }}
    """
    module = SimulatedModule(text, Path("k.cu"), {})
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        with pytest.raises(LaunchError, match="the parent's ") as failure:
            kernel.launch((2, 1, 1), (32, 1, 1), [np.zeros(64, np.uint8)])
        assert failure.value.thread == "thread (3,0,0) in block (1,0,0)"
