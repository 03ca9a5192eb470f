"""Local memory that outlives a region only through a pointer: each thread keeps its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.simulator.simulated_module import SimulatedModule

_THREADS = 64
_START = "int values[4]; for (int k = 0; k < 4; ++k) values[k] = in[4 * threadIdx.x + k];"
_BODIES = {
    "of another type, in a loop": """
        int4 word = ((const int4 *)in)[threadIdx.x], result;
        short *from = (short *)&word, *to = (short *)&result;
        for (int k = 0; k < 8; ++k) to[k] = from[k] + (k % 2 == 0);
        ((int4 *)out)[threadIdx.x] = result;""",
    "after a barrier": f"""
        {_START}
        int *p = threadIdx.x % 2 ? values : &values[0];
        __syncthreads();
        int first = *p + 1, second = p[1] + 1, third = p[2] + 1, fourth = p[3] + 1;
        __syncthreads();
        int all[4] = {{first, second, third, fourth}};
        for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = all[k];""",
    "in a struct": f"""
        {_START}
        View view; view.start = values;
        __syncthreads();
        for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = view.start[k] + 1;""",
    "passed to a function that waits": f"""
        {_START}
        int *p = values + (threadIdx.x & 0);
        increment(p);
        for (int k = 0; k < 4; ++k) out[4 * threadIdx.x + k] = p[k];""",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_pointer_to_local_memory_keeps_each_threads_values(body) -> None:
    text = f"""struct View {{ int *start; }};
    __device__ void increment(int *p) {{
        __syncthreads(); for (int k = 0; k < 4; ++k) p[k] += 1; __syncthreads();
    }}
    extern "C" __global__ void f(const int *in, int *out) {{ {body} }}"""
    values = np.arange(4 * _THREADS, dtype=np.int32)
    out = np.zeros_like(values)
    kernel = SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("f")
    kernel.launch((1, 1, 1), (_THREADS, 1, 1), [values.view(np.uint8), out.view(np.uint8)])
    np.testing.assert_array_equal(out, values + 1)
