"""Messages about runs of a pattern's variant, with their measurements, checks and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.engines.base import PhaseTimes
from gpu.messages.requests import ArrayResult, Request
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.messages.runs.timing import Timing
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.verdicts import Check


@dataclass(frozen=True)
class Throughput:
    """Work per second of kernel time, such as 812.5 "Mpixel/s"."""

    value: float
    unit: str


@dataclass(frozen=True)
class Deviation:
    """The largest difference from the reference: absolute, and relative to the reference's largest magnitude."""

    max_abs: float
    max_rel: float


@dataclass(frozen=True)
class Report:
    """Measurements of a run. `deviation` and `verified` are None without a reference result.

    `fallback` is the reason if a slower executor than the device's own was used. `least_bytes` is the pattern's minimum
    traffic. `timing` describes the repetitions of a run on a GPU, and `time_ms` is their median. Without repetitions,
    `timing` is None.
    """

    pattern: str
    engine: str
    executor: str
    device: str
    variant: str
    time_ms: PhaseTimes
    throughput: Throughput
    deviation: Deviation | None = None
    verified: bool | None = None
    fallback: str = ""
    least_bytes: int = 0
    timing: Timing | None = None

    @property
    def simulated(self) -> bool:
        """Whether its times are those of a simulation on the CPU, not of a GPU."""
        return self.engine == "simulator"


@dataclass(frozen=True)
class RunResult(ArrayResult):
    """Result of a run.

    The arrays are the host program's outputs and their presentation: `picture` for display; `image` with the input's
    levels if the result is an image; outlines of an array pattern's `input` and `output`; `frames`, `captions` and
    `partials`, as in `gpu.run.frames`; with a reference result, `right` and `error` from
    `gpu.declaration.arrays.present_error`.

    Parameters
    ----------
    distributed : DistributedRun or None
        For a run on several devices.
    """

    report: Report
    distributed: DistributedRun | None = None


@dataclass(frozen=True)
class VariantRun:
    """The run that a request is about.

    Parameters
    ----------
    pattern, variant : str
        Names in the declaration.
    params : mapping
        Values of the pattern's parameters; omitted ones have their defaults.
    inputs : mapping of str to SharedArray
        For image patterns: `image` and `maxval`, from LoadImage. For array patterns: `values`, from LoadArray, or
        nothing; then the input is generated from `params` and `seed`.
    seed : int
        Random seed of generated inputs.
    sources : mapping of str to str
        Text of edited kernel files, by file name.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunPattern(VariantRun, Request[RunResult]):
    """Run one variant of a pattern.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in VariantRun.
    verify : bool
        Whether to compute the reference result and compare.
    frames : bool
        Whether to record frames between launches, if the pattern supports them.
    side : int
        Rows and columns to which an image is cropped or tiled; 0 leaves it unchanged.
    chunks : tuple of int
        For several devices, as in `gpu.distributed.distributed_run.run_distributed`; unused with one device.
    """

    verify: bool = True
    frames: bool = False
    side: int = 0
    chunks: tuple[int, ...] = ()


@dataclass(frozen=True)
class CheckPattern(VariantRun, Request[Check]):
    """Check one variant of a pattern: run it in the simulator with checkers on a small part of its input.

    The result has the findings in the pattern's kernel file, and whether several schedules agree.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in VariantRun.
    """


@dataclass(frozen=True)
class CountPattern(VariantRun, Request[RunCounts]):
    """Count the work of a variant's launches: run it in the simulator on a small part of its input.

    It runs in the simulator's process.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in VariantRun.
    side : int
        As in RunPattern.
    full_input : bool
        Whether to use the whole input.
    """

    full_input: bool = False
    side: int = 0
