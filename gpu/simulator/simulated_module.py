"""Kernel files on the simulator: their kernels, the memory of their variables, and recorded launches."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from gpu.base.errors import CompileError, KernelError, LaunchError, SourcePosition
from gpu.base.findings import build_error_finding
from gpu.base.schedules import ROUND_ROBIN
from gpu.recording.data import LaunchRecord, TraceFinding
from gpu.recording.trace import Trace
from gpu.simulator import ir
from gpu.simulator.checkers.checker_set import create_checkers
from gpu.simulator.checkers.memory.heap import HeapRecords
from gpu.simulator.executor.launch import LaunchOptions, SimulatedKernel
from gpu.simulator.executor.launches.arguments import Argument
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.textures import Texture
from gpu.simulator.frontend.clang.parsing import Diagnosis
from gpu.simulator.frontend.program import Program, is_instantiation
from gpu.simulator.limits import LIMITS
from gpu.simulator.trace.findings import FindingEvents
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS, Recorder
from gpu.simulator.trace.traced_values import TracedValues
from gpu.simulator.types import Type

if TYPE_CHECKING:
    from gpu.simulator.compiled.launch import CompiledKernel

Array = npt.NDArray[Any]
Cluster = tuple[int, int, int]


@dataclass(frozen=True)
class TraceSettings:
    """What to record of a launch, and who else observes it.

    Parameters
    ----------
    max_lane_events : int
        The most statements of single lanes to record. A larger launch still runs to its end; `Trace.stopped` is then
        the position where the recording ended.
    checked : bool
        Whether the checkers run; their findings are `Trace.findings`.
    uninitialized : collection of str
        The names of parameters for arrays that start uninitialized.
    observers : sequence of Observer
        Additional observers of the launch.
    """

    max_lane_events: int = MAXIMUM_LANE_EVENTS
    checked: bool = True
    uninitialized: Collection[str] = ()
    observers: Sequence[Observer] = ()


_DEFAULT_SETTINGS = TraceSettings()


class SimulatedModule:
    """A kernel file, with the memory of its `__constant__` and `__device__` variables.

    If `tolerant`, an error in one function does not affect the kernels that do not call it.
    """

    def __init__(
        self,
        text: str,
        path: Path,
        defines: Mapping[str, int | str],
        include_dirs: Sequence[Path] = (),
        *,
        tolerant: bool = False,
    ) -> None:
        self._source = (text, path, defines)
        self._include_dirs = tuple(include_dirs)
        self._tolerant = tolerant
        self._programs: dict[tuple[str, ...], Program] = {(): self._parse((), text)}
        # Constants that lowering adds, such as strings, are in another bank on a GPU and do not count.
        self._constant_bytes = _count_constant_bytes(self._programs[()])
        self._kernels: dict[str, SimulatedKernel] = {}
        self._cluster_kernels: dict[tuple[str, Cluster], SimulatedKernel] = {}
        self._compiled: dict[tuple[str, Cluster | None], CompiledKernel] = {}
        self._variables: dict[str, PointerValue] = {}
        self._assigned_names: set[str] = set()
        self._heaps = HeapRecords()

    def find_unreached_lines(
        self, lines: Collection[int], reached: Collection[SourcePosition], kernels: Collection[str]
    ) -> dict[int, bool]:
        """Return lines of the file with unreached code, as `Program.find_unreached_lines` does."""
        return self._programs[()].find_unreached_lines(lines, reached, kernels)

    @property
    def path(self) -> Path:
        """The path of the kernel file."""
        return self._source[1]

    @property
    def defines(self) -> Mapping[str, int | str]:
        """The macros with which the file is compiled."""
        return self._source[2]

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the `__global__` functions, without templates."""
        return self._programs[()].kernels

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the `__global__` templates, which need arguments."""
        return self._programs[()].templates

    @property
    def overloads(self) -> tuple[str, ...]:
        """The `__global__` functions that share a name, each with its line: "reduce@12"."""
        return self._programs[()].overloads

    @property
    def symbols(self) -> dict[str, str]:
        """The kernels by linker symbol; the symbol of an `extern "C"` kernel is its name."""
        return self._programs[()].symbols

    @property
    def variables(self) -> dict[str, Type]:
        """The types of the `__constant__` and `__device__` variables, by name."""
        variables = self._programs[()].variables.items()
        # Strings and constant tables, which lowering adds, have names that C++ does not allow.
        return {
            name: each.type for name, each in variables if re.fullmatch(r"[\w:]+", name) and each.space != "texture"
        }

    @property
    def constant_bytes(self) -> int:
        """The size of all `__constant__` variables together."""
        return self._constant_bytes

    @property
    def textures(self) -> tuple[str, ...]:
        """The names of the texture references."""
        return tuple(name for name, variable in self._programs[()].variables.items() if variable.space == "texture")

    def set_texture(self, name: str, texture: Texture) -> None:
        """Bind a texture reference to a texture.

        Raises
        ------
        KernelError
            There is no texture reference of that name.
        """
        if name not in self.textures:
            names = ", ".join(self.textures) or "none"
            raise KernelError(f"There is no texture reference {name!r}; the file has {names}.")
        self._variables[name] = PointerValue(texture.to_memory(name))

    def kernel(self, name: str, cluster: Cluster | None = None) -> SimulatedKernel:
        """Return a kernel, or an instantiation of a template: "reduce<float, 256>".

        A line selects one of several kernels with the same name: "reduce@12", "reduce<float>@12". `cluster` is the
        number of blocks per cluster along x, y and z.

        Raises
        ------
        KernelError
            There is no kernel of that name.
        CompileError
            The kernel uses something that the simulator does not support.
        """
        if name not in self._kernels:
            program = self._get_program(name)
            function = program.lower_kernel(name.partition("@")[0])
            for variable in program.variables.values():
                if variable.name not in self._variables:
                    self._variables[variable.name] = PointerValue(_allocate_variable(variable))
            self._kernels[name] = SimulatedKernel(function, LockstepCompiler(), self._variables)
        if cluster is None:
            return self._kernels[name]
        if (name, cluster) not in self._cluster_kernels:
            self._cluster_kernels[name, cluster] = self._kernels[name].with_cluster(cluster)
        return self._cluster_kernels[name, cluster]

    def compiled_kernel(self, name: str, cluster: Cluster | None = None) -> CompiledKernel:
        """Return a kernel that runs as machine code, on the same variables as `kernel`; raises the same errors."""
        from gpu.simulator.compiled.launch import CompiledKernel  # imports LLVM, which lockstep does not need

        if (name, cluster) not in self._compiled:
            function = self.kernel(name, cluster).function
            memories = {key: address.memory for key, address in self._variables.items()}
            self._compiled[name, cluster] = CompiledKernel(
                function,
                {key: memory.data for key, memory in memories.items() if isinstance(memory, FlatMemory)},
                frozenset(key for key, memory in memories.items() if memory is not None and memory.space == "constant"),
            )
        return self._compiled[name, cluster]

    def trace(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        settings: TraceSettings = _DEFAULT_SETTINGS,
        *,
        cluster: Cluster | None = None,
        **options: Unpack[LaunchOptions],
    ) -> Trace:
        """Run a kernel as `SimulatedKernel.launch` does, and record every step of it.

        Parameters
        ----------
        name : str
            The kernel.
        grid, block, arguments, **options
            As for a launch.
        cluster : (int, int, int) or None
            As for `kernel`.

        Returns
        -------
        Trace
            If an error of the kernel ends the launch, the steps before it; `Trace.failure` and the last of
            `Trace.findings` describe the error.
        """
        recorder = Recorder(settings.max_lane_events)
        kernel = self.kernel(name, cluster).with_compiler(LockstepCompiler(TracedValues(recorder)))
        checkers = create_checkers(settings.uninitialized, self._heaps) if settings.checked else ()
        finding_events = FindingEvents(recorder, checkers)
        observers = (*checkers, *((finding_events,) if settings.checked else ()), *settings.observers)
        message = ""
        failure: tuple[TraceFinding, ...] = ()
        try:
            kernel.launch(grid, block, arguments, observers=(recorder, *observers), **options)
        except LaunchError as error:
            if not error.kind:
                raise
            message = error.message
            failure = (TraceFinding(recorder.running_event, build_error_finding(error), recorder.failed_access),)
        source, file, defines = self._source
        macros = {key: str(value) for key, value in defines.items()}
        schedule, findings = str(options.get("schedule", ROUND_ROBIN)), (*finding_events.findings, *failure)
        record = LaunchRecord(name, source, str(file), macros, schedule, message, findings)
        return Trace(recorder.build_data(record))

    def iterate_warnings(self, name: str) -> Iterator[Diagnosis]:
        """Yield clang's warnings about a kernel and the functions it calls."""
        return self._get_program(name).iterate_warnings(name)

    def find_outputs(self, name: str) -> dict[str, SourcePosition]:
        """Return the parameters through which a kernel may write, and where they are declared."""
        return self._get_program(name).find_outputs(name)

    def find_unset_constants(self, name: str) -> dict[str, SourcePosition]:
        """Return the `__constant__` variables that a kernel uses and nothing has set, and where they are declared."""
        unset = self._get_program(name).unset_constants
        return {constant: place for constant, place in unset.items() if constant not in self._assigned_names}

    def variable(self, name: str) -> FlatMemory:
        """Return the memory of a `__constant__` or `__device__` variable, for the host to write to.

        Raises
        ------
        KernelError
            There is no variable of that name.
        """
        if name not in self._variables and name in self._programs[()].variables:
            self._variables[name] = PointerValue(_allocate_variable(self._programs[()].variables[name]))
        memory = self._variables[name].memory if name in self._variables else None
        if not isinstance(memory, FlatMemory):
            raise KernelError(f"There is no __constant__ variable {name!r}.")
        self._assigned_names.add(name)
        return memory

    def read_variables(self) -> dict[str, Array]:
        """Return the bytes of the `__constant__` and `__device__` variables that a launch or the host has used."""
        memories = {name: address.memory for name, address in self._variables.items()}
        return {name: memory.data for name, memory in memories.items() if isinstance(memory, FlatMemory)}

    def share_variables(self, other: SimulatedModule) -> None:
        """Use the memory of another module's variables for those that this module has too."""
        for name in other.variables.keys() & self.variables.keys():
            if name not in other._variables:
                other._variables[name] = PointerValue(_allocate_variable(other._programs[()].variables[name]))
            self._variables[name] = other._variables[name]

    def set_constant(self, name: str, values: Array) -> None:
        """Copy `read_variables` to the beginning of a `__constant__` or `__device__` variable."""
        memory = self.variable(name)
        data = np.ascontiguousarray(values).view(np.uint8).ravel()
        if data.size > memory.data.size:
            raise KernelError(f"{name} holds {memory.data.size} bytes; {data.size} do not fit.")
        memory.data[: data.size] = data

    def _get_program(self, name: str) -> Program:
        """Return the program that contains an instantiation; clang instantiates the templates that the text names."""
        name, separator, line = name.partition("@")
        instances = (name,) if is_instantiation(name) else ()
        key = (*instances, separator + line) if separator else instances
        if key not in self._programs:
            text = self._source[0]
            if separator:
                if not (line.isascii() and line.isdigit()):
                    raise KernelError(f"{name}@{line} does not name a line: write a whole number, as in {name}@12.")
                text = self._programs[()].isolate_kernel(name, int(line))
            self._programs[key] = self._parse(instances, text)
        return self._programs[key]

    def _parse(self, instances: tuple[str, ...], text: str) -> Program:
        _, path, defines = self._source
        program = Program(text, path, defines, instances, self._include_dirs, tolerant=self._tolerant)
        constant = _count_constant_bytes(program)
        if constant > LIMITS.constant_bytes:
            raise CompileError(
                f"{path.name} has {constant} bytes of __constant__ variables; "
                f"at most {LIMITS.constant_bytes} are possible.",
                advice="Put larger arrays into global memory, as a const pointer with __restrict__.",
            )
        return program


def _count_constant_bytes(program: Program) -> int:
    return sum(variable.type.size for variable in program.variables.values() if variable.space == "constant")


def _allocate_variable(variable: ir.GlobalVariable) -> FlatMemory:
    data = np.full(variable.type.size, 0, np.uint8)
    for offset, constant in variable.initial:
        size = constant.type.size
        data[offset : offset + size] = np.frombuffer(constant.value.tobytes(), np.uint8)
    space = "global" if variable.space == "texture" else variable.space
    return FlatMemory(variable.name, space, data, writable=space != "constant")
