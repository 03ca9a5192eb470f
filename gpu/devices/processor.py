"""What the simulator runs on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path


def processor_name() -> str:
    """Return what the operating system calls the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if sys.platform == "darwin":
        asked = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        if asked.stdout.strip():
            return asked.stdout.strip()
    return platform.processor() or platform.machine() or "processor"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_gflops() -> float:
    """Return the float32 operations a second, in 1e9, if each core did two multiply-adds of its widest vectors a cycle.

    0 where the operating system does not say what that takes: it is read from Linux's /proc/cpuinfo.
    """
    try:
        highest_khz = float(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").read_text())
    except (OSError, ValueError):
        highest_khz = 0.0  # a virtual machine's clock does not change
    try:
        return peak_of(Path("/proc/cpuinfo").read_text(), cores(), highest_khz / 1e3)
    except OSError:
        return 0.0


def peak_of(cpuinfo: str, threads: int, highest_mhz: float = 0.0) -> float:
    """Return the peak of `threads` logical processors of a machine that describes itself so, at its highest clock."""
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
    # Threads of one core share its vector units.
    places = {(each.get("physical id"), each.get("core id", number)) for number, each in enumerate(processors)}
    busy = min(threads, len(places))
    return busy * mhz / 1e3 * (64 if wide else 32)
