"""A kernel file for the timing model: compiled, with a model of each of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import CompileError, KernelError
from gpu.simulator.executor.textures import SimulatedTensorMap
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.compiler import MachineKernel, assemble
from gpu.timing.estimate.compiler import estimate_registers, generate_ptx
from gpu.timing.gpus import GpuDescription
from gpu.timing.launch import LaunchEstimate, LaunchModel
from gpu.timing.ptx.assembler import assemble_kernel
from gpu.timing.ptx.machine import PtxMachine, find_called_function
from gpu.timing.ptx.memory import FIRST_ARRAY, WINDOW_BITS, SampledMemory, Window
from gpu.timing.ptx.program import PtxKernel, PtxProgram, PtxVariable, parse_ptx
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.timeline import LaunchTimelines

Array = npt.NDArray[Any]

_FIRST_VARIABLE_WINDOW = 1 << 22
"""The window number of the file's first variable; arrays are numbered from 0, and no launch has this many."""


class ModeledFile:
    """A compiled kernel file, with the contents of its variables.

    Parameters
    ----------
    compile_kernel : callable
        Returns for a kernel's name the program, and the assembler's output for its kernels, or None without assembler.
    gpu : GpuDescription
    source : str
        "sass" if the driver's assembler determined the registers, otherwise "ir".
    name : str
        The file's name.
    note : str
        Why nvcc, though installed, did not compile the file; "" if it did, or is not installed.
    """

    def __init__(
        self,
        compile_kernel: Callable[[str], tuple[PtxProgram, Mapping[str, MachineKernel] | None]],
        gpu: GpuDescription,
        source: str,
        name: str,
        note: str = "",
    ) -> None:
        self.compile_kernel = compile_kernel
        self._gpu = gpu
        self.source = source
        self.name = name
        self.note = note
        self._variables: dict[str, Array] = {}
        self._assigned_values: dict[str, Array] = {}
        self._models: dict[str, tuple[PtxKernel, LaunchModel]] = {}
        self._machine_kernels: dict[str, MachineKernel] = {}

    def machine_kernel(self, name: str) -> MachineKernel | None:
        """Return the assembler's output for a kernel that was estimated; None without assembler."""
        return self._machine_kernels.get(name)

    def set_variable(self, name: str, values: Array) -> None:
        """Set the beginning of a variable, if the compiler has not removed it."""
        self._assigned_values[name] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        for each, memory in self._variables.items():
            self._fill_variable(each, memory)

    def _fill_variable(self, mangled: str, memory: Array) -> None:
        for name, data in self._assigned_values.items():
            if mangled == name or mangled.endswith((f"{len(name)}{name}E", f"{len(name)}{name}")):
                memory[: data.size] = data[: memory.size]

    def _build_model(self, name: str) -> tuple[PtxKernel, LaunchModel]:
        if name not in self._models:
            program, machine_kernels = self.compile_kernel(name)
            kernel = assemble_kernel(program.find_kernel(name))
            for variable in program.variables:
                if variable.space in ("const", "global") and variable.name not in self._variables:
                    self._variables[variable.name] = _initial_bytes(variable)
                    self._fill_variable(variable.name, self._variables[variable.name])
            machine = PtxMachine(kernel, self._assign_addresses(), values=False)
            code = machine_kernels.get(kernel.name) if machine_kernels is not None else None
            if code is None:
                model = LaunchModel(machine, self._gpu, estimate_registers(kernel))
            else:
                model = LaunchModel(machine, self._gpu, code.registers, code.instructions)
            self._models[name] = kernel, model
            if code is not None:
                self._machine_kernels[name] = code
        return self._models[name]

    def _assign_addresses(self) -> dict[str, np.int64]:
        return {
            name: np.int64(FIRST_ARRAY + _FIRST_VARIABLE_WINDOW + number << WINDOW_BITS)
            for number, name in enumerate(self._variables)
        }

    def estimate_launch(
        self,
        kernel: str,
        shape: GridShape,
        arguments: Sequence[Array | SimulatedTensorMap | np.generic | None],
        find_window: Callable[[int], Window | None] = lambda window: None,
    ) -> LaunchEstimate:
        """Predict the time of a launch.

        Parameters
        ----------
        kernel : str
        shape : GridShape
        arguments : sequence
            For a pointer the array's bytes or None; for a tensor map a SimulatedTensorMap; otherwise a NumPy scalar,
            as for a pointer's address.
        find_window : callable
            Finds the memory of addresses in arguments or memory, as of `SampledMemory`.
        """
        model, parameters, memory = self._prepare_launch(kernel, arguments, find_window)
        return model.estimate_launch(shape, parameters, memory)

    def build_timelines(
        self,
        kernel: str,
        shape: GridShape,
        arguments: Sequence[Array | SimulatedTensorMap | np.generic | None],
        time_us: float | None = None,
    ) -> LaunchTimelines:
        """Return a launch's warp timelines, see `LaunchModel`; source lines require `compile_modeled_file(lines=True)`.

        Parameters
        ----------
        kernel, shape, arguments
            As for `estimate_launch`.
        time_us : float or None
            The time of the whole launch; None to estimate it.
        """
        model, parameters, memory = self._prepare_launch(kernel, arguments)
        timelines = model.build_timelines(shape, parameters, memory, time_us)
        return replace(timelines, kernel=kernel, source=self.source)

    def _prepare_launch(
        self,
        kernel: str,
        arguments: Sequence[Array | SimulatedTensorMap | np.generic | None],
        find_window: Callable[[int], Window | None] = lambda window: None,
    ) -> tuple[LaunchModel, Array, SampledMemory]:
        """Return a kernel's model, its parameter buffer, and the memory of its pointers."""
        ptx_kernel, model = self._build_model(kernel)
        names = list(self._variables)
        if len(arguments) != len(ptx_kernel.parameters):
            raise KernelError(f"{kernel} takes {len(ptx_kernel.parameters)} arguments, not {len(arguments)}.")
        numbers: dict[int, int] = {}
        arrays: list[Array] = []
        for argument in arguments:
            array = argument.data if isinstance(argument, SimulatedTensorMap) else argument
            if isinstance(array, np.ndarray) and id(array) not in numbers:
                numbers[id(array)] = len(arrays)
                arrays.append(array)
        variables = {_FIRST_VARIABLE_WINDOW + number: self._variables[name] for number, name in enumerate(names)}
        memory = SampledMemory({**dict(enumerate(arrays)), **variables}, find_window)
        last_parameter = ptx_kernel.parameters[-1] if ptx_kernel.parameters else None
        parameters = np.zeros(last_parameter.offset + last_parameter.size + 16 if last_parameter else 16, np.uint8)
        for parameter, argument in zip(ptx_kernel.parameters, arguments, strict=True):
            value: Any = argument
            if isinstance(argument, np.ndarray):
                value = memory.address(numbers[id(argument)])
            elif isinstance(argument, SimulatedTensorMap):
                value = argument.encode(int(memory.address(numbers[id(argument.data)])))
            elif argument is None:
                value = np.int64(0)
            data = np.frombuffer(np.asarray(value).tobytes(), np.uint8)[: parameter.size]
            parameters[parameter.offset : parameter.offset + data.size] = data
        return model, parameters, memory


