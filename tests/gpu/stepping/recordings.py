"""Recordings for the tests: host programs are functions of the engine, kernels are written where they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError
from gpu.engines.tracing_engine import TracingEngine
from gpu.recording.recording import Recording

Array = npt.NDArray[Any]


def record(source: str, program: Callable[[TracingEngine, Any], Any], **options: Any) -> Recording:
    """Record a host program, which gets the engine and the module built from `source` as "kernel.cu"."""
    engine = TracingEngine(**options)
    engine.sources = {"kernel.cu": source}
    failure = ""
    try:
        program(engine, engine.build("kernel.cu"))
    except LaunchError as error:
        failure = error.message
    return engine.build_recording(failure)


def record_launch(
    source: str,
    arguments: Sequence[Any],
    *,
    grid: int | tuple[int, ...] = 1,
    block: int | tuple[int, ...] = 32,
    kernel: str = "k",
    shared_bytes: int = 0,
    **options: Any,
) -> Recording:
    """Record one launch; arrays are uploaded."""

    def program(engine: TracingEngine, module: Any) -> None:
        given = [engine.upload(each) if isinstance(each, np.ndarray) else each for each in arguments]
        engine.launch(
            module.kernel(kernel),
            to_three_dimensions(grid),
            to_three_dimensions(block),
            *given,
            shared_bytes=shared_bytes,
        )

    return record(source, program, **options)


def to_three_dimensions(extent: int | tuple[int, ...]) -> tuple[int, ...]:
    given = (extent,) if isinstance(extent, int) else extent
    return (*given, 1, 1)[:3]
