"""Public CuPy scripts, and how to run each on the simulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.base.paths import ROOT

_SECONDS = 100
"""Limit of a script in seconds of processor time, so that other work does not count."""
_CLOCK_SECONDS = 10 * _SECONDS
"""Limit of a script by the clock."""
_CLOCK = (("time.clock()", "time.perf_counter()"),)
"""A function that Python no longer has."""

_TUTORIAL_DRIVER = """
import sys
import numpy as np
import cupy as cp
sys.path.insert(0, sys.argv[1])
import cuda_kernel
inputs = [cp.random.rand(*shape, dtype=cp.float32) for shape in {shapes}]
result = cp.zeros({result}, cp.float32)
cuda_kernel.kernel(*inputs, result)
a, *rest = [each.get().astype(float) for each in inputs]
np.testing.assert_allclose(result.get(), {expected}, rtol=1e-3)
"""
"""Calls a kernel of the tutorial, whose own scripts need PyTorch on a GPU, and compares it with NumPy."""


@dataclass(frozen=True)
class PublicScript:
    """A script, and how it is run.

    Parameters
    ----------
    repository : str
        "owner/name" on GitHub.
    changes : tuple of (str, str)
        Texts that are replaced: sizes, and functions that Python no longer has.
    driver : str
        A script that is run instead, with the folder of `path` as its argument; "" for none.
    has_kernel : bool
        Whether the script has a kernel of its own.
    """

    repository: str
    path: str
    arguments: tuple[str, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()
    driver: str = ""
    has_kernel: bool = True


def _tutorial(name: str, shapes: str, result: str, expected: str) -> PublicScript:
    driver = _TUTORIAL_DRIVER.format(shapes=shapes, result=result, expected=expected)
    return PublicScript("vesuppi/cuda-tutorial", f"{name}/cuda_kernel.py", driver=driver)


_PRODUCTS = (
    "06-matmul-naive", "07-matmul-register-blocking", "08-matmul-smem-blocking", "09-matmul-smem-reg-blocking",
    "10-matmul-smem-reg-blocking-loop", "11-matmul-pipeline",
)  # fmt: skip
_TUTORIAL = (
    _tutorial("01-vector-add", "[(4096,), (4096,)]", "4096", "a + rest[0]"),
    _tutorial("02-row-reduction", "[(64, 1024)]", "64", "a.sum(1)"),
    _tutorial("03-row-reduction-warp-shuffle", "[(64, 1024)]", "64", "a.sum(1)"),
    _tutorial("04-grid-reduction", "[(8, 1024)]", "1", "[a.sum()]"),
    _tutorial("05-rowwise-softmax", "[(64, 1024)]", "(64, 1024)", "np.exp(a) / np.exp(a).sum(1, keepdims=True)"),
    *(_tutorial(name, "[(128, 64), (64, 128)]", "(128, 128)", "a @ rest[0]") for name in _PRODUCTS),
)
_STREAMS = ("cublas", "cufft", "cupy_event", "cupy_kernel", "cupy_memcpy", "curand", "cusolver", "cusparse", "thrust")
_JIT = (("2 ** 22", "2 ** 16"),)
_CUPY = "cupy/cupy"
_EXAMPLES = (
    PublicScript(_CUPY, "examples/cg/cg.py", ("--max-iter", "5"), has_kernel=False),
    *(
        PublicScript(_CUPY, f"examples/custom_struct/{name}.py")
        for name in ("builtin_vectors", "complex_struct", "packed_matrix")
    ),
    PublicScript(_CUPY, "examples/finance/black_scholes.py", ("--n-options", "1000")),
    PublicScript(
        _CUPY,
        "examples/finance/monte_carlo.py",
        ("--n-options", "4", "--n-samples-per-thread", "10", "--n-threads-per-option", "1000"),
    ),
    PublicScript(_CUPY, "examples/gemm/sgemm.py", ("--m", "128", "--n", "128", "--k", "64")),
    PublicScript(_CUPY, "examples/gmm/gmm.py", ("--num", "1000"), has_kernel=False),
    *(
        PublicScript(_CUPY, f"examples/jit/{name}.py", changes=_JIT)
        for name in ("elmentwise_op", "reduction_atomic", "reduction_simple")
    ),
    PublicScript(_CUPY, "examples/kmeans/kmeans.py", ("--num", "1000", "--use-custom-kernel")),
    *(PublicScript(_CUPY, f"examples/stream/{name}.py", has_kernel=False) for name in _STREAMS),
    PublicScript(_CUPY, "examples/stream/map_reduce.py", changes=(("1024**2", "1024"),), has_kernel=False),
)
_COURSE = "srike27/cupycopypasta"
_OTHERS = (
    PublicScript(_COURSE, "cupy01.py", changes=(("1000000", "1000"), *_CLOCK), has_kernel=False),
    PublicScript(_COURSE, "cupy02.py", changes=(("1000000", "1000"), *_CLOCK)),
    PublicScript(_COURSE, "cupy03.py", changes=_CLOCK),
    PublicScript(_COURSE, "cupy04.py", changes=(("100000000", "1000000"), *_CLOCK)),
    PublicScript("PyCOMPLETE/PyPIC", "examples/exploratory_scripts/002_kernels_pyocl_cupy/000b_cupy_demo.py"),
    PublicScript("Beyiii/Perlin-noise-y-Marching-cubes", "src/test.py"),
    PublicScript("diem389/ai_drill", "cupy1.py"),
)
SCRIPTS = (*_EXAMPLES, *_TUTORIAL, *_OTHERS)
NOTES = {
    "examples/stream/cusparse.py": "needs `cupyx.cusparse`",
    "cupy04.py": "launches blocks of 0 threads, which a GPU refuses too",
}
"""Reasons for failures that are known."""


def run_script(script: PublicScript, top: Path, work: Path) -> str:
    """Run a script; return its error, or "" if it finishes.

    Parameters
    ----------
    top : Path
        The clone of its repository.
    work : Path
        A folder for a changed copy, and for the replacement of Matplotlib.
    """
    file, arguments = top / script.path, list(script.arguments)
    if not file.is_file():
        return f"{script.repository} does not have it"
    if script.driver:
        arguments = [str(file.parent)]
        file = work / "driver.py"
        file.write_text(script.driver, "utf-8")
    elif script.changes:
        text = file.read_text("utf-8")
        for old, new in script.changes:
            text = text.replace(old, new)
        file = work / file.name
        file.write_text(text, "utf-8")
    packages = work / "packages"
    (packages / "matplotlib").mkdir(parents=True, exist_ok=True)
    for name in ("__init__", "pyplot"):
        (packages / "matplotlib" / f"{name}.py").touch()
    command = [sys.executable, str(ROOT / "main.py"), "cupy", str(file), *arguments]
    try:
        process = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {_SECONDS}; exec "$@"', "sh", *command], cwd=file.parent,
            env=os.environ | {"PYTHONPATH": str(packages)}, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=_CLOCK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"does not end within {_CLOCK_SECONDS} s"
    if process.returncode < 0:
        return f"exceeds the limit of {_SECONDS} s"
    return "" if process.returncode == 0 else find_error(process.stderr) or f"ends with {process.returncode}"


def find_error(errors: str) -> str:
    """Return the last exception of a script's error output, or its last line."""
    lines = [line for line in errors.splitlines() if line and not line.startswith("lockstep: ")]
    exceptions = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Failure)\b", line)]
    return (exceptions or lines or [""])[-1]


def count_by_repository(results: Sequence[tuple[PublicScript, str]]) -> dict[str, tuple[int, int, int]]:
    """Return, by repository, how many scripts ran, finished, and have a kernel of their own.

    Parameters
    ----------
    results : sequence of (PublicScript, str)
        Scripts with their errors.
    """
    return {
        name: (len(rows), sum(not error for _, error in rows), sum(script.has_kernel for script, _ in rows))
        for name in dict.fromkeys(script.repository for script, _ in results)
        if (rows := [row for row in results if row[0].repository == name])
    }
