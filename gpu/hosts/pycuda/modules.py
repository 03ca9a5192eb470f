"""Modules and their kernels, and the linker of several images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpu.base.errors import KernelError, LockstepError
from gpu.hosts.driver.call_site import find_call_site
from gpu.hosts.driver.faults import (
    INVALID_VALUE,
    NOT_FOUND,
    NOT_SUPPORTED,
    DriverRuntimeError,
    build_logic_error,
    format_failure,
)
from gpu.hosts.driver.launches import LoadedModule, compute_parameter_layout
from gpu.hosts.driver.memory import address_of
from gpu.hosts.pycuda.compiler import SourceImage, load_module
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.memory.arrays import TextureReference
from gpu.hosts.pycuda.names import NAMES, export
from gpu.hosts.pycuda.streams import SimulatedStream
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.limits import LIMITS

_FOREIGN_IMAGE = "the simulator cannot run machine code or PTX; it loads only images from its own pycuda.compiler"


@export("Function")
class ModuleFunction:
    """Kernel of a module."""

    def __init__(self, owner: LoadedModule, name: str, kernel: SimulatedKernel) -> None:
        self._module, self._name, self._kernel = owner, name, kernel
        self._block: tuple[int, ...] = (1, 1, 1)
        self._shared_bytes = 0
        self._packed = bytearray()

    def get_attribute(self, attribute: int) -> int:
        """Return an attribute; attributes that need a GPU compiler, such as registers, are 0."""
        names = NAMES["function_attribute"]
        values = {
            names.MAX_THREADS_PER_BLOCK: LIMITS.threads,
            names.SHARED_SIZE_BYTES: self._kernel.traits.static_shared_bytes,
            names.CONST_SIZE_BYTES: self._module.module.constant_bytes,
            names.PTX_VERSION: 90,
            names.BINARY_VERSION: 90,
            names.MAX_DYNAMIC_SHARED_SIZE_BYTES: self._kernel.dynamic_shared_limit,
        }
        return int(values.get(attribute, 0))

    def set_attribute(self, attribute: int, value: int) -> None:
        """Set an attribute; refuse more shared memory than a block can have."""
        if attribute != NAMES["function_attribute"].MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return
        if not self._kernel.set_dynamic_shared_limit(value):
            raise build_logic_error(
                "cuFuncSetAttribute", INVALID_VALUE, f"the limit is {LIMITS.optin_shared_bytes} bytes per block"
            )

    def set_cache_config(self, config: int) -> None:
        """Set the preferred cache configuration, which the simulator ignores."""

    def param_set_texref(self, texture: TextureReference) -> None:
        """Do nothing: texture references are already bound."""

    def _set_block_shape(self, x: int, y: int, z: int) -> None:
        self._block = (int(x), int(y), int(z))

    def _set_shared_size(self, size: int) -> None:
        self._shared_bytes = int(size)

    def _param_set_size(self, size: int) -> None:
        self._packed = self._packed[:size].ljust(size, b"\0")

    def _param_setv(self, offset: int, data: Any) -> None:
        raw = bytes(data)
        self._packed[offset : offset + len(raw)] = raw

    def _launch(self) -> None:
        self._launch_grid(1, 1)

    def _launch_grid(self, width: int, height: int = 1) -> None:
        self._launch_kernel((width, height), self._block, bytes(self._packed), self._shared_bytes, None)

    def _launch_grid_async(self, width: int, height: int, stream: SimulatedStream) -> None:
        self._launch_grid(width, height)

    def _launch_kernel(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: bytes,
        shared_bytes: int,
        stream: SimulatedStream | None,
    ) -> None:
        current_context("cuLaunchKernel")
        self._module.launch(self._name, grid, block, bytes(arguments), int(shared_bytes), find_call_site())


@export("Module")
class DriverModule:
    """Loaded image with kernels, variables and texture references."""

    def __init__(self, image: SourceImage) -> None:
        try:
            self._loaded = LoadedModule(load_module(image), image.text)
        except LockstepError as error:
            raise DriverRuntimeError(
                format_failure("cuModuleLoadDataEx", "the image does not compile", error.message)
            ) from None

    def get_function(self, name: str) -> ModuleFunction:
        """Return a kernel by its linker symbol, which for `extern "C"` is its plain name."""
        module = self._loaded.module
        symbols = module.symbols
        if name not in symbols:
            same = [symbol for symbol, plain in symbols.items() if plain == name]
            hint = f'without extern "C" its name is {same[0]}' if same else f"available: {', '.join(symbols) or 'none'}"
            raise build_logic_error("cuModuleGetFunction", NOT_FOUND, f"{name}: {hint}")
        try:
            kernel = module.kernel(symbols[name])
            compute_parameter_layout(kernel)
        except LockstepError as error:
            raise DriverRuntimeError(
                format_failure("cuModuleGetFunction", NOT_SUPPORTED, f"{name}: {error.message} {error.advice}".strip())
            ) from None
        return ModuleFunction(self._loaded, symbols[name], kernel)

    def get_global(self, name: str) -> tuple[int, int]:
        """Return the address and the size of a variable."""
        try:
            memory = self._loaded.module.variable(name)
        except KernelError:
            raise build_logic_error("cuModuleGetGlobal", NOT_FOUND, name) from None
        return address_of(memory), memory.data.size

    def get_texref(self, name: str) -> TextureReference:
        """Return a texture reference."""
        if name not in self._loaded.module.textures:
            raise build_logic_error("cuModuleGetTexRef", NOT_FOUND, name)
        return TextureReference(self._loaded.module, name)

    def get_surfref(self, name: str) -> Any:
        """Raise an error: surface references were removed from CUDA."""
        instead = "surface references were removed in CUDA 12; create a surface object with cuda-bindings"
        raise build_logic_error("cuModuleGetSurfRef", NOT_SUPPORTED, f"{name}: {instead}")


@export("module_from_buffer")
def module_from_buffer(
    buffer: Any, options: Sequence[Any] = (), message_handler: Callable[..., object] | None = None
) -> DriverModule:
    """Load an image from the compiler."""
    current_context("cuModuleLoadDataEx")
    image = SourceImage.load(memoryview(buffer).tobytes())
    if message_handler is not None:
        message_handler(image is not None, "", "" if image is not None else _FOREIGN_IMAGE)
    if image is None:
        raise DriverRuntimeError(format_failure("cuModuleLoadDataEx", "device kernel image is invalid", _FOREIGN_IMAGE))
    return DriverModule(image)


@export("module_from_file")
def module_from_file(filename: str) -> DriverModule:
    """Load an image from a file."""
    current_context("cuModuleLoad")
    try:
        data = Path(filename).read_bytes()
    except OSError as error:
        raise DriverRuntimeError(format_failure("cuModuleLoad", "file not found", str(error))) from None
    return module_from_buffer(data)


@export("Linker")
class ImageLinker:
    """Linker that concatenates the sources of several images."""

    def __init__(self, message_handler: Any = None, options: Any = None, log_verbose: bool = False) -> None:
        current_context("cuLinkCreate")
        self._handler = message_handler
        self._images: list[SourceImage] = []

    def add_data(self, data: Any, input_type: int, name: str = "unknown") -> None:
        """Add an image."""
        image = SourceImage.load(memoryview(data).tobytes())
        if image is None:
            raise DriverRuntimeError(format_failure("cuLinkAddData", "device kernel image is invalid", _FOREIGN_IMAGE))
        self._images.append(image)

    def add_file(self, filename: str, input_type: int) -> None:
        """Add an image from a file; CUDA's own libraries are part of the simulator."""
        if input_type == NAMES["jit_input_type"].LIBRARY:
            return
        try:
            data = Path(filename).read_bytes()
        except OSError as error:
            raise DriverRuntimeError(format_failure("cuLinkAddFile", "file not found", str(error))) from None
        self.add_data(data, input_type, filename)

    def link_module(self) -> DriverModule:
        """Return the module of all images."""
        if not self._images:
            raise build_logic_error("cuLinkComplete", INVALID_VALUE, "nothing was added")
        first = self._images[0]
        combined = SourceImage(
            "\n".join(image.text for image in self._images),
            first.name,
            first.folder,
            {name: value for image in self._images for name, value in image.defines.items()},
            list(dict.fromkeys(folder for image in self._images for folder in image.include_dirs)),
        )
        module = DriverModule(first if len(self._images) == 1 else combined)
        if self._handler is not None:
            self._handler(True, "", "")
        return module
