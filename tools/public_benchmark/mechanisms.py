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

_INSTRUCTIONS_PER_OPERATION = 10
"""More instructions than for each counted operation have 3 % of the launches with a right time, which take turns with
memory; others have 1.5 at the median."""
_HOST_SHARE = 0.01
"""The share of data in host memory that comes from DRAM at most."""
_OTHERS_SHARE, _LATENCY_SHARE = 0.5, 0.15
"""Shares of the measured time: of other resources than DRAM, if that limits a launch, and of all, if latency does."""


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
    if ratio < 1 and not launch.result.get("complete", True):
        return "The blocks take longer than the model follows them, 40,000 basic blocks."
    for title, count, modeled in _list_counts(launch):
        if _explains(count, modeled, ratio):
            return f"The measured program executes other work: {count:.3g} {title} were counted, {modeled:.3g} modeled."
    return _find_transfers(launch, measurement)


def _find_transfers(launch: ComparedLaunch, measurement: Measurement) -> str:
    """Return the mechanism in the transfers between DRAM and the GPU; "" if they do not explain the error."""
    measured, ratio = launch.measured, launch.result["time_us"] / launch.measured.time_us
    count, modeled = measured.dram_bytes, launch.result["dram_bytes"]
    rate = modeled / measured.time_us / 1e3
    if ratio < 1 and count < _HOST_SHARE * modeled and measurement.host_gb_s / 2 < rate < 2 * measurement.host_gb_s:
        return (
            f"The data is in host memory: DRAM transfers {count:.2g} of {modeled:.3g} bytes, and the launch as much as "
            f"a bus of {rate:.0f} GB/s."
        )
    share = max(count, modeled) / measurement.dram_gb_s / 1e3 / (max(1.0, ratio) * measured.time_us)
    # Single sectors take longer than the peak rate says.
    slowdown = measurement.description.memory_gb_s / measurement.description.random_gb_s if ratio < 1 else 1.0
    if _explains(count, modeled, ratio) and share * slowdown > _DRAM_SHARE:
        rate_text = f", at {count / measured.time_us / 1e3:.0f} GB/s" if share <= _DRAM_SHARE else ""
        return f"DRAM transfers {count / modeled:.2g} times the modeled bytes{rate_text}."
    return ""


def find_resource(launch: ComparedLaunch) -> str:
    """Return which resource explains a wrong time whose mechanism no rule finds, as a sentence; "" if none does.

    It is the one that is modeled too slow, DRAM's rate for the pattern of accesses, or latency.
    """
    measured, result = launch.measured, launch.result
    modeled_us = {name: each for name, each in result["breakdown"].items() if name not in ("launch", "latency")}
    limit = max(modeled_us, key=lambda name: modeled_us[name])
    if result["time_us"] > measured.time_us:
        if modeled_us[limit] > measured.time_us:
            return f"Too slow is the model of one resource, {limit}: alone {modeled_us[limit]:.1f} us."
        return ""
    others_us = max((each for name, each in modeled_us.items() if name != "memory"), default=0.0)
    equal_bytes = abs(result["dram_bytes"] / max(measured.dram_bytes, 1.0) - 1) < _DIFFERENCE - 1
    if limit == "memory" and equal_bytes and others_us < _OTHERS_SHARE * measured.time_us:
        return (
            f"DRAM transfers the modeled bytes at {measured.dram_bytes / measured.time_us / 1e3:.0f} GB/s, slower than "
            "modeled for this pattern; no other resource needs as long."
        )
    if max(modeled_us.values()) < _LATENCY_SHARE * measured.time_us:
        return f"Latency: no resource needs more than {max(modeled_us.values()):.1f} us."
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
    most = _INSTRUCTIONS_PER_OPERATION * least
    if most < result["lane_instructions"]:
        counts.append(("instructions of threads at most", most, result["lane_instructions"]))
    return counts


def _explains(count: float, modeled: float, ratio: float) -> bool:
    """Return whether two figures differ in the direction of an error: more was counted, and the model is too fast."""
    return count > _DIFFERENCE * modeled if ratio < 1 else count < modeled / _DIFFERENCE
