"""Default sizes of the benchmarks, and the parser of `--size`, which do not need Dask."""

from __future__ import annotations

import argparse
import re

OVERHEAD, DISK = "overhead", "disk"

GPU_SIZES = {
    "nbody": 2**20,
    "matmul": 32768,
    "sort": 2**31,
    "scan": 2**32,
    "reduction": 2**32,
    "histogram": 2**32,
    "convolution": 2**32,
    OVERHEAD: 2**22,
    DISK: 2**33,
}
SIMULATOR_SIZES = {
    "nbody": 2**8,
    "matmul": 64,
    "sort": 2**13,
    "scan": 2**14,
    "reduction": 2**14,
    "histogram": 2**14,
    "convolution": 2**12,
    OVERHEAD: 2**12,
    DISK: 2**16,
}
NAMES = tuple(GPU_SIZES)

_SIZE = re.compile(r"([a-z]+)=(?:(\d{1,12})|2\^(\d{1,2}))", re.ASCII)


def parse_size(text: str) -> tuple[str, int]:
    """Parse a name and a size of `--size`: sort=2^31, matmul=8192, disk=0."""
    match = _SIZE.fullmatch(text)
    if match is None or match[1] not in NAMES:
        raise argparse.ArgumentTypeError(f"expected NAME=N or NAME=2^K, not {text[:40]!r}; names: {', '.join(NAMES)}")
    return match[1], int(match[2]) if match[2] else 2 ** int(match[3])
