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

from gpu.base import resource_limits
from gpu.base.errors import InputError
from gpu.base.paths import ASSETS, ROOT
from gpu.process.file_access import restrict_file_access
from gpu.process.privileges import drop_privileges

CPU_LIMIT_S = 30
"""Limit of a submission's CPU time."""


def main() -> None:
    """Grade the submission described on standard input, within this process's limits."""
    # Other output to standard output is discarded: the answer uses a duplicate of it.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    submission = json.loads(sys.stdin.readline())
    from gpu.lessons.grading import grade_submission
    from gpu.lessons.lesson_reader import preload_kernels, read_lesson

    lesson = preload_kernels(read_lesson(Path(submission["lesson"])))
    task = lesson.task(submission["task"])
    _restrict_process(submission["scratch"])
    with resource_limits.limit_resources(None):
        try:
            judgment = grade_submission(lesson, task, submission["text"], seed=submission["seed"])
            answer: dict[str, Any] = {"judgment": _json_value(asdict(judgment))}
            answer["sentences"] = judgment.sentences
        except InputError as error:
            answer = {"error": error.message}
        except MemoryError:
            answer = {"memory": True}
    json.dump(answer, output)
    output.close()


def _restrict_process(scratch: str) -> None:
    """Drop network access and access to most files; set the limits of a submission's time and memory."""
    tempfile.tempdir = scratch
    drop_privileges()
    system_folders = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/proc/self", "/dev/null", "/dev/urandom")
    system_paths = [Path(path) for path in system_folders]
    python_paths = [Path(path) for path in {sys.prefix, sys.base_prefix, sys.exec_prefix}]
    lockstep_paths = [ROOT / "gpu", ASSETS / "gpus"]
    restrict_file_access([*system_paths, *python_paths, *lockstep_paths], [Path(scratch), Path("/dev/null")])
    resource_limits.allow_termination()
    resource_limits.lower_limit("RLIMIT_CPU", CPU_LIMIT_S, CPU_LIMIT_S + 1)


def _json_value(value: Any) -> Any:
    """Convert a value to strict JSON, without NaN."""
    if isinstance(value, dict):
        return {str(name): _json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main()
