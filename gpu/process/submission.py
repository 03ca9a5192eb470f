"""One submission judged, in a process that has given up all that judging does not need: `python -m` this file.

It reads one line of JSON from its standard input, and writes one to its standard output.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu import bounds
from gpu.errors import InputError
from gpu.process.files import keep_to
from gpu.process.limits import confine

SECONDS = 30
"""Of computing that a submission may take."""

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Judge what standard input says, as far as this process may."""
    # What is printed by anything else goes nowhere: the answer has a way of its own.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    wanted = json.loads(sys.stdin.readline())
    from gpu.lessons.judging import judge
    from gpu.lessons.reading import preloaded, read_lesson

    lesson = preloaded(read_lesson(Path(wanted["lesson"])))
    task = lesson.task(wanted["task"])
    _give_up(wanted["scratch"])
    with bounds.bounded(None):
        try:
            said: dict[str, Any] = {"judgment": _plain(asdict(judgment := judge(lesson, task, wanted["text"],
                                                                               seed=wanted["seed"])))}  # fmt: skip
            said["sentences"] = judgment.sentences
        except InputError as error:
            said = {"error": error.message}
        except MemoryError:
            said = {"memory": True}
    json.dump(said, answer)
    answer.close()


def _give_up(scratch: str) -> None:
    """Give up the network, most files, and time and memory beyond what a submission may take."""
    tempfile.tempdir = scratch
    confine()
    system = [Path(path) for path in ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/proc/self", "/dev/null",
                                      "/dev/urandom")]  # fmt: skip
    python = [Path(path) for path in {sys.prefix, sys.base_prefix, sys.exec_prefix}]
    own = [_ROOT / "gpu", _ROOT / "assets" / "gpus"]
    keep_to([*system, *python, *own], [Path(scratch), Path("/dev/null")])
    bounds.allow_ending()
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def _plain(value: Any) -> Any:
    """Return a value as every reader of JSON takes it: no NaN."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main()
