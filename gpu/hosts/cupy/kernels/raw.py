"""`cupy.RawKernel` and `cupy.RawModule`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gpu.base.errors import LockstepError
from gpu.files.sources import read_source
from gpu.hosts.cupy.faults import build_driver_error
from gpu.hosts.cupy.kernels.compilation import CompiledModule, KernelFunction, compile_module, format_warnings
from gpu.hosts.cupy.memory import MemoryPointer

_BACKENDS = ("nvrtc", "nvcc")
_UNSET: Any = object()


def _check_settings(code: str | None, options: Any, backend: str, jitify: Any) -> tuple[str, ...]:
    if isinstance(options, str):
        raise TypeError("options must be a tuple of str, not a str")
    if backend not in _BACKENDS:
        raise ValueError(f"Invalid backend {backend!r}: nvrtc or nvcc")
    if code is not None and not isinstance(code, str):
        raise TypeError(f"code must be a str, not {type(code).__name__}")
    if jitify is not _UNSET:
        hint = "" if jitify else " Avoid passing `jitify=False` explicitly."
        warnings.warn(f"The jitify argument is deprecated.{hint}", DeprecationWarning, stacklevel=4)
    return tuple(options)


def _translate(code: str, translate_cucomplex: bool) -> str:
    return code.replace("<cuComplex.h>", "<cupy/cuComplex_bridge.h>") if translate_cucomplex else code


class RawKernel:
    """A kernel of a CUDA C++ source.

    Parameters
    ----------
    name : str
        The kernel's linker symbol: its name, if it is `extern "C"`.
    options : sequence of str
        Options of the compiler.
    backend : {"nvrtc", "nvcc"}
    translate_cucomplex : bool
        Whether the types and functions of cuComplex.h use CuPy's complex numbers.
    enable_cooperative_groups : bool
        Ignored: every launch may synchronize its grid.
    jitify : bool
        Deprecated, and ignored.
    """

    __module__ = "cupy"
    _ATTRIBUTES: ClassVar = (
        *("binary_version", "cache_mode_ca", "const_size_bytes", "local_size_bytes", "max_threads_per_block"),
        *("num_regs", "ptx_version", "shared_size_bytes"),
    )

    def __init__(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: Any = _UNSET,
    ) -> None:
        self.options = _check_settings(code, options, backend, jitify)
        self.code, self.name, self.backend = _translate(code, translate_cucomplex), name, backend
        self.file_path: str | None = None
        self.name_expressions: tuple[str, ...] | None = None
        self.enable_cooperative_groups = enable_cooperative_groups
        self.__doc__ = f"The kernel {name}."

    @property
    def kernel(self) -> KernelFunction:
        """The compiled kernel."""
        return compile_module(self.code, self.options, self.name_expressions, self.backend).get_function(self.name)

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], **options: Any) -> None:
        """Run the kernel; `shared_mem` are bytes of dynamic shared memory.

        Raises
        ------
        CompileException
            If the source does not compile.
        CUDADriverError
            If the launch is invalid, or the kernel fails.
        """
        if unknown := set(options) - {"shared_mem", "stream"}:
            raise TypeError(f"RawKernel got an unexpected keyword argument {min(unknown)!r}")
        self.kernel(grid, block, args, options.get("shared_mem", 0), options.get("stream"))

    def compile(self, log_stream: Any = None) -> None:
        """Compile the kernel, and write the compiler's warnings."""
        self.kernel  # noqa: B018
        if log_stream is not None:
            log_stream.write(format_warnings(self.code, self.options))

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes by name; those that need a GPU's compiler, such as registers, are 0."""
        return self.kernel.attributes

    def __getattr__(self, name: str) -> Any:
        if name in RawKernel._ATTRIBUTES:
            return self.kernel.attributes[name]
        raise AttributeError(f"'RawKernel' object has no attribute {name!r}")

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The most dynamic shared memory of a block, in bytes."""
        return self.kernel.dynamic_limit

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self.kernel.set_dynamic_limit(size)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """The preferred share of shared memory in percent, which the simulator ignores."""
        return self.kernel.carveout

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, percent: int) -> None:
        self.kernel.carveout = int(percent)


class RawModule:
    """A CUDA C++ source with several kernels and variables.

    Parameters
    ----------
    path : str or None
        A file of machine code or PTX, which the simulator cannot run, or a source (.cu).
    backend : {"nvrtc", "nvcc"}
    translate_cucomplex, enable_cooperative_groups, jitify
        As for `RawKernel`.
    name_expressions : sequence of str or None
        Kernels with template arguments: "scale<float>".

    Raises
    ------
    TypeError
        If neither or both of `code` and `path` are given.
    """

    __module__ = "cupy"

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: Any = _UNSET,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` must be given")
        self.options = _check_settings(code, options, backend, jitify)
        if path is not None and self.options:
            raise ValueError("options cannot be used with `path`")
        if name_expressions is not None and backend != "nvrtc":
            raise ValueError("name_expressions need the backend nvrtc")
        self.code = None if code is None else _translate(code, translate_cucomplex)
        self.file_path, self.backend = None if path is None else str(path), backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)

    @property
    def module(self) -> CompiledModule:
        """The compiled module."""
        code = self.code if self.code is not None else self._read_file()
        return compile_module(code, self.options, self.name_expressions, self.backend)

    def _read_file(self) -> str:
        path = Path(str(self.file_path))
        if not path.is_file():
            raise build_driver_error("file not found", str(path))
        if path.suffix not in (".cu", ".cuh", ".cpp"):
            raise build_driver_error(
                "device kernel image is invalid",
                f"{path.name}: the simulator runs CUDA C++ sources, no machine code or PTX; pass code=",
            )
        try:
            return read_source(path)
        except LockstepError as error:
            raise build_driver_error("file not found", error.message) from None

    def get_function(self, name: str) -> RawKernel:
        """Return a kernel by its linker symbol or by one of `name_expressions`.

        Raises
        ------
        CUDADriverError
            If there is no such kernel.
        """
        code = self.code if self.code is not None else self._read_file()
        kernel = RawKernel(
            code, name, self.options, self.backend, enable_cooperative_groups=self.enable_cooperative_groups
        )
        kernel.name_expressions, kernel.file_path = self.name_expressions, self.file_path
        kernel.kernel  # noqa: B018
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Return the address of a `__device__` or `__constant__` variable."""
        return self.module.get_global(name)

    def get_texref(self, name: str) -> Any:
        """Raise an error: texture references were removed from CUDA."""
        raise build_driver_error("operation not supported", f"{name}: texture references were removed in CUDA 12")

    def compile(self, log_stream: Any = None) -> None:
        """Compile the module, and write the compiler's warnings."""
        self.module  # noqa: B018
        if log_stream is not None and self.code is not None:
            log_stream.write(format_warnings(self.code, self.options))
