"""Run a variant in this process, without the engine's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.engines.base import Engine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

Array = np.ndarray[Any, Any]


def run_variant(
    engine: Engine, pattern: str, variant: str, image: Array, maxval: int | None = None, **params: Any
) -> Outcome:
    """Run a variant on an image, whose white is the largest value of its type unless `maxval` says otherwise."""
    declared = find_pattern(pattern)
    white = np.iinfo(image.dtype).max if maxval is None else maxval
    inputs = {"image": image, "maxval": np.array(white)}
    return run_pattern(engine, Workload(declared, declared.variant(variant), inputs, params), lambda progress: None)
