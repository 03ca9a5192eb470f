"""Model a launch of a kernel's text in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.run.modeling.timing_model import Extent, ModeledRun, UnboundLaunch, model_launch
from gpu.timing.gpus import find_gpu


def model_kernel(
    file: Path, text: str, kernel: str, grid: Extent | None, block: Extent, arguments: Sequence[Any], gpu: str
) -> ModeledRun:
    """Model a launch of a kernel of a text; `gpu` is the key of its description."""
    return model_launch(UnboundLaunch(file, text, kernel, grid, block, arguments), find_gpu(gpu))
