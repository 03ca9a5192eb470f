"""`cupyx.jit.rawkernel`: kernels written in Python."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray
from gpu.hosts.cupy.jit.functions import NAMES
from gpu.hosts.cupy.jit.groups import HEADERS, uses_groups
from gpu.hosts.cupy.jit.translation import TranslatedSource
from gpu.hosts.cupy.jit.values import ArrayType, ValueType, find_constant_type
from gpu.hosts.cupy.kernels.compilation import compile_module
from gpu.hosts.cupy.kernels.parameters import pack_array

_HEADER = "#include <cupy/jit.cuh>\n"


class JitKernel:
    """A kernel, or with `is_device` a function that kernels call, that is written in Python.

    Parameters
    ----------
    function : callable
    mode : {"cuda", "numpy"}
        How types are combined.
    """

    __module__ = "cupyx.jit"

    def __init__(self, function: Callable[..., Any], mode: str, is_device: bool) -> None:
        self.function, self._mode, self.is_device = function, mode, is_device
        self._codes: dict[tuple[ValueType, ...], tuple[str, str]] = {}

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0, stream: Any = None
    ) -> None:
        """Translate the function for the types of the arguments, and run it.

        Parameters
        ----------
        args : sequence
            Arrays, and numbers of Python or NumPy.
        shared_mem : int
            Bytes of dynamic shared memory.
        stream : CupyStream or None
            None for the current stream; only capturing streams matter.

        Raises
        ------
        TypeError, ValueError, NameError, NotImplementedError
            If the function cannot be translated.
        CUDADriverError
            If the launch is invalid, or the kernel fails.
        """
        types = tuple(self._find_type(each) for each in args)
        if types not in self._codes:
            program = TranslatedSource(self._mode)
            name, _ = program.add(self.function, types, 'extern "C" __global__')
            code = "\n".join(program.codes)
            self._codes[types] = name, f"{_HEADER}{HEADERS if uses_groups(code) else ''}{code}"
        name, code = self._codes[types]
        values = [
            pack_array(argument) if isinstance(type_, ArrayType) else type_.type(argument)
            for argument, type_ in zip(args, types, strict=True)
            if isinstance(type_, ArrayType | np.dtype)
        ]
        compile_module(code).get_function(name)(grid, block, values, shared_mem, stream)

    def _find_type(self, argument: Any) -> ValueType:
        if isinstance(argument, DeviceArray):
            return ArrayType(argument.dtype, argument.ndim, bool(argument.flags.c_contiguous))
        if np.isscalar(argument) and not isinstance(argument, str | bytes):
            return find_constant_type(argument, self._mode)
        raise TypeError(f"{type(argument)} is not supported for RawKernel")

    def __getitem__(self, grid_and_block: tuple[Any, Any]) -> Callable[..., None]:
        """Return a function that launches the kernel: `kernel[grid, block](x, y)`."""
        grid, block = (each if isinstance(each, tuple) else (each,) for each in grid_and_block)
        return lambda *args, **options: self(grid, block, args, **options)

    @property
    def cached_codes(self) -> dict[tuple[ValueType, ...], str]:
        """The generated sources, by the types of the arguments."""
        if not self._codes:
            warnings.warn("No codes are cached because the first call compiles the function.", stacklevel=2)
        return {types: code for types, (_, code) in self._codes.items()}

    @property
    def cached_code(self) -> str:
        """The first generated source."""
        return next(iter(self.cached_codes.values()))


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], JitKernel]:
    """Return a decorator that makes a kernel of a function.

    Parameters
    ----------
    mode : {"cuda", "numpy"}
        How types are combined: numbers of Python have 32 bits in the mode "cuda".
    device : bool
        Whether kernels call the function.
    """

    def decorate(function: Callable[..., Any]) -> JitKernel:
        kernel = JitKernel(function, mode, device)
        functools.update_wrapper(kernel, function, updated=())
        return kernel

    return decorate


JIT: dict[str, Any] = {**NAMES, "rawkernel": rawkernel}
"""The names of the module cupyx.jit."""
