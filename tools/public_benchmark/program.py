"""Child process that runs one program on the simulator and models its measured launches.

Run with `python -m` and the path of a request. The file of results is complete up to the last modeled launch, however
the process ends. Long launches do not run; after one the model reads memory that it should have written.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import LockstepError
from gpu.base.warp import WARP
from gpu.hosts.driver.attributes import emulate_gpu_attributes
from gpu.hosts.driver.journal import Journal
from gpu.hosts.program.host_compiler import HostOptions
from gpu.hosts.program.program_runner import compile_and_run
from gpu.run.programs.launch_modeler import LaunchModeler
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.sampled_blocks import GridShape
from tools.public_benchmark.measurements import MEASUREMENTS
from tools.public_benchmark.profile import Extents, format_kernel_name

_MAX_LANE_INSTRUCTIONS = 2e10
"""Limit on lane instructions of a launch that runs, by the model's count."""
_MAX_REPEATED_LANE_INSTRUCTIONS = 2e9
"""Limit on lane instructions of all launches that repeat an earlier one: of its kernel, with its arguments."""
_UNKNOWN_LANE_INSTRUCTIONS = 1000
"""Lane instructions per thread that a launch counts if the timing model does not support it."""


@dataclass
class LaunchRecorder:
    """Models the wanted launches of a program and writes the figures.

    Parameters
    ----------
    wanted : sequence of str
        The keys of the launches, as `MeasuredLaunch.key`.
    target : Path
        The file of results, one JSON object per line.
    built_by_nvcc : bool
        Whether nvcc built the measured programs, not clang.
    """

    wanted: Sequence[str]
    gpu: GpuDescription
    target: Path
    built_by_nvcc: bool
    _modeler: LaunchModeler = field(init=False)
    _seen: set[str] = field(default_factory=set)
    _sizes: dict[tuple[str, Extents, Extents], float] = field(default_factory=dict)
    _executed: set[Hashable] = field(default_factory=set)
    _repeated_lane_instructions: float = 0.0
    _next_launch: Hashable = None
    _next_size: float = 0.0
    _all_executed: bool = True

    def __post_init__(self) -> None:
        self._modeler = LaunchModeler(self.gpu, imitates_nvcc=self.built_by_nvcc)

    def model_launch(
        self, module: SimulatedModule, kernel: str, grid: Extents, block: Extents, shared: int, values: Sequence[Any]
    ) -> None:
        """Model a launch before it runs, unless it was modeled already."""
        if len(self._seen) == len(self.wanted):
            os._exit(0)
        key, shape = self._find_key(kernel, grid, block), GridShape(grid, block, shared)
        is_new = key is not None and key not in self._seen
        size = self._sizes.get((kernel, grid, block))
        if is_new or size is None:
            result = self._estimate(module, kernel, shape, values)
            size = result.get("lane_instructions", _UNKNOWN_LANE_INSTRUCTIONS * shape.blocks * shape.threads)
            self._sizes[kernel, grid, block] = size
            if is_new and key is not None:
                self._seen.add(key)
                with self.target.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, "true_values": self._all_executed, **result}) + "\n")
        self._next_launch, self._next_size = (kernel, grid, block, *map(_identify, values)), size

    def should_execute(self) -> bool:
        """Return whether the launch that was modeled last is to run."""
        if len(self._seen) == len(self.wanted):
            os._exit(0)
        if self._next_launch in self._executed:
            # Programs repeat launches to measure them; what a later launch reads is written already.
            executes = self._repeated_lane_instructions + self._next_size <= _MAX_REPEATED_LANE_INSTRUCTIONS
            if executes:
                self._repeated_lane_instructions += self._next_size
            return executes
        executes = self._next_size <= _MAX_LANE_INSTRUCTIONS
        if executes:
            self._executed.add(self._next_launch)
        self._all_executed &= executes
        return executes

    def _find_key(self, kernel: str, grid: Extents, block: Extents) -> str | None:
        name, extents = format_kernel_name(kernel), f"{grid} {block}"
        exact = f"{name} {extents}"
        if exact in self.wanted:
            return exact
        plain = name.partition("<")[0].partition("@")[0]
        alike = [
            each for each in self.wanted
            if each.endswith(f" {extents}") and each.removesuffix(f" {extents}").partition("<")[0] == plain
        ]  # fmt: skip
        return alike[0] if len(alike) == 1 else None

    def _estimate(
        self, module: SimulatedModule, kernel: str, shape: GridShape, values: Sequence[Any]
    ) -> dict[str, Any]:
        begin = time.process_time()
        try:
            estimate = self._modeler.estimate_launch(module, kernel, shape, values)
        except (LockstepError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            message = error.message if isinstance(error, LockstepError) else f"{type(error).__name__}: {error}"
            return {"refusal": message}
        return {
            "time_us": estimate.time_us, "dram_bytes": estimate.dram_bytes, "limit": estimate.limiting_resource,
            "float32_operations": estimate.float32_operations, "float64_operations": estimate.float64_operations,
            "lane_instructions": WARP * estimate.instructions, "breakdown": dict(estimate.breakdown),
            "seconds": round(time.process_time() - begin, 2), "complete": estimate.is_complete,
        }  # fmt: skip


def _identify(value: Any) -> Hashable:
    """Return what is the same for two arguments if they are: the place of memory, or a value."""
    return (value.ctypes.data, value.nbytes) if isinstance(value, np.ndarray) and value.ndim else repr(value)


def main(request_file: Path) -> int:
    """Run the program of a request; return its exit code."""
    request = json.loads(request_file.read_text("utf-8"))
    measurement = MEASUREMENTS[request["gpu"]]
    emulate_gpu_attributes(measurement.description)
    recorder = LaunchRecorder(
        request["wanted"], measurement.profiled_gpu, Path(request["target"]), measurement.built_by_nvcc
    )
    journal = Journal(fast=True, model_launch=recorder.model_launch, should_execute=recorder.should_execute)
    folder = Path(request["folder"])
    os.chdir(folder)
    options = HostOptions(
        tuple(folder / each for each in request["include_dirs"]), tuple(map(tuple, request["defines"]))
    )
    files = [folder / each for each in request["files"]]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return compile_and_run(
                files, options, ["./program", *request["arguments"]], Path(scratch), journal, lambda refused: None
            )
        except LockstepError as error:
            print(f"lockstep: {error.message}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
