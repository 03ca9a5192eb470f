"""Process that grades one submission with all unneeded privileges dropped: run it by `python -m`.

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
"""Limit of a submission's CPU time."""

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Grade the submission described on standard input, within this process's limits."""
    # Other output to standard output is discarded: the answer uses a duplicate of it.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    submission = json.loads(sys.stdin.readline())
    from gpu.lessons.judging import judge
    from gpu.lessons.reading import preloaded, read_lesson

    lesson = preloaded(read_lesson(Path(submission["lesson"])))
    task = lesson.task(submission["task"])
    _drop_privileges(submission["scratch"])
    with bounds.bounded(None):
        try:
            judgment = judge(lesson, task, submission["text"], seed=submission["seed"])
            answer: dict[str, Any] = {"judgment": _json_value(asdict(judgment))}
            answer["sentences"] = judgment.sentences
        except InputError as error:
            answer = {"error": error.message}
        except MemoryError:
            answer = {"memory": True}
    json.dump(answer, output)
    output.close()


def _drop_privileges(scratch: str) -> None:
    """Drop network access and access to most files; set the limits of a submission's time and memory."""
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


def _json_value(value: Any) -> Any:
    """Convert a value to strict JSON, without NaN."""
    if isinstance(value, dict):
        return {str(name): _json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main()
