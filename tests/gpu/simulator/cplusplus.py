"""Programs of C++ on the simulator, compared with the machine's C++ compiler, thread by thread."""

from __future__ import annotations

import numpy as np

from tests.gpu.simulator.kernel_runner import build, launch
from tests.gpu.simulator.oracle import run_cplusplus

THREADS, WIDTH = 45, 24


def compare_program(before: str, body: str) -> None:
    """Run a function's body as a kernel's, and as a function that a kernel calls.

    Parameters
    ----------
    before : str
        What stands before the function. DEVICE is nothing for the C++ compiler.
    body : str
        It has `int i`, which is the thread, `const int *in`, and `int *out` of its own, of `WIDTH` elements.
    """
    function = f"DEVICE void program(int i, const int *in, int *out) {{\n{body}\n}}\n"
    given = np.random.default_rng(5).integers(-50, 50, 16).astype(np.int32)
    right = np.zeros((THREADS, WIDTH), np.int32)
    run_cplusplus(
        f"#define DEVICE\n{before}\n{function}"
        f'extern "C" void all(const int *in, int *out) {{ for (int i = 0; i < {THREADS}; i++) '
        f"program(i, in, out + {WIDTH} * i); }}",
        "all",
        given,
        right,
    )
    source = (
        f"#define DEVICE __device__\n{before}\n{function}"
        "__global__ void all(const int *in, int *out) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
        f"program(i, in, out + {WIDTH} * i); }}\n"
        f"template <int N> __global__ void own(const int *in, int *out) {{\nint i = threadIdx.x; out += {WIDTH} * i;\n"
        f"{body}\n}}"
    )
    module, empty = build(source), np.zeros_like(right)
    for kernel, grid, block in (("all", 3, 15), ("own<1>", 1, THREADS)):
        _, out = launch(module, kernel, given, empty, grid=grid, block=block)
        np.testing.assert_array_equal(out, right)
    assert right.any()
