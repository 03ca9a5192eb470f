"""Mechanisms of misses that the measurement's own figures show: rules, not names, so that they hold for both halves."""

from __future__ import annotations

from tools.public_benchmark.measurements import Measurement
from tools.public_benchmark.runs import ComparedLaunch

_LAUNCH_BOUND_US = 3.0
"""Measured time below which the start of a kernel dominates."""
_DIFFERENCE = 1.15
"""Ratio of counted and modeled figures from which they differ."""
_DRAM_SHARE = 0.5
"""Share of the time that DRAM must need at its peak rate for a difference of its traffic to explain an error."""


def find_mechanism(launch: ComparedLaunch, measurement: Measurement) -> str:
    """Return why a modeled launch's time is wrong, as a sentence; "" if no rule applies.

    A difference of counts is a mechanism only if it explains the direction of the error.
    """
    measured, ratio = launch.measured, launch.ratio
    if ratio is None:
        return ""
    bound_us = _compute_bound_us(launch, measurement)
    if measured.time_us < bound_us:
        return f"The measured figures contradict each other: what was counted takes at least {bound_us:.1f} us."
    if measured.time_us < _LAUNCH_BOUND_US:
        return f"Below {_LAUNCH_BOUND_US:.0f} us, where the start of the kernel dominates."
    for title, count, modeled in _list_counts(launch):
        if _explains(count, modeled, ratio):
            return f"The measured program executes other work: {count:.3g} {title} were counted, {modeled:.3g} modeled."
    count, modeled = measured.dram_bytes, launch.result["dram_bytes"]
    dram_us = max(count, modeled) / measurement.dram_gb_s / 1e3
    if _explains(count, modeled, ratio) and dram_us > _DRAM_SHARE * max(1.0, ratio) * measured.time_us:
        return f"DRAM transfers {count / modeled:.2g} times the modeled bytes."
    return ""


def _compute_bound_us(launch: ComparedLaunch, measurement: Measurement) -> float:
    """Return the time that the counted bytes and operations take at the GPU's peak rates."""
    measured, gpu = launch.measured, measurement.description
    lanes_per_us = gpu.multiprocessors * measurement.clock_ghz * 1e3
    return max(
        measured.dram_bytes / measurement.dram_gb_s / 1e3,
        measured.float32_operations / (2 * gpu.float_lanes * lanes_per_us),
        measured.float64_operations / (2 * gpu.double_lanes * lanes_per_us),
    )


def _list_counts(launch: ComparedLaunch) -> list[tuple[str, float, float]]:
    """Return the figures that may differ: their title, as counted, and as modeled."""
    measured, result = launch.measured, launch.result
    # A multiply-add is two operations of one instruction.
    least = measured.integer_operations + (measured.float32_operations + measured.float64_operations) / 2
    counts = [
        ("float32 operations", measured.float32_operations, result["float32_operations"]),
        ("float64 operations", measured.float64_operations, result["float64_operations"]),
    ]
    if least > result["lane_instructions"]:
        counts.append(("instructions of threads at least", least, result["lane_instructions"]))
    return counts


def _explains(count: float, modeled: float, ratio: float) -> bool:
    """Return whether two figures differ in the direction of an error: more was counted, and the model is too fast."""
    return count > _DIFFERENCE * modeled if ratio < 1 else count < modeled / _DIFFERENCE
