"""The CPU on which the simulator runs: name, cores and peak rate."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path


def processor_name() -> str:
    """Return the operating system's name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if sys.platform == "darwin":
        result = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        if result.stdout.strip():
            return result.stdout.strip()
    return platform.processor() or platform.machine() or "processor"


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_gflops() -> float:
    """Return the peak rate in 1e9 float32 operations per second: two multiply-adds of full vectors per core and cycle.

    0 if the system has no /proc/cpuinfo, as all except Linux.
    """
    try:
        highest_khz = float(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").read_text())
    except (OSError, ValueError):
        highest_khz = 0.0  # unavailable in virtual machines, which have a constant clock
    try:
        return compute_peak_gflops(Path("/proc/cpuinfo").read_text(), count_cores(), highest_khz / 1e3)
    except OSError:
        return 0.0


def compute_peak_gflops(cpuinfo: str, threads: int, highest_mhz: float = 0.0) -> float:
    """Return the peak rate in 1e9 float32 operations per second, from the text of /proc/cpuinfo.

    Parameters
    ----------
    threads : int
        Logical processors in use.
    highest_mhz : float
        The highest clock rate; 0 for the one in `cpuinfo`.
    """
    processors = [
        {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
        for block in cpuinfo.strip().split("\n\n")
    ]
    first = processors[0]
    flags = set(first.get("flags", "").split())
    mhz = highest_mhz or float(first.get("cpu MHz", 0))
    if not {"avx2", "fma"} <= flags:
        return 0.0
    wide = "avx512f" in flags and first.get("vendor_id") == "GenuineIntel"
    # Logical processors of one core share its vector units.
    physical_cores = {
        (processor.get("physical id"), processor.get("core id", number)) for number, processor in enumerate(processors)
    }
    used_cores = min(threads, len(physical_cores))
    return used_cores * mhz / 1e3 * (64 if wide else 32)
