"""A recording that somebody may have made to do harm is opened and played once where nothing depends on it.

`gpu.process.inspector` runs this in a process of its own, which is limited: python -m gpu.stepping.inspection.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
import zipfile

from gpu.errors import InputError
from gpu.simulator.trace.file import reading
from gpu.stepping.demand import least_bytes
from gpu.stepping.derived import Derived, derive
from gpu.stepping.explain import explain
from gpu.stepping.moment.traffic import traffic_at
from gpu.stepping.recording import Recording

MOST_BYTES = 2**30
"""Bytes of memory that a small file may take; this process itself has a third of them."""

MOST_S = 10
"""Seconds of the processor that a small file may take."""

BYTES_PER_BYTE, BYTES_PER_S = 256, 2**17
"""Bytes of memory for each byte of a file, and bytes of a file for each second: twice what large honest ones take."""

_MOMENTS = 4


def inspect(data: bytes, name: str) -> None:
    """Open a recording, derive from it what the window does, and look at some of its moments.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        What a sentence calls it.

    Raises
    ------
    InputError
        It is damaged, no recording, of another version, or takes more memory than a file of its size may.
    """
    most = MOST_BYTES + len(data) * BYTES_PER_BYTE
    # What divides by zero, or overflows, was never recorded.
    with reading(name, "recording"), warnings.catch_warnings(action="error"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_demand(sum(member.file_size for member in archive.infolist()), most, name)
        recording = Recording.read(data, name)
        _check_demand(sum(least_bytes(launch.trace.data) for launch in recording.launches), most, name)
        derived = derive(recording)
        for launch in derived.recording.launches:
            for array in launch.trace.arrays:
                launch.trace.memory.content(array, launch.count)
        for moment in range(0, derived.recording.moments + 1, max(1, derived.recording.moments // _MOMENTS)):
            _look(derived, moment)


def _check_demand(wanted: int, most: int, name: str) -> None:
    if wanted > most:
        raise InputError(
            f"{name} takes at least {wanted / 2**30:.1f} GiB of memory; one of its size may take {most / 2**30:.1f}.",
            advice="Record a smaller input, or fewer threads.",
        )


def _look(derived: Derived, moment: int) -> None:
    """Ask for what is shown beside the pictures of a moment."""
    if not derived.recording.launches:
        return
    derived.lanes.at(moment).summary()
    derived.tally.at(moment)
    if moment:
        traffic_at(derived.recording, moment - 1)
        explain(derived.recording, moment - 1, 0, 0)


def _limit(size: int) -> None:
    """Limit what this process may take for a file of so many bytes."""
    with contextlib.suppress(ImportError):  # on Windows only who started it can end it
        import resource

        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_AS: MOST_BYTES + size * BYTES_PER_BYTE,
            resource.RLIMIT_CPU: MOST_S + size // BYTES_PER_S,
        }
        for kind, most in wanted.items():
            hard = resource.getrlimit(kind)[1]
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _main() -> None:
    """Read a line with the name and the size as JSON, and the file; write the message and the advice, if any."""
    line = sys.stdin.buffer.readline()
    if not line:
        return  # it was not needed
    name, size = json.loads(line)
    _limit(size)
    problem = ("", "")
    try:
        inspect(sys.stdin.buffer.read(size), name)
    except InputError as error:
        problem = (error.message, error.advice)
    print(json.dumps(problem))


if __name__ == "__main__":
    _main()
