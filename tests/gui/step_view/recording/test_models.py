"""The models of a recording, as the window loads them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from gpu.base.paths import ROOT
from tests.gpu.stepping.recordings import record_launch

SUM = """
__global__ void k(int* sums, const int* in) {
    __shared__ int s[32];
    // phase: load
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    // phase: add
    atomicAdd(&sums[threadIdx.x % 4], s[31 - threadIdx.x] + 1);
}
"""
LOAD_AND_LIST_MODULES = """
import sys
from gui.step_view.recording.models import load_models

assert load_models(sys.argv[1]).layout.rows
print("\\n".join(sys.modules))
"""
EXECUTION = ("gpu.simulator.executor", "gpu.simulator.frontend", "gpu.simulator.compiled", "llvmlite", "clang")


def test_opening_a_recording_loads_nothing_that_executes_kernels(tmp_path):
    path = tmp_path / "sum.rec"
    record_launch(SUM, (np.zeros(4, np.int32), np.arange(32, dtype=np.int32))).save(path)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_AND_LIST_MODULES, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert "gpu.recording.trace" in modules
    assert [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in EXECUTION)] == []
