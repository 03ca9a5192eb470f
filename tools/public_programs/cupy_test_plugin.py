"""pytest plugin for CuPy's own tests: Lockstep's CuPy, with CuPy's `cupy.testing` and replacements of private modules.

`LOCKSTEP_CUPY_SOURCES` is the folder of CuPy's repository.
"""

from __future__ import annotations

import importlib.machinery
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gpu.hosts.cupy.installation import install
from gpu.hosts.cupy.kernels import compilation
from gpu.hosts.driver.journal import Journal, set_current_journal

_SOURCES = Path(os.environ.get("LOCKSTEP_CUPY_SOURCES", ""))


class _TestingFinder:
    """Importer of CuPy's own `cupy.testing`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != "cupy.testing" and not name.startswith("cupy.testing."):
            return None
        folder = _SOURCES / "cupy" / ("testing" if name.count(".") > 1 else "")
        return importlib.machinery.PathFinder.find_spec(name, [str(folder)])


class _KernelCache:
    """A cache of machine code on a disk, which the simulator does not have."""

    def __init__(self, path: Any = None) -> None:
        self.saves = 0


_SKIPPED = {
    "machine code or PTX": re.compile("load_cubin|load_ptx|TestCachePayload|cubin"),
    "CuPy's private function create_reduction_func": re.compile(
        "TestSimpleReductionFunction|TestArgumentTypes|TestReductionKernelCachedCode"
    ),
}
"""Reasons to skip tests, and patterns of their names."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of what Lockstep's CuPy does not have."""
    for item in items:
        for reason, pattern in _SKIPPED.items():
            if pattern.search(item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))


def _add_module(name: str, **names: Any) -> None:
    module = ModuleType(name)
    module.__dict__.update(names)
    module.__path__ = []
    sys.modules[name] = module
    parent, _, short = name.rpartition(".")
    if parent in sys.modules:
        sys.modules[parent].__dict__[short] = module


def _compute_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))


def _add_private_modules(cupy: Any) -> None:
    """Add the private modules that the tests import; none of them runs a kernel."""
    accelerators = {
        "ACCELERATOR_CUB": 1, "ACCELERATOR_CUTENSOR": 2, "get_reduction_accelerators": list,
        "set_reduction_accelerators": lambda names: None, "get_routine_accelerators": list,
        "set_routine_accelerators": lambda names: None,
    }  # fmt: skip
    _add_module("cupy._util", clear_memo=compilation.clear_modules, PerformanceWarning=UserWarning)
    _add_module("cupy.cuda._compiler_cache", DiskKernelCacheBackend=_KernelCache)
    _add_module("cupy_backends")
    _add_module("cupy_backends.cuda")
    _add_module("cupy_backends.cuda.libs")
    _add_module("cupy_backends.cuda.libs.nvrtc", getVersion=lambda: (13, 0))
    _add_module(
        "cupy._core",
        ndarray=cupy.ndarray,
        _ndarray_base=cupy.ndarray,
        create_reduction_func=lambda *names, **options: None,
        elementwise_copy=lambda source, target: target.__setitem__(Ellipsis, source),
        _get_warpsize=lambda: 32,
        _full_mask=lambda: 0xFFFF_FFFF,
        **accelerators,
    )
    _add_module("cupy._core._accelerator", **accelerators)
    _add_module("cupy._core.core", _get_header_source=lambda: "", ndarray=cupy.ndarray)
    _add_module(
        "cupy._core.internal", vector_equal=lambda a, b: list(a) == list(b), get_c_contiguity=None,
        prod=lambda values: int(np.prod(list(values), dtype=object)), get_contiguous_strides=_compute_strides,
    )  # fmt: skip
    _add_module("cupyx.scipy.sparse", issparse=lambda value: False)


def _set_private_names(cupy: Any) -> None:
    compiler = cupy.cuda.compiler.__dict__
    compiler |= {
        "_kernel_cache_backend": None, "_empty_file_preprocess_cache": None,
        "_get_bool_env_variable": lambda name, default: default, "JitifyException": compiler["CompileException"],
        "_run_cc": lambda command, *rest: "release 13.0", "_get_arch": lambda: "90",
        "_compile_module_with_cache": lambda code, **options: compilation.compile_module(code),
    }  # fmt: skip
    cupy.cuda.__dict__["get_nvcc_path"] = lambda: "nvcc"
    cupy.cuda.driver.__dict__["_is_cuda_python"] = lambda: True


def _prepare() -> None:
    set_current_journal(Journal())
    install()
    import cupy  # the replacement that was just installed

    sys.path.insert(0, str(_SOURCES / "tests"))
    sys.meta_path.insert(0, _TestingFinder())
    del sys.modules["cupy.testing"], cupy.__dict__["testing"]
    _add_private_modules(cupy)
    _set_private_names(cupy)
    import cupy.testing


if _SOURCES.name:  # before pytest loads the tests' conftest.py
    _prepare()
