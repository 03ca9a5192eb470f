"""Kernels of a program: launches, attributes and occupancy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpu.base.errors import CompileError, KernelError, LaunchError
from gpu.base.resource_limits import limit_resources
from gpu.hosts.driver.attributes import VALUE_BY_NUMBER
from gpu.hosts.driver.launches import LoadedModule, compute_parameter_layout
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import write_address, write_int
from gpu.hosts.program.names import kernel_name
from gpu.hosts.program.program_units import LoadedUnits
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.limits import LIMITS
from gpu.simulator.simulated_module import SimulatedModule

_DYNAMIC_SHARED_BYTES, _CARVEOUT = 8, 9
_KERNEL_ATTRIBUTES = (_DYNAMIC_SHARED_BYTES, _CARVEOUT, *range(10, 16))
"""Numbers of `cudaFuncAttribute` that can be set."""


class ProgramKernels:
    """The kernels of a program, loaded at first use.

    Parameters
    ----------
    attach_managed : callable
        Maps managed variables of a unit, by number, to their memory in the host code, in a module.
    report_refused_launch : callable
        Called with the location and the reason of a launch with an invalid configuration.
    """

    def __init__(
        self,
        units: LoadedUnits,
        attach_managed: Callable[[int, SimulatedModule], None],
        report_refused_launch: Callable[[str, str], None],
    ) -> None:
        self._units, self._attach_managed = units, attach_managed
        self._report_refused_launch = report_refused_launch
        self._kernels: dict[tuple[int, int, str], tuple[LoadedModule, str, SimulatedKernel]] = {}

    def clear(self) -> None:
        """Load kernels again at their next use."""
        self._kernels.clear()

    def _load_kernel(
        self, unit: int, line: int, parameters: int, pretty: int
    ) -> tuple[LoadedModule, str, SimulatedKernel]:
        if not pretty:
            raise RefusedRoutineError(errors.INVALID_FUNCTION)
        text = ctypes.string_at(pretty).decode()
        key = unit, line, text
        if key not in self._kernels:
            wanted = kernel_name(text, parameters)
            try:
                self._kernels[key] = _load_from(self._units.load(unit), wanted, line)
            except CompileError:
                linked = self._units.link(unit)
                if linked is None:
                    raise
                for number, loaded in self._units.modules.items():
                    self._attach_managed(number, loaded.module)
                self._kernels[key] = _load_from(linked, wanted, line)
            self._attach_managed(unit, self._units.load(unit).module)
        return self._kernels[key]

    def prepare_launch(self, unit: int, line: int, parameters: int, pretty: int, *rest: int) -> Callable[[], None]:
        """Return a function that launches a kernel with the current arguments.

        Raises
        ------
        RefusedRoutineError
            If the launch configuration is invalid.
        """
        grid, block, (shared_bytes, data, size, arguments, file, at) = rest[:3], rest[3:6], rest[6:12]
        cluster = rest[12:15] if any(rest[12:15]) else None
        loaded, name, kernel = self._load_kernel(unit, line, parameters, pretty)
        packed = _pack_arguments(kernel, arguments) if arguments else ctypes.string_at(data, size)
        location = f"{Path(ctypes.string_at(file).decode()).name}:{at}"
        try:
            kernel.check_launch(grid, block, shared_bytes)
        except LaunchError as error:
            self._report_refused_launch(location, error.message)
            is_too_much = shared_bytes > kernel.dynamic_shared_limit
            raise RefusedRoutineError(errors.INVALID_VALUE if is_too_much else errors.INVALID_CONFIGURATION) from None
        declared = kernel.function.cluster
        if cluster is not None and (declared not in (None, cluster) or LIMITS.find_cluster_violation(grid, cluster)):
            raise RefusedRoutineError(errors.INVALID_CONFIGURATION)

        return partial(loaded.launch, name, grid, block, packed, shared_bytes, location, cluster)

    def do_kernel_attributes(self, unit: int, line: int, parameters: int, pretty: int, target: int) -> None:
        """Write a kernel's attributes for `cudaFuncGetAttributes`.

        Parameters
        ----------
        unit : int
            The number of the source file.
        line : int
            The line of the kernel's definition, which distinguishes overloads.
        parameters : int
            The number of template parameters; negative if unknown.
        pretty : int
            The address of the kernel's `__PRETTY_FUNCTION__`.
        target : int
            The address for four 64-bit integers: bytes of static shared memory, bytes of all `__constant__` variables,
            the most threads per block, and the most bytes of dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError
            The function is not a kernel.
        KernelError
            The file has no such kernel, or the simulator does not support it.
        """
        loaded, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        values = (
            kernel.traits.static_shared_bytes,
            loaded.module.constant_bytes,
            LIMITS.threads,
            kernel.dynamic_shared_limit,
        )
        for index, value in enumerate(values):
            write_address(target + 8 * index, value)

    def do_set_kernel_attribute(
        self, unit: int, line: int, parameters: int, pretty: int, attribute: int, value: int
    ) -> None:
        """Set the most dynamic shared memory of a kernel's blocks; other attributes have no effect here.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        attribute : int
            The number of a `cudaFuncAttribute`.
        value : int
            Its value; for the dynamic shared memory, bytes per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            There is no such attribute, the value is invalid; or as of `do_kernel_attributes`.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if attribute == _DYNAMIC_SHARED_BYTES:
            is_valid = kernel.set_dynamic_shared_limit(value)
        else:
            is_valid = attribute in _KERNEL_ATTRIBUTES and 0 <= value <= (100 if attribute == _CARVEOUT else 2**31)
        if not is_valid:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_occupancy(
        self, unit: int, line: int, parameters: int, pretty: int, target: int, block: int, shared_bytes: int
    ) -> None:
        """Execute `cudaOccupancyMaxActiveBlocksPerMultiprocessor`.

        The result is limited by threads, shared memory and the number of blocks, but not by registers.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        target : int
            The address at which the number of resident blocks is written, 32 bits.
        block : int
            Threads per block.
        shared_bytes : int
            Dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            As of `do_kernel_attributes`; also if a block has no threads.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if block <= 0 or shared_bytes < 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        write_int(target, _count_resident_blocks(kernel, block, shared_bytes))

    def do_check_cooperative(
        self, unit: int, line: int, parameters: int, pretty: int, blocks: int, block: int, shared_bytes: int
    ) -> None:
        """Refuse a cooperative launch whose blocks cannot all be resident, as of `do_occupancy`.

        Parameters
        ----------
        unit, line, parameters, pretty : int
            As of `do_kernel_attributes`.
        blocks, block : int
            Blocks of the grid, and threads per block.
        shared_bytes : int
            Dynamic shared memory per block.

        Raises
        ------
        RefusedRoutineError, KernelError
            There are too many blocks; or as of `do_kernel_attributes`.
        """
        _, _, kernel = self._load_kernel(unit, line, parameters, pretty)
        if blocks > _count_resident_blocks(kernel, block, shared_bytes) * VALUE_BY_NUMBER[16]:
            raise RefusedRoutineError(errors.COOPERATIVE_LAUNCH_TOO_LARGE)


def _count_resident_blocks(kernel: SimulatedKernel, block: int, shared_bytes: int) -> int:
    """Return the number of blocks that a multiprocessor runs at once; 0 if a block is too large, as on a GPU."""
    used = kernel.traits.static_shared_bytes + shared_bytes + VALUE_BY_NUMBER[111]
    by_threads = VALUE_BY_NUMBER[39] // (-(-block // 32) * 32) if block <= VALUE_BY_NUMBER[1] else 0
    return min(by_threads, VALUE_BY_NUMBER[81] // used, VALUE_BY_NUMBER[106])


def _load_from(loaded: LoadedModule, name: str, line: int) -> tuple[LoadedModule, str, SimulatedKernel]:
    with limit_resources():
        found, kernel = _find_kernel(loaded.module, name, line)
        compute_parameter_layout(kernel)
    return loaded, found, kernel


def _find_kernel(module: SimulatedModule, name: str, line: int) -> tuple[str, SimulatedKernel]:
    """Return a kernel and its name in the simulator; the line distinguishes kernels with the same name."""
    plain = name.partition("<")[0]
    short = name[len(plain.rpartition("::")[0]) :].removeprefix("::")
    failures: list[KernelError] = []
    for each in dict.fromkeys((name, short, f"{name}@{line}", f"{short}@{line}")):
        try:
            return each, module.kernel(each)
        except KernelError as error:
            failures.append(error)
    # An error in a kernel says more than that several have its name.
    raise next((error for error in failures if isinstance(error, CompileError)), failures[0])


def _pack_arguments(kernel: SimulatedKernel, arguments: int) -> bytes:
    """Pack the values to which an array of pointers points."""
    offsets, size = compute_parameter_layout(kernel)
    packed = bytearray(size)
    pointers = (ctypes.c_void_p * len(offsets)).from_address(arguments)
    for offset, pointer, (_, type) in zip(offsets, pointers, kernel.parameters, strict=True):
        packed[offset : offset + type.size] = ctypes.string_at(pointer, type.size)
    return bytes(packed)
