"""Open and play an untrusted recording once, in an isolated process, before the window opens it.

`gpu.process.inspector` runs this module in a process with limited resources: python -m gpu.stepping.inspection.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile

from gpu.base.errors import InputError
from gpu.base.resource_limits import lower_limit
from gpu.recording.file import convert_read_errors
from gpu.recording.recording import Recording
from gpu.stepping.derived_data import DerivedData, derive_data
from gpu.stepping.explanation.sentences import explain
from gpu.stepping.memory_demand import estimate_minimum_bytes
from gpu.stepping.moment.traffic import traffic_at

MAX_BYTES = 2**30
"""Memory limit for a small file, in bytes; this process itself uses a third of it."""

MAX_CPU_S = 10
"""CPU time limit for a small file, in seconds."""

MEMORY_BYTES_PER_FILE_BYTE, FILE_BYTES_PER_CPU_S = 256, 2**17
"""Bytes of memory per byte of a file, and bytes of a file per second: twice the need of large valid files."""

_SAMPLED_MOMENTS = 4


def inspect(data: bytes, name: str) -> None:
    """Open a recording, derive the same data as the window, and read some of its moments.

    Parameters
    ----------
    data : bytes
        The file's content.
    name : str
        The file's name in error messages.

    Raises
    ------
    InputError
        The file is damaged, is not a recording, has another version, or needs more memory than its size permits.
    """
    limit = MAX_BYTES + len(data) * MEMORY_BYTES_PER_FILE_BYTE
    # No valid recording contains a division by zero or an overflow, so a warning means that the file is damaged.
    with convert_read_errors(name, "recording"), warnings.catch_warnings(action="error"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_demand(sum(member.file_size for member in archive.infolist()), limit, name)
        recording = Recording.read(data, name)
        _check_demand(sum(estimate_minimum_bytes(launch.trace.data) for launch in recording.launches), limit, name)
        derived = derive_data(recording)
        for launch in derived.recording.launches:
            for array in launch.trace.arrays:
                launch.trace.memory.content(array, launch.count)
        for moment in range(
            0, derived.recording.event_count + 1, max(1, derived.recording.event_count // _SAMPLED_MOMENTS)
        ):
            _compute_moment(derived, moment)


def _check_demand(demand: int, limit: int, name: str) -> None:
    if demand > limit:
        raise InputError(
            f"{name} needs at least {demand / 2**30:.1f} GiB of memory; "
            f"the limit for a file of its size is {limit / 2**30:.1f} GiB.",
            advice="Record a smaller input, or fewer threads.",
        )


def _compute_moment(derived: DerivedData, moment: int) -> None:
    """Compute the data shown at a moment, except the pictures."""
    if not derived.recording.launches:
        return
    derived.lanes.lanes_at(moment).summary()
    derived.tally.counts_at(moment)
    if moment:
        traffic_at(derived.recording, moment - 1)
        explain(derived.recording, moment - 1, 0, 0)


def _limit_resources(size: int) -> None:
    """Limit the resources of this process for a file of a size in bytes; on Windows the parent process ends it."""
    lower_limit("RLIMIT_CORE", 0)
    lower_limit("RLIMIT_AS", MAX_BYTES + size * MEMORY_BYTES_PER_FILE_BYTE)
    lower_limit("RLIMIT_CPU", MAX_CPU_S + size // FILE_BYTES_PER_CPU_S)


def _main() -> None:
    """Read a line with the name and the size as JSON, then the file; write the error message and advice, if any."""
    line = sys.stdin.buffer.readline()
    if not line:
        return  # the parent process did not need it
    name, size = json.loads(line)
    _limit_resources(size)
    problem = ("", "")
    try:
        inspect(sys.stdin.buffer.read(size), name)
    except InputError as error:
        problem = (error.message, error.advice)
    print(json.dumps(problem))


if __name__ == "__main__":
    _main()
