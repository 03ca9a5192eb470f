"""Installation of the modules `cupy` and `cupyx` in this process."""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import platform
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import scipy.fft

from gpu.hosts.cupy import (
    arrays,
    devices,
    faults,
    memory,
    memory_hooks,
    random_numbers,
    runtime,
    testing,
    textures,
    utilities,
)
from gpu.hosts.cupy.jit import groups
from gpu.hosts.cupy.jit.kernels import JIT
from gpu.hosts.cupy.kernels import compilation, elementwise, raw, reduction
from gpu.hosts.cupy.modules import ForwardingModule

VERSION = "14.0.0"
"""The version whose interface the replacement has."""
_SCIPY = "cupyx.scipy."


def _is_scipy_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"scipy.{name.removeprefix(_SCIPY)}") is not None
    except ModuleNotFoundError:
        return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Importer of `cupy`, `cupyx` and their submodules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ("cupy", "cupyx", "cupy_backends"):
            return None
        if fullname.startswith(_SCIPY) and _is_scipy_module(fullname):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        raise ModuleNotFoundError(f"Lockstep's CuPy does not have the module {fullname}.", name=fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ForwardingModule(spec.name, importlib.import_module(f"scipy.{spec.name.removeprefix(_SCIPY)}"))

    def exec_module(self, module: ModuleType) -> None:
        pass


class _RuntimeInfo:
    """What `cupyx.get_runtime_info()` returns; its text has a line per property, as CuPy's."""

    def __str__(self) -> str:
        properties = runtime.NAMES["getDeviceProperties"](0)
        values = {
            "CuPy Version": VERSION,
            "NumPy Version": np.__version__,
            "Python Version": platform.python_version(),
            "Device 0 Name": properties["name"].decode(),
            "Device 0 Compute Capability": devices.get_compute_capability(),
            "Device 0 PCI Bus ID": "0000:00:00.0",
        }
        return "".join(f"{name:<28}: {value}\n" for name, value in values.items())


def _memoize(for_each_device: bool = False) -> Callable[[Any], Any]:
    return functools.cache


def _cupy_names() -> dict[str, Any]:
    names = {
        name: getattr(arrays, name) for name in ("array", "asarray", "asnumpy", "empty", "empty_like", "from_dlpack")
    }
    names["fromDlpack"] = arrays.from_dlpack
    names |= {
        name: functools.partial(arrays.asarray, order=order)
        for name, order in (("ascontiguousarray", "C"), ("asfortranarray", "F"), ("asanyarray", None))
    }
    return names | {
        "__version__": VERSION,
        **utilities.CUPY,
        "newaxis": None,
        "ndarray": arrays.DeviceArray,
        "ElementwiseKernel": elementwise.ElementwiseKernel,
        "ReductionKernel": reduction.ReductionKernel,
        "RawKernel": raw.RawKernel,
        "RawModule": raw.RawModule,
        "get_array_module": arrays.get_array_module,
        "get_default_memory_pool": lambda: memory.default_pool,
        "get_default_pinned_memory_pool": lambda: memory.default_pinned_pool,
        "clear_memo": compilation.clear_modules,
        "memoize": _memoize,
        "is_available": lambda: True,
        "show_config": lambda: print(
            f"CuPy's interface {VERSION} on {runtime.NAMES['getDeviceProperties'](0)['name']}"
        ),
    }


def _cuda_modules() -> dict[str, dict[str, Any]]:
    parts = {
        "device": {
            "Device": devices.CupyDevice,
            "get_compute_capability": devices.get_compute_capability,
            "get_device_id": runtime.NAMES["getDevice"],
        },
        "stream": {
            "Stream": devices.CupyStream,
            "ExternalStream": devices.ExternalStream,
            "Event": devices.CupyEvent,
            "get_elapsed_time": devices.get_elapsed_time,
            "get_current_stream": devices.get_current_stream,
        },
        "memory": {
            name: getattr(memory, name)
            for name in (
                *("Memory", "UnownedMemory", "MemoryPointer", "MemoryPool", "PinnedMemoryPool", "alloc"),
                *("ManagedMemory", "MemoryAsyncPool", "set_allocator", "get_allocator", "using_allocator"),
            )
        }
        | {
            "OutOfMemoryError": faults.OutOfMemoryError,
            "malloc_managed": lambda size: memory.MemoryPointer(memory.ManagedMemory(size), 0),
            "malloc_async": lambda size: memory.MemoryPointer(memory.Memory(size), 0),
            "BaseMemory": memory.Memory,
        },
        "memory_hook": memory_hooks.NAMES,
        "memory_hooks": memory_hooks.HOOKS,
        "graph": {"Graph": devices.Graph},
        "function": {"Function": compilation.KernelFunction, "Module": compilation.CompiledModule},
        "compiler": {"CompileException": faults.CompileException},
        "texture": textures.NAMES,
        "runtime": runtime.NAMES,
        "driver": {"CUDADriverError": faults.CUDADriverError, "get_build_version": lambda: 13_000},
        "nvtx": dict.fromkeys(("RangePush", "RangePop", "Mark", "MarkC", "RangePushC"), runtime._ignore),  # noqa: SLF001
        "profiler": {"start": runtime._ignore, "stop": runtime._ignore},  # noqa: SLF001
    }
    shared = ("device", "stream", "memory", "memory_hook", "graph", "function")
    top = {name: value for part in shared for name, value in parts[part].items()}
    top |= {
        "is_available": lambda: True,
        "get_cuda_path": lambda: None,
        "get_local_runtime_version": runtime.NAMES["getLocalRuntimeVersion"],
        "get_nvcc_path": lambda: None,
        "profile": utilities.do_nothing,
        "set_pinned_memory_allocator": runtime._ignore,  # noqa: SLF001
        "alloc_pinned_memory": memory.default_pinned_pool.malloc,
    }
    return {"": top, **parts}


def _modules() -> dict[str, ForwardingModule]:
    modules = {"cupy": ForwardingModule("cupy", np, _cupy_names())}
    for name, own in _cuda_modules().items():
        path = f"cupy.cuda.{name}".rstrip(".")
        modules[path] = ForwardingModule(path, None, own)
    for name in ("linalg", "fft", "polynomial", "lib", "exceptions"):
        modules[f"cupy.{name}"] = ForwardingModule(f"cupy.{name}", getattr(np, name))
    modules["cupy.lib.stride_tricks"] = ForwardingModule(
        "cupy.lib.stride_tricks", np.lib.stride_tricks, {"as_strided": arrays.as_strided}
    )
    modules["cupy.random"] = ForwardingModule("cupy.random", None, random_numbers.NAMES)
    modules["cupy.testing"] = ForwardingModule("cupy.testing", None, testing.NAMES)
    modules["cupy.cublas"] = ForwardingModule("cupy.cublas", None, utilities.CUBLAS)
    own = utilities.CUPYX | {"get_runtime_info": lambda full=False: _RuntimeInfo()}
    modules["cupyx"] = ForwardingModule("cupyx", None, own)
    modules["cupyx.jit"] = ForwardingModule("cupyx.jit", None, JIT)
    modules["cupyx.jit.cg"] = ForwardingModule("cupyx.jit.cg", None, groups.NAMES)
    for name in ("cupy._core", "cupy._core.core"):
        modules[name] = ForwardingModule(name, None, _cupy_names())
    modules["cupy.fft.config"] = ForwardingModule("cupy.fft.config", None, utilities.FFT_CONFIG)
    modules["cupyx.profiler"] = ForwardingModule("cupyx.profiler", None, utilities.PROFILER)
    modules["cupyx.scipy"] = ForwardingModule("cupyx.scipy", scipy, {"get_array_module": arrays.get_array_module})
    modules["cupyx.scipy.fft"] = ForwardingModule("cupyx.scipy.fft", scipy.fft, utilities.SCIPY_FFT)
    return modules


def install() -> None:
    """Make `import cupy` and `import cupyx` in this process use the simulator."""
    if isinstance(sys.modules.get("cupy"), ForwardingModule):
        return
    for name in [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx", "cupy_backends")]:
        del sys.modules[name]
    modules = _modules()
    sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, short = name.rpartition(".")
        if parent:
            setattr(modules[parent], short, module)
    sys.meta_path.insert(0, _Finder())
