"""The workload of a run: a variant with its input, parameters and kernel texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpu.declaration.pattern import Inputs, Pattern, Variant
from gpu.messages.runs.pattern_runs import VariantRun
from gpu.patterns import find_pattern
from gpu.run.host_program import validate_inputs
from gpu.run.request_inputs import open_inputs


@dataclass(frozen=True)
class Workload:
    """A variant with the input, the parameters and the kernel texts of a run.

    Parameters
    ----------
    inputs : mapping of str to array
        If empty, the pattern generates them from its parameters and `seed`.
    params : mapping
        Values of some parameters; the others have their defaults.
    sources : mapping of str to str
        Kernel texts by file name that replace the project's.
    seed : int
        Random seed of generated inputs.
    """

    pattern: Pattern
    variant: Variant
    inputs: Inputs
    params: Mapping[str, Any]
    sources: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0

    @classmethod
    def open(cls, request: VariantRun, side: int = 0) -> Workload:
        """Return the workload of a request; `side` is as for `open_inputs`."""
        pattern, inputs = find_pattern(request.pattern), open_inputs(request.inputs, side)
        return cls(pattern, pattern.variant(request.variant), inputs, request.params, request.sources, request.seed)

    def prepare(self) -> Workload:
        """Return the workload with its complete inputs and parameters.

        Raises
        ------
        InputError
            They are not valid for the variant.
        """
        params = self.pattern.check(self.params)
        inputs = self.pattern.prepare_inputs(self.inputs, params, self.seed)
        validate_inputs(self.pattern, self.variant, inputs, params)
        return replace(self, inputs=inputs, params=params)
