"""A workload on which a kernel is checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu.declaration.roles import Role
from gpu.run import verification
from gpu.run.host_program import ProgressCallback, run_host_program
from gpu.run.workload import Workload

if TYPE_CHECKING:
    from gpu.engines.simulator import SimulatorEngine

MULTIPROCESSOR_COUNTS = (16, 1)
"""Numbers of multiprocessors to try. A host program divides its work by this number: with one, each thread does as much
as on a large input, and a loop that runs once on a small input runs several times."""

TIME_LIMIT_S = 40.0
"""Seconds of processor time after which a launch ends with a finding: enough for all launches that end."""


@dataclass(frozen=True)
class KernelCase(Workload):
    """A workload with its complete input and parameters, for a device with a number of multiprocessors."""

    multiprocessors: int = MULTIPROCESSOR_COUNTS[0]

    @property
    def file(self) -> str:
        """The kernel file of the variant."""
        return self.pattern.kernel_file_of(self.variant.name)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The file's kernels that can belong to the variant: its own and helpers of no particular variant."""
        return (*self.variant.kernels, *self.pattern.helpers.get(self.file, ()))

    @property
    def description(self) -> str:
        """The size and the block size, such as "n = 4999, block = 256"."""
        shown = (self.pattern.size, self.pattern.parameter(Role.BLOCK))
        return ", ".join(
            f"{each.name} = {self.params[each.name]}" for each in shown if each is not None and each.name in self.params
        )

    def with_text(self, text: str) -> KernelCase:
        """Return a copy with another text of its file."""
        return replace(self, sources={**self.sources, self.file: text})

    def runs_correctly(self, engine: SimulatorEngine, report_progress: ProgressCallback) -> bool:
        """Run on an engine; return whether the result is correct. Raise LaunchError if a launch fails."""
        engine.sources = dict(self.sources)
        engine.device = replace(engine.device, multiprocessors=self.multiprocessors)
        outputs = run_host_program(engine, self.variant, self.inputs, self.params, report_progress)
        result, reference = verification.prepare_comparison(
            self.pattern, self.variant, self.inputs, self.params, outputs
        )
        return verification.compare_results(result, reference, self.pattern.tolerance(self.inputs, self.params))[1]
