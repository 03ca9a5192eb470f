"""`pytest --lockstep` on another project's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu.base.paths import ROOT
from gpu.hosts.pycuda import driver
from tests import needs

SUITE = '''\
import numpy as np
import pycuda.autoinit
import pycuda.gpuarray as gpuarray
import pytest
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void scale(float *a) { a[threadIdx.x] *= 2; }
__global__ void shift(float *a) { a[threadIdx.x] = a[threadIdx.x + 1]; }
""")

@pytest.fixture
def shifted():
    a = gpuarray.to_gpu(np.ones(65, np.float32))
    module.get_function("shift")(a, block=(64, 1, 1))
    return a

def test_scale():
    a = gpuarray.to_gpu(np.ones(64, np.float32))
    module.get_function("scale")(a, block=(64, 1, 1))
    assert (a.get() == 2).all()

def test_out_of_bounds():
    a = gpuarray.to_gpu(np.ones(60, np.float32))
    module.get_function("scale")(a, block=(64, 1, 1))
    a.get()

def test_race_in_a_fixture(shifted):
    assert shifted.get()[0] == 1

def test_wrong():
    assert 1 == 2

@pytest.mark.lockstep_hardware
def test_speed():
    assert False
'''


def run_pytest(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "lockstep.pytest_plugin", "-p", "no:cacheprovider", "-rA", *options],
        cwd=folder,
        # The imports of plugins that are installed here take longer than these tests.
        env={**os.environ, "PYTHONPATH": str(ROOT / "package"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


@needs.needs(not driver.explain_unavailable(), needs.PYCUDA)
@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "1"]], ids=["alone", "xdist"])
def test_a_finding_fails_the_test_that_launched_the_kernel(tmp_path, workers):
    (tmp_path / "test_kernels.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    code, output = run_pytest(tmp_path, "--lockstep", *workers)
    assert code == 1
    outcomes = {line.split("::")[1].split(" ")[0]: line.split(" ")[0] for line in output.splitlines() if "py::" in line}
    assert outcomes == {
        "test_scale": "PASSED",
        "test_out_of_bounds": "FAILED",
        "test_race_in_a_fixture": "ERROR",
        "test_wrong": "FAILED",
    }
    assert "1 skipped" in output
    assert "scale, launched at test_kernels.py:25:" in output
    assert "1. out-of-bounds" in output
    assert "shift, launched at test_kernels.py:15:" in output
    assert "1. race" in output


CUPY_SUITE = """\
import cupy as cp
import pytest

shift = cp.RawKernel('extern "C" __global__ void shift(float *a) { a[threadIdx.x] = a[threadIdx.x + 1]; }', "shift")

def test_sum():
    assert cp.arange(5).sum() == 10

def test_race():
    shift((1,), (64,), (cp.ones(65, cp.float32),))

@pytest.mark.xfail(reason="known", strict=True)
def test_known_race():
    shift((1,), (64,), (cp.ones(65, cp.float32),))
"""


def test_a_suite_of_cupy_needs_no_pycuda(tmp_path):
    (tmp_path / "test_kernels.py").write_text(CUPY_SUITE)
    code, output = run_pytest(tmp_path, "--lockstep")
    assert code == 1
    assert "1 failed, 1 passed, 1 xfailed" in output
    assert "shift, launched at test_kernels.py:10:" in output
    assert "lockstep: NumPy and SciPy computed, without kernels and checks: sum, equal." in output


def test_without_the_option_nothing_changes(tmp_path):
    (tmp_path / "test_a.py").write_text("import sys\n\ndef test_a():\n    assert 'gpu' not in sys.modules\n")
    code, output = run_pytest(tmp_path)
    assert code == 0, output


def test_a_conftest_sees_the_simulator(tmp_path):
    """pytest imports the first conftest.py before it configures plugins, and suites look for a GPU there."""
    (tmp_path / "conftest.py").write_text("try:\n    import cupy\nexcept ImportError:\n    cupy = None\n")
    (tmp_path / "test_kernels.py").write_text(
        "import conftest\n\ndef test_a():\n    assert conftest.cupy.arange(3).sum() == 3\n"
    )
    code, output = run_pytest(tmp_path, "--lockstep")
    assert code == 0, output