def compile_with_llvm(
    module: SimulatedModule, gpu: GpuDescription, *, lines: bool = False, note: str = "", imitates_nvcc: bool = True
) -> ModeledFile:
    """Compile a kernel file for a GPU with LLVM from the simulator's IR.

    Parameters are as of `compile_modeled_file`, and `imitates_nvcc` as of `ThreadWriter`.
    """
    name = module.path.name

    def compile_kernel(kernel: str) -> tuple[PtxProgram, None]:
        simulated = module.kernel(kernel)
        located = name if lines else ""
        function, variables = simulated.function, simulated.variables
        ptx = generate_ptx(function, variables, gpu.capability, located, imitates_nvcc=imitates_nvcc)
        return parse_ptx(ptx, name), None

    return ModeledFile(compile_kernel, gpu, "ir", name, note)


def compile_modeled_file(
    text: str,
    gpu: GpuDescription,
    include_dirs: Sequence[Path],
    module: SimulatedModule,
    *,
    lines: bool = False,
    fall_back: bool = False,
) -> ModeledFile:
    """Compile a kernel file for a GPU with nvcc if it is installed, otherwise with LLVM from the simulator's IR.

    Parameters
    ----------
    text : str
    gpu : GpuDescription
    include_dirs : sequence of Path
        Folders with headers.
    module : SimulatedModule
        The same file, compiled for the simulator, with the same macros.
    lines : bool
        Whether to attach line numbers to instructions generated by LLVM, too.
    fall_back : bool
        Whether to use LLVM if nvcc rejects the file, whose host code may need a header that is not installed, or if
        its output has no kernel of a name.

    Raises
    ------
    CompileError
        nvcc rejects the file, unless `fall_back`.
    """
    note, name = "", module.path.name
    try:
        assembled_file = assemble(text, gpu.capability, module.defines, include_dirs, name)
    except CompileError as error:
        if not fall_back:
            raise
        assembled_file, note = None, f"{error.message.rstrip('.')}. LLVM compiled the kernel instead."

    estimated = compile_with_llvm(module, gpu, lines=lines, note=note)
    if assembled_file is None:
        return estimated
    program = parse_ptx(assembled_file.ptx, name)

    def compile_assembled(kernel: str) -> tuple[PtxProgram, Mapping[str, MachineKernel] | None]:
        try:
            called = find_called_function(program.find_kernel(kernel))
            reason = f"nvcc's PTX calls {called}." if called else ""
        except KernelError as error:
            if not fall_back:
                raise
            reason = error.message
        if reason and fall_back:
            modeled.source, modeled.note = "ir", f"{reason} LLVM compiled the kernel instead."
            return estimated.compile_kernel(kernel)
        return program, assembled_file.kernels

    modeled = ModeledFile(compile_assembled, gpu, "sass", name)
    return modeled


def _initial_bytes(variable: PtxVariable) -> Array:
    data = np.zeros(max(variable.size, 16), np.uint8)
    words = variable.initializer.strip("{} ").split(",") if variable.initializer else []
    if words and all(word.strip().lstrip("-").isdigit() for word in words):
        element_size = max(1, variable.size // len(words)) if len(words) > 1 else variable.size
        for index, word in enumerate(words):
            value = (int(word) & (1 << 8 * min(element_size, 8)) - 1).to_bytes(min(element_size, 8), "little")
            data[index * element_size : index * element_size + len(value)] = np.frombuffer(value, np.uint8)
    return data
