"""Compilation of a source as by NVRTC or nvcc, and its kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.base.errors import CompileError, KernelError, LockstepError
from gpu.files.source_lexer import blank_comments_and_literals
from gpu.hosts.cupy.devices import defer
from gpu.hosts.cupy.faults import CompileException, build_driver_error, cupy_errors
from gpu.hosts.cupy.kernels.arguments import pack_arguments
from gpu.hosts.cupy.memory import Memory, MemoryPointer
from gpu.hosts.cupy.names import named
from gpu.hosts.driver.call_site import find_call_site
from gpu.hosts.driver.compiler_options import parse_define, parse_options
from gpu.hosts.driver.faults import INVALID_VALUE, NOT_FOUND
from gpu.hosts.driver.launches import LoadedModule
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.limits import LIMITS
from gpu.simulator.simulated_module import SimulatedModule

_FILE = "kernel.cu"
"""The source's name in messages."""
_RELOCATABLE = ("-dc", "-rdc=true", "--device-c", "--relocatable-device-code=true")


@named("cupy.cuda.function.Function")
class KernelFunction:
    """A kernel of a module.

    Parameters
    ----------
    name : str
        The name in the simulator's module.
    """

    def __init__(self, module: LoadedModule, name: str, kernel: SimulatedKernel) -> None:
        self._module, self._name, self.kernel = module, name, kernel
        self.dynamic_limit = max(kernel.dynamic_shared_limit, 0)
        self.carveout = -1

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes by CuPy's names; those that need a GPU's compiler, such as registers, are 0."""
        return {
            "max_threads_per_block": LIMITS.threads,
            "shared_size_bytes": self.kernel.traits.static_shared_bytes,
            "const_size_bytes": self._module.module.constant_bytes,
            "local_size_bytes": 0,
            "num_regs": 0,
            "ptx_version": 90,
            "binary_version": 90,
            "cache_mode_ca": 0,
            "max_dynamic_shared_size_bytes": self.dynamic_limit,
            "preferred_shared_memory_carveout": self.carveout,
        }

    def set_dynamic_limit(self, size: int) -> None:
        """Set the most dynamic shared memory of a block, in bytes.

        Raises
        ------
        CUDADriverError
            If the device does not have that much.
        """
        if not self.kernel.set_dynamic_shared_limit(int(size)):
            most = LIMITS.optin_shared_bytes - self.kernel.traits.static_shared_bytes
            raise build_driver_error(INVALID_VALUE, f"a block has at most {most:,} bytes of dynamic shared memory")
        self.dynamic_limit = int(size)

    def __call__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Run the kernel.

        Raises
        ------
        CUDADriverError
            If the launch is invalid, or the kernel fails.
        TypeError
            If an argument has a type that kernels do not take.
        """
        packed = pack_arguments(self.kernel, args)
        if shared_mem > self.dynamic_limit:
            raise build_driver_error(
                INVALID_VALUE,
                f"{shared_mem:,} bytes of dynamic shared memory; max_dynamic_shared_size_bytes is "
                f"{self.dynamic_limit:,}",
            )
        site = find_call_site()

        def launch() -> None:
            with cupy_errors():
                self._module.launch(self._name, tuple(grid), tuple(block), packed, int(shared_mem), site)

        if not defer(launch, stream):
            launch()

    def linear_launch(
        self, size: int, args: Sequence[Any], shared_mem: int = 0, block_max_size: int = 128, stream: Any = None
    ) -> None:
        """Run the kernel with at least `size` threads in one dimension."""
        if size:
            block = min(block_max_size, size)
            self((-(-size // block),), (block,), args, shared_mem, stream)


@named("cupy.cuda.function.Module")
class CompiledModule:
    """A compiled source.

    Parameters
    ----------
    expressions : sequence of str
        The kernels with template arguments that exist.
    """

    def __init__(self, loaded: LoadedModule, expressions: Sequence[str] = ()) -> None:
        self._loaded = loaded
        self.mapping = {_normalize(name): name for name in expressions}
        self._functions: dict[str, KernelFunction] = {}

    def get_function(self, name: str) -> KernelFunction:
        """Return a kernel by its linker symbol or by a name expression.

        Raises
        ------
        CUDADriverError
            If there is no such kernel.
        """
        if name not in self._functions:
            module = self._loaded.module
            symbol = self._find_symbol(name)
            try:
                self._functions[name] = KernelFunction(self._loaded, symbol, module.kernel(symbol))
            except LockstepError as error:
                raise build_driver_error("operation not supported", f"{name}: {error.message} {error.advice}") from None
        return self._functions[name]

    def _find_symbol(self, name: str) -> str:
        symbols = self._loaded.module.symbols
        if _normalize(name) in self.mapping:
            return _normalize(name)
        if name in symbols:
            return symbols[name]
        same = [symbol for symbol, plain in symbols.items() if plain == name]
        if same:
            hint = f'without extern "C" its name is {same[0]}; add extern "C", or pass name_expressions'
        else:
            hint = f"available: {', '.join((*symbols, *self.mapping.values())) or 'none'}"
        raise build_driver_error(NOT_FOUND, f"{name}: {hint}")

    def get_global(self, name: str) -> MemoryPointer:
        """Return the address of a `__device__` or `__constant__` variable.

        Raises
        ------
        CUDADriverError
            If there is no such variable.
        """
        try:
            return MemoryPointer(Memory.wrap(self._loaded.module.variable(name)), 0)
        except KernelError:
            raise build_driver_error(NOT_FOUND, name) from None


def _normalize(name: str) -> str:
    return re.sub(r"\s+", " ", name.strip().removeprefix("&"))


_STANDARD_TYPEDEF = re.compile(r"typedef[\w\s]+?\bu?int(?:8|16|32|64)_t\s*;")


def _blank_standard_typedefs(code: str) -> str:
    """Return a source without its own typedefs of integers such as uint64_t, which only NVRTC needs."""
    return _STANDARD_TYPEDEF.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)


_modules: dict[tuple[Any, ...], CompiledModule] = {}


def compile_module(
    code: str, options: Sequence[str] = (), name_expressions: Sequence[str] | None = None, backend: str = "nvrtc"
) -> CompiledModule:
    """Compile a source; the same source with the same options is one module, with one copy of its variables.

    Parameters
    ----------
    code : str
        CUDA C++.
    options : sequence of str
        -D and -I are used; others have no influence on the simulator.
    name_expressions : sequence of str or None
        Kernels with template arguments.
    backend : str
        "nvrtc" or "nvcc".

    Raises
    ------
    CompileException
        If clang rejects the source.
    """
    key = code, tuple(options), tuple(name_expressions or ()), backend
    if key not in _modules:
        _modules[key] = _compile(*key)
    return _modules[key]


def _parse(code: str, options: Sequence[str]) -> SimulatedModule:
    _, values = parse_options(options)
    defines = dict(parse_define(value) for name, value in values if name == "-D")
    folders = [Path(value).resolve() for name, value in values if name in ("-I", "-isystem")]
    return SimulatedModule(_blank_standard_typedefs(code), Path.cwd() / _FILE, defines, folders)


def _compile(code: str, options: tuple[str, ...], expressions: tuple[str, ...], backend: str) -> CompiledModule:
    if "<<<" in blank_comments_and_literals(code) and not set(options) & set(_RELOCATABLE):
        raise CompileException(
            f"{_FILE}: error: a launch from a kernel needs the option -dc", code, _FILE, options, backend
        )
    try:
        module = _parse(code, options)
        for name in expressions:
            module.kernel(_normalize(name))
    except CompileError as error:
        raise CompileException(error.detail or error.message, code, _FILE, options, backend) from None
    except LockstepError as error:
        raise CompileException(f"{error.message} {error.advice}".strip(), code, _FILE, options, backend) from None
    return CompiledModule(LoadedModule(module, code), expressions)


def format_warnings(code: str, options: Sequence[str]) -> str:
    """Return the compiler's warnings about a source that compiles, in NVRTC's format."""
    module = _parse(f'#pragma clang diagnostic warning "-Wunused-variable"\n{code}', options)
    diagnoses = {each: None for name in module.kernels for each in module.iterate_warnings(name)}
    return "".join(f"{each.position.file}({each.position.line - 1}): warning: {each.message}\n" for each in diagnoses)


def clear_modules() -> None:
    """Forget the compiled modules."""
    _modules.clear()
