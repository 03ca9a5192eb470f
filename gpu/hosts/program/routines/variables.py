"""Device variables of a program, which its host code accesses as symbols."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from gpu.hosts.driver.memory import address_of
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import host_view, write_address
from gpu.hosts.program.program_units import LoadedUnits
from gpu.hosts.program.routines.memory import DEFAULT_KIND, FROM_DEVICE, ProgramMemory
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.simulated_module import SimulatedModule

Array = npt.NDArray[Any]


@dataclass
class _Variable:
    """A device variable with its counterpart on the host."""

    unit: int
    name: str
    address: int
    size: int
    managed: bool


class ProgramVariables:
    """The device variables of a program, by their addresses in the host code."""

    def __init__(self, units: LoadedUnits, memory: ProgramMemory) -> None:
        self._units, self._memory = units, memory
        self._variables: dict[int, _Variable] = {}

    def do_variable(self, unit: int, name: int, address: int, size: int, managed: int) -> None:
        """Register a device variable; the constructors of the program's static objects call this before `main`.

        Parameters
        ----------
        unit : int
            The number of the source file.
        name : int
            The address of the variable's name, without namespaces.
        address : int
            The address of the variable in the host code, which identifies it in later calls.
        size : int
            Bytes of the variable.
        managed : int
            1 if host and device share the memory at `address`, as for `__managed__`, otherwise 0.
        """
        self._variables[address] = _Variable(unit, ctypes.string_at(name).decode(), address, size, bool(managed))

    def do_is_symbol(self, address: int) -> int:
        return int(address in self._variables)

    def _variable_memory(self, address: int) -> FlatMemory:
        variable = self._variables.get(address)
        if variable is None:
            raise RefusedRoutineError(errors.INVALID_SYMBOL)
        module = self._units.load(variable.unit).module
        names = [name for name in module.variables if name == variable.name or name.endswith(f"::{variable.name}")]
        if not names:
            raise RefusedRoutineError(errors.INVALID_SYMBOL)
        return module.variable(names[0])

    def _symbol_bytes(self, address: int, size: int, offset: int) -> Array:
        data = self._variable_memory(address).data
        if min(offset, size) < 0 or offset + size > data.size:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        return data[offset : offset + size]

    def do_to_symbol(self, address: int, source: int, size: int, offset: int, kind: int) -> None:
        """Execute `cudaMemcpyToSymbol`.

        Parameters
        ----------
        address : int
            The address of the device variable in the host code.
        source : int
            The address of the data, on the host or on the device.
        size : int
            Bytes to copy.
        offset : int
            The offset in the variable, in bytes.
        kind : int
            As of `ProgramMemory.do_memcpy`.

        Raises
        ------
        RefusedRoutineError
            There is no such variable, the bytes exceed it, or the direction does not match.
        """
        data = self._symbol_bytes(address, size, offset)
        if kind not in (1, 3, DEFAULT_KIND):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        if size:
            read = self._memory.view_side(source, size, kind, FROM_DEVICE, "cudaMemcpyToSymbol")
            self._memory.note_span(read, "cudaMemcpyToSymbol")
            self._memory.note_span(data, "cudaMemcpyToSymbol", writes=True)
            data[:] = read

    def do_from_symbol(self, target: int, address: int, size: int, offset: int, kind: int) -> None:
        """Execute `cudaMemcpyFromSymbol`.

        Parameters
        ----------
        target : int
            The address for the data, on the host or on the device.
        address, size, offset, kind : int
            As of `do_to_symbol`.

        Raises
        ------
        RefusedRoutineError
            As of `do_to_symbol`.
        """
        data = self._symbol_bytes(address, size, offset)
        if kind not in (2, 3, DEFAULT_KIND):
            raise RefusedRoutineError(errors.INVALID_COPY_DIRECTION)
        if size:
            written = self._memory.view_side(target, size, kind, (3,), "cudaMemcpyFromSymbol", written=True)
            self._memory.note_span(data, "cudaMemcpyFromSymbol")
            self._memory.note_span(written, "cudaMemcpyFromSymbol", writes=True)
            written[:] = data

    def do_symbol_address(self, target: int, address: int) -> None:
        write_address(target, address_of(self._variable_memory(address)))

    def do_symbol_size(self, target: int, address: int) -> None:
        write_address(target, self._variable_memory(address).data.size)

    def attach_managed(self, unit: int, module: SimulatedModule) -> None:
        """Map managed variables of a module to their memory in the host code."""
        for variable in self._variables.values():
            if variable.managed and variable.unit == unit and variable.name in module.variables:
                memory = module.variable(variable.name)
                view = host_view(variable.address, variable.size)
                if memory.data.ctypes.data != view.ctypes.data:
                    memory.replace_data(view)
