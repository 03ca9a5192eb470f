"""Kernel files on the simulator: their kernels, the memory of their variables, and launches that are recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpu.errors import CompileError, KernelError, LaunchError, SourcePosition
from gpu.schedules import ROUND_ROBIN
from gpu.simulator import ir
from gpu.simulator.checkers.every import every_checker
from gpu.simulator.checkers.findings import finding_of
from gpu.simulator.checkers.heap import HeapRecords
from gpu.simulator.executor.launch import Argument, SimulatedKernel
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.observe import Observer
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.textures import Texture
from gpu.simulator.frontend.clang import Diagnosis
from gpu.simulator.frontend.program import Program, is_instantiation
from gpu.simulator.limits import LIMITS
from gpu.simulator.trace.data import LaunchRecord, gather
from gpu.simulator.trace.findings import FindingEvents
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS, Recorder
from gpu.simulator.trace.trace import Trace
from gpu.simulator.trace.traced_values import TracedValues
from gpu.simulator.trace.types import TraceFinding
from gpu.simulator.types import Type

if TYPE_CHECKING:
    from gpu.simulator.compiled.launch import CompiledKernel

Array = npt.NDArray[Any]
Cluster = tuple[int, int, int]


class SimulatedModule:
    """A kernel file, with the memory of its `__constant__` and `__device__` variables.

    A `tolerant` one lets an error in one function spare the kernels that do not call it.
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
        # What lowering adds, such as strings, has a bank of its own on a GPU.
        self._constant_bytes = _constant_bytes(self._programs[()])
        self._kernels: dict[str, SimulatedKernel] = {}
        self._in_clusters: dict[tuple[str, Cluster], SimulatedKernel] = {}
        self._compiled: dict[tuple[str, Cluster | None], CompiledKernel] = {}
        self._variables: dict[str, PointerValue] = {}
        self._set: set[str] = set()
        self._heaps = HeapRecords()

    def unreached(
        self, lines: Collection[int], reached: Collection[SourcePosition], kernels: Collection[str]
    ) -> set[int]:
        """Return those of the file's lines that hold code which no thread came to; arguments as of a Program's."""
        return self._programs[()].unreached(lines, reached, kernels)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the `__global__` functions, templates left out."""
        return self._programs[()].kernels

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the `__global__` templates, which need arguments."""
        return self._programs[()].templates

    @property
    def overloads(self) -> tuple[str, ...]:
        """The `__global__` functions that share their names, each with its line: "reduce@12"."""
        return self._programs[()].overloads

    @property
    def symbols(self) -> dict[str, str]:
        """The kernels by the names that a linker knows them by: of `extern "C"` ones their own."""
        return self._programs[()].symbols

    @property
    def variables(self) -> dict[str, Type]:
        """The types of the `__constant__` and `__device__` variables, by name."""
        found = self._programs[()].variables.items()
        # What lowering adds, strings and constant tables, has other names than the text can.
        return {name: each.type for name, each in found if re.fullmatch(r"[\w:]+", name) and each.space != "texture"}

    @property
    def constant_bytes(self) -> int:
        """The size of all `__constant__` variables together."""
        return self._constant_bytes

    @property
    def textures(self) -> tuple[str, ...]:
        """The names of the texture references."""
        return tuple(name for name, each in self._programs[()].variables.items() if each.space == "texture")

    def set_texture(self, name: str, texture: Texture) -> None:
        """Bind a texture reference to what it reads.

        Raises
        ------
        KernelError
            There is no texture reference of that name.
        """
        if name not in self.textures:
            has = ", ".join(self.textures) or "none"
            raise KernelError(f"There is no texture reference {name!r}; the file has {has}.")
        self._variables[name] = PointerValue(texture.memory(name))

    def kernel(self, name: str, cluster: Cluster | None = None) -> SimulatedKernel:
        """Return a kernel, or an instantiation of a template: "reduce<float, 256>".

        Of several with one name, a line tells which: "reduce@12", "reduce<float>@12". A launch may put its blocks into
        clusters of so many along x, y and z.

        Raises
        ------
        KernelError
            There is no kernel of that name.
        CompileError
            It uses something that the simulator does not support.
        """
        if name not in self._kernels:
            program = self._program_for(name)
            function = program.kernel(name.partition("@")[0])
            for variable in program.variables.values():
                if variable.name not in self._variables:
                    self._variables[variable.name] = PointerValue(_memory_of(variable))
            self._kernels[name] = SimulatedKernel(function, LockstepCompiler(), self._variables)
        if cluster is None:
            return self._kernels[name]
        if (name, cluster) not in self._in_clusters:
            self._in_clusters[name, cluster] = self._kernels[name].in_clusters(cluster)
        return self._in_clusters[name, cluster]

    def compiled(self, name: str, cluster: Cluster | None = None) -> CompiledKernel:
        """Return a kernel that runs as machine code, on the same variables as `kernel`; raises as that does."""
        from gpu.simulator.compiled.launch import CompiledKernel  # LLVM, which lockstep does without

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
        *,
        shared_bytes: int = 0,
        max_lane_events: int = MAXIMUM_LANE_EVENTS,
        on_print: Callable[[str, str], None] | None = None,
        max_rounds: int | None = None,
        max_seconds: float | None = None,
        schedule: str = ROUND_ROBIN,
        checked: bool = True,
        uninitialized: Collection[str] = (),
        observers: Sequence[Observer] = (),
        blocks: range | None = None,
        cluster: Cluster | None = None,
    ) -> Trace:
        """Run a kernel as `SimulatedKernel.launch` does, and record every step of it.

        Parameters
        ----------
        name : str
            The kernel.
        grid, block, arguments, shared_bytes, on_print, max_rounds, max_seconds, schedule, blocks
            As for a launch.
        max_lane_events : int
            How many statements of single lanes are recorded at most. A larger launch runs to its end all the same;
            `Trace.stopped` then says where the recording ended.
        checked : bool
            Whether the checkers watch: `Trace.findings`.
        uninitialized : collection of str
            The parameters whose arrays start without values.
        observers : sequence of Observer
            Who else watches the launch.
        cluster : (int, int, int) or None
            As of `kernel`.

        Returns
        -------
        Trace
            Of a launch that ends at a mistake of the kernel's, what came before; `Trace.failure` says which, and so
            does the last of `Trace.findings`.
        """
        plain = self.kernel(name, cluster)
        recorder = Recorder(max_lane_events)
        checkers = every_checker(uninitialized, self._heaps) if checked else ()
        dated = FindingEvents(recorder, checkers)
        message = ""
        failure: tuple[TraceFinding, ...] = ()
        try:
            plain.executed_by(LockstepCompiler(TracedValues(recorder))).launch(
                grid,
                block,
                arguments,
                shared_bytes=shared_bytes,
                observers=(recorder, *checkers, dated, *observers) if checked else (recorder, *observers),
                on_print=on_print,
                max_rounds=max_rounds,
                max_seconds=max_seconds,
                schedule=schedule,
                blocks=blocks,
            )
        except LaunchError as error:
            if not error.kind:
                raise
            message = error.message
            failure = (TraceFinding(recorder.running_event, finding_of(error)),)
        source, file, defines = self._source
        macros = {key: str(value) for key, value in defines.items()}
        findings = (*dated.findings, *failure)
        return Trace(gather(recorder, LaunchRecord(name, source, str(file), macros, schedule, message, findings)))

    def warnings(self, name: str) -> Iterator[Diagnosis]:
        """Yield what clang warns of in the text that a kernel is made of."""
        return self._program_for(name).warnings(name)

    def outputs(self, name: str) -> dict[str, SourcePosition]:
        """Return the parameters through which a kernel may write, and where they stand."""
        return self._program_for(name).outputs(name)

    def unset_constants(self, name: str) -> dict[str, SourcePosition]:
        """Return the `__constant__` variables that a kernel finds without a value, and where they are declared."""
        unset = self._program_for(name).unset_constants
        return {constant: place for constant, place in unset.items() if constant not in self._set}

    def variable(self, name: str) -> FlatMemory:
        """Return the memory of a `__constant__` or `__device__` variable, for the host to write to.

        Raises
        ------
        KernelError
            There is no variable of that name.
        """
        if name not in self._variables and name in self._programs[()].variables:
            self._variables[name] = PointerValue(_memory_of(self._programs[()].variables[name]))
        memory = self._variables[name].memory if name in self._variables else None
        if not isinstance(memory, FlatMemory):
            raise KernelError(f"There is no __constant__ variable {name!r}.")
        self._set.add(name)
        return memory

    def values(self) -> dict[str, Array]:
        """Return the bytes of the `__constant__` and `__device__` variables, as far as anything has asked for them."""
        memories = {name: address.memory for name, address in self._variables.items()}
        return {name: memory.data for name, memory in memories.items() if isinstance(memory, FlatMemory)}

    def set_constant(self, name: str, values: Array) -> None:
        """Copy `values` to the beginning of a `__constant__` or `__device__` variable."""
        memory = self.variable(name)
        data = np.ascontiguousarray(values).view(np.uint8).ravel()
        if data.size > memory.data.size:
            raise KernelError(f"{name} holds {memory.data.size} bytes; {data.size} do not fit.")
        memory.data[: data.size] = data

    def _program_for(self, name: str) -> Program:
        """Return the program with an instantiation in it; clang instantiates what the text names."""
        name, at, line = name.partition("@")
        instances = (name,) if is_instantiation(name) else ()
        key = (*instances, at + line)
        if key not in self._programs:
            text = self._source[0]
            if at:
                if not (line.isascii() and line.isdigit()):
                    raise KernelError(f"{name}@{line} names no line: it is a whole number, as in {name}@12.")
                text = self._programs[()].alone(name, int(line))
            self._programs[key] = self._parse(instances, text)
        return self._programs[key]

    def _parse(self, instances: tuple[str, ...], text: str) -> Program:
        _, path, defines = self._source
        program = Program(text, path, defines, instances, self._include_dirs, tolerant=self._tolerant)
        constant = _constant_bytes(program)
        if constant > LIMITS.constant_bytes:
            raise CompileError(
                f"{path.name} has {constant} bytes of __constant__ variables; {LIMITS.constant_bytes} are there.",
                advice="Put what is larger into global memory, as a const pointer with __restrict__.",
            )
        return program


def _constant_bytes(program: Program) -> int:
    return sum(each.type.size for each in program.variables.values() if each.space == "constant")


def _memory_of(variable: ir.GlobalVariable) -> FlatMemory:
    data = np.full(variable.type.size, 0, np.uint8)
    for offset, constant in variable.initial:
        size = constant.type.size
        data[offset : offset + size] = np.frombuffer(constant.value.tobytes(), np.uint8)
    space = "global" if variable.space == "texture" else variable.space
    return FlatMemory(variable.name, space, data, writable=space != "constant")
