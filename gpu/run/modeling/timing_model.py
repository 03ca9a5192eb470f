"""Model a host program or a launch: its time on a described GPU, and the limiting resource."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import InputError, KernelError
from gpu.declaration.pattern import Inputs, Params, Variant
from gpu.engines.modeling_engine import ModeledLaunch, ModelingEngine
from gpu.kernel.arguments import BoundArguments, bind_arguments, to_variable_bytes
from gpu.kernel.host_launches import Extent, find_host_launch
from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled_time import describe_missing_blocks
from gpu.simulator.executor.textures import Texture
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing import validation
from gpu.timing.compiler import MachineKernel
from gpu.timing.gpus import UNSCALED, GpuDescription, GpuScaling, find_gpu
from gpu.timing.kernels import ModeledFile, compile_modeled_file
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.sass.machine_lines import group_machine_lines


@dataclass(frozen=True)
class ModeledRun:
    """Modeled times of launches, in order.

    Parameters
    ----------
    launches : tuple of ModeledLaunch
        At least one has a kernel, unless nothing was launched.
    source : str
        "sass" if the registers are from the driver's assembler, else "ir".
    all_ran : bool
        Whether every launch was also executed; otherwise some took too long, and later launches read values that the
        skipped ones should have written.
    pattern, variant : str
        Names of the pattern and the variant; "" for a kernel outside any pattern.
    note : str
        As of `ModeledFile`.
    """

    gpu: GpuDescription
    launches: tuple[ModeledLaunch, ...]
    source: str
    all_ran: bool
    pattern: str = ""
    variant: str = ""
    note: str = ""

    @property
    def time_us(self) -> float:
        return sum(launch.time_us for launch in self.launches)

    @property
    def is_complete(self) -> bool:
        """Whether the timing model followed the blocks of all launches to their end."""
        return all(launch.estimate is None or launch.estimate.is_complete for launch in self.launches)

    @property
    def breakdown(self) -> dict[str, float]:
        """Microseconds of all launches by resource, each as if it were the only limit."""
        total: dict[str, float] = {}
        for launch in self.launches:
            parts = {"launch": launch.time_us} if launch.estimate is None else launch.estimate.breakdown
            for name, amount in parts.items():
                total[name] = total.get(name, 0.0) + amount
        return total

    @property
    def bound_by(self) -> str:
        """The limiting resource of all launches together."""
        breakdown = self.breakdown
        return max(breakdown, key=lambda name: breakdown[name], default="launch")

    @property
    def error(self) -> validation.ErrorBound | None:
        """The known error of such modeled times compared with measured ones; None if it is unknown."""
        errors = validation.find_validation(self.gpu.key, self.source) if self.gpu.validated else None
        return errors.find_error_bound(self.pattern, self.variant) if errors is not None else None

    @property
    def machine_kernels(self) -> dict[tuple[str, str], MachineKernel]:
        """The assembler's output for each kernel, by its file and name; empty without an assembler."""
        return {(launch.file, launch.kernel): launch.code for launch in self.launches if launch.code is not None}

    @property
    def longest_launch(self) -> ModeledLaunch | None:
        kernels = [launch for launch in self.launches if launch.estimate is not None]
        return max(kernels, key=lambda launch: launch.time_us, default=None)

    def data(self) -> dict[str, Any]:
        """Return the figures as JSON data. Occupancy, registers and blocks are those of the longest launch."""
        error = self.error
        estimates = [launch.estimate for launch in self.launches if launch.estimate is not None]
        longest = self.longest_launch
        one = longest.estimate if longest is not None else None
        return {
            "gpu": self.gpu.name,
            "validated": self.gpu.validated,
            "error_of_nine_in_ten": None if error is None else round(error.relative_error, 3),
            "time_us": round(self.time_us, 3),
            "bound_by": self.bound_by,
            "breakdown": {name: round(amount, 3) for name, amount in self.breakdown.items()},
            "occupancy": {
                "blocks": one.occupancy.blocks if one else 0,
                "warps": one.occupancy.warps if one else 0,
                "limited_by": one.occupancy.limiting_resource if one else "grid",
            },
            "registers": one.registers if one else 0,
            "dram_bytes": round(sum(estimate.dram_bytes for estimate in estimates)),
            "l2_sectors": round(sum(estimate.l2_sectors for estimate in estimates)),
            "instructions": round(sum(estimate.instructions for estimate in estimates)),
            "sampled_blocks": one.sampled_blocks if one else 0,
            "of_blocks": one.total_blocks if one else 0,
            "source": self.source,
            "note": self.note,
            "true_values": self.all_ran,
            "complete": self.is_complete,
            "launches": [
                {
                    "kernel": launch.kernel,
                    "grid": list(launch.grid),
                    "block": list(launch.block),
                    "time_us": round(launch.time_us, 3),
                    "bound_by": launch.estimate.limiting_resource if launch.estimate is not None else "launch",
                }
                for launch in self.launches[:_MAX_LISTED]
            ],
            "kernels": [
                {
                    "kernel": kernel,
                    "file": file,
                    "registers": code.registers,
                    "spilled_bytes": code.spilled_bytes,
                    "sass": len(code.instructions),
                }
                for (file, kernel), code in self.machine_kernels.items()
            ],
            "lines": [
                {
                    "line": machine_line.line,
                    "kernel": kernel,
                    "file": file,
                    "sass": machine_line.instructions,
                    "local": machine_line.local_accesses,
                    "opcodes": machine_line.opcodes,
                }
                for (file, kernel), code in self.machine_kernels.items()
                for machine_line in group_machine_lines(code.instructions)
            ],
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return the figures as rows of a name and a text."""
        data = self.data()
        occupancy = data["occupancy"]
        error = self.error
        checked = "compared with measurements" if self.gpu.validated else "never compared with measurements"
        accuracy = f", {error.text}" if error is not None else ""
        rows = [
            ("GPU", f"{self.gpu.name}, as described: {checked}"),
            ("time", f"{_format_microseconds(self.time_us)} (modeled{accuracy})"),
            ("launches", f"{len(self.launches)}"),
            ("bound by", self.bound_by),
            (
                "limits",
                ", ".join(
                    f"{name} {_format_microseconds(amount)}" for name, amount in _list_largest(data["breakdown"])
                ),
            ),
            (
                "occupancy",
                f"at most {occupancy['blocks']} blocks, {occupancy['warps']} of {self.gpu.warps} warps on a "
                f"multiprocessor, limited by {occupancy['limited_by']}"
                + describe_missing_blocks(data["of_blocks"], occupancy["blocks"], occupancy["warps"], self.gpu),
            ),
            ("registers", f"{data['registers']} ({'ptxas' if self.source == 'sass' else 'estimated'})"),
            ("memory", f"{data['dram_bytes'] / 1e6:,.3f} MB, last cache {data['l2_sectors']:,} sectors"),
            ("issued", f"{data['instructions']:,} warp instructions"),
            ("sampled", f"{data['sampled_blocks']} of {data['of_blocks']} blocks"),
        ]
        if self.note:
            rows.append(("note", self.note))
        if not self.all_ran:
            rows.append(
                ("values", "some launches took too long to execute here; later launches did not read their results")
            )
        if not self.is_complete:
            rows.append(
                ("followed", "not to the end of the blocks, which takes too long: the time may be much too low")
            )
        return rows


_MAX_LISTED = 50


def model_pattern(
    variant: Variant,
    inputs: Inputs,
    params: Params,
    gpu: str,
    sources: Mapping[str, str] | None = None,
    *,
    pattern: str = "",
    gpu_scaling: GpuScaling = UNSCALED,
) -> ModeledRun:
    """Model a variant's host program.

    Parameters
    ----------
    gpu : str
        Name of a description, or a file with one.
    sources : mapping or None
        Kernel texts by file name that replace the project's.
    pattern : str
        Name of the variant's pattern, by which the known error of the model is found.
    gpu_scaling : GpuScaling
        Changes to the GPU's description.

    Raises
    ------
    InputError
        There is no such GPU, or the inputs are not valid for the variant.
    KernelError
        The timing model does not support the kernel, or there is no compiler.
    """
    description = gpu_scaling.scale_gpu(find_gpu(gpu))
    with closing(model_host_program(variant, inputs, params, ModelingEngine(description), sources)) as engine:
        return ModeledRun(
            description, tuple(engine.launches), engine.source, engine.all_executed, pattern, variant.name
        )


def model_host_program(
    variant: Variant, inputs: Inputs, params: Params, engine: ModelingEngine, sources: Mapping[str, str] | None = None
) -> ModelingEngine:
    """Run a variant's host program on a modeling engine; return the engine, which has the modeled launches.

    Parameters
    ----------
    inputs : mapping
        The complete inputs, which the host program may read.
    params : mapping
        All parameters of the pattern.
    engine : ModelingEngine
        An engine for the GPU to model; the caller closes it.
    sources : mapping of str to str or None
        Kernel texts by file name that replace the project's.

    Raises
    ------
    InputError, KernelError
        As of `model_pattern`.
    """
    if variant.library:
        raise InputError(f"{variant.title} is a library routine; its kernels are not available to the timing model.")
    if obstacle := variant.unsupported_reason(engine.device) or variant.obstacle(inputs, params):
        raise InputError(obstacle)
    engine.sources.update(sources or {})
    for _ in variant.run(engine, inputs, params):
        pass
    return engine


@dataclass(frozen=True, eq=False)
class UnboundLaunch:
    """A launch of a file's kernel.

    Parameters
    ----------
    file : Path
        The file's name, for messages and relative includes.
    text : str
        The file's content.
    kernel, grid, block, arguments, shared_bytes, defines, include_dirs, constants
        As of `gpu.kernel.simulate.simulate`.
    """

    file: Path
    text: str
    kernel: str
    grid: Extent | None
    block: Extent | None
    arguments: Sequence[Any]
    shared_bytes: int | None = None
    defines: Mapping[str, int | str] = field(default_factory=dict)
    include_dirs: Sequence[Path] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def bound_arguments(self) -> BoundArguments:
        """The arguments as values. Raises InputError or KernelError if a name, an extent or an argument is invalid."""
        if "@" in self.kernel:
            raise InputError(f"{self.kernel} cannot be modeled: the timing model finds kernels by name, not by line.")
        simulated = self.module.kernel(self.kernel)
        for name in self.constants:
            if name not in self.module.variables:
                raise KernelError(f"There is no variable {name!r} in {self.file.name}.")
        simulated.check_launch(self.shape.grid, self.shape.block, self.shape.shared_bytes)
        return bind_arguments(self.kernel, self.arguments, simulated.parameters)

    @cached_property
    def module(self) -> SimulatedModule:
        """The file, parsed."""
        return SimulatedModule(self.text, self.file, dict(self.defines), self.include_dirs, tolerant=True)

    @cached_property
    def shape(self) -> GridShape:
        """The launch's extents, completed from the file's own launch of the kernel; may raise InputError."""
        return GridShape(
            *find_host_launch(self.text, self.kernel, self.defines).complete(
                self.grid, self.block, self.shared_bytes, kernel=self.kernel, path=self.file.name
            )
        )


def to_unbound_launch(launch: KernelLaunch) -> UnboundLaunch:
    """Return the launch that a user entered; raise KernelError if it reads texture references."""
    if launch.textures:
        raise KernelError(
            f"{launch.kernel} reads texture references, which the timing model does not support in files."
        )
    return UnboundLaunch(
        Path(launch.file), launch.text, launch.kernel, launch.grid, launch.block, launch.arguments,
        launch.shared_bytes, launch.defines, tuple(map(Path, launch.include_dirs)), launch.constants,
    )  # fmt: skip


def model_launch(launch: UnboundLaunch, gpu: GpuDescription) -> ModeledRun:
    """Model a launch on a GPU.

    Raises
    ------
    InputError
        An extent, argument or constant is invalid.
    KernelError
        The timing model does not support the kernel, or its launch is invalid.
    """
    bound = bind_launch(launch, gpu)
    estimate = bound.file.estimate_launch(bound.name, bound.shape, bound.values)
    code = bound.file.machine_kernel(bound.name)
    modeled = ModeledLaunch(
        launch.kernel, bound.shape.grid, bound.shape.block, estimate.time_us, estimate, launch.file.name, code
    )
    return ModeledRun(gpu, (modeled,), bound.file.source, all_ran=True, note=bound.file.note)


@dataclass(frozen=True, eq=False)
class BoundLaunch:
    """A kernel launch that is ready to be modeled: file, kernel name, shape and argument values."""

    file: ModeledFile
    name: str
    shape: GridShape
    values: list[Any]


def bind_launch(launch: UnboundLaunch, gpu: GpuDescription, *, lines: bool = False) -> BoundLaunch:
    """Return a launch ready to be modeled: the compiled file, the extents and the arguments.

    Parameters
    ----------
    gpu : GpuDescription
        The GPU for which to compile.
    lines : bool
        As of `gpu.timing.kernels.compile_modeled_file`.

    Raises
    ------
    InputError, KernelError
        As of `model_launch`.
    """
    file, kernel, module = launch.file, launch.kernel, launch.module
    bound = launch.bound_arguments
    if any(isinstance(value, Texture) for value in bound.values):
        raise KernelError(f"{kernel} takes a texture object, which the timing model does not support in files.")
    keep = f"\nnamespace {{ [[maybe_unused]] void *kept_for_the_model() {{ return (void *){kernel}; }} }}\n"
    full_text = launch.text + (keep if "<" in kernel else "")
    folders = [file.resolve().parent, *launch.include_dirs]
    modeled = compile_modeled_file(full_text, gpu, folders, module, lines=lines, fall_back=True)
    for name, value in launch.constants.items():
        modeled.set_variable(name, to_variable_bytes(name, value, module.variables[name]))
    values = [value if isinstance(value, np.ndarray | np.generic) or value is None else None for value in bound.values]
    return BoundLaunch(modeled, re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", kernel), launch.shape, values)


def _list_largest(breakdown: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(((name, amount) for name, amount in breakdown.items() if amount), key=lambda each: -each[1])[:5]


def _format_microseconds(amount: float) -> str:
    return f"{amount / 1000:,.3f} ms" if amount >= 1000 else f"{amount:.2f} us"
