"""Process that grades one submission with all unneeded privileges dropped: run it by `python -m`.

It reads one line of JSON from its standard input, and writes one to its standard output.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu.base import resource_limits
from gpu.base.errors import EngineUnavailableError, InputError
from gpu.base.paths import ASSETS, ROOT
from gpu.files.source_lexer import blank_comments
from gpu.process.file_access import find_python_folders, restrict_file_access
from gpu.process.privileges import drop_privileges

if TYPE_CHECKING:
    from gpu.lessons.lesson import Lesson, Task

_REASON_LENGTH = 300
CPU_LIMIT_S = 30
"""Limit of a submission's CPU time."""

_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\n")
_DIRECTIVE = re.compile(r"^[ \t\v\f]*(?:#|%:|\?\?=)[ \t\v\f]*(include\w*|import|embed)\b[ \t]*([^\n]*)", re.MULTILINE)
_HEADER = re.compile(r"<(?!/)(?!.*\.\.)[\w./]+>\s*")
_PROBE = re.compile(r"\b__has_(?:include|embed)\w*")


def main() -> None:
    """Grade the submission described on standard input, within this process's limits."""
    # Other output to standard output is discarded: the answer uses a duplicate of it.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    submission = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    resource_limits.lower_limit("RLIMIT_CPU", CPU_LIMIT_S, CPU_LIMIT_S + 1)
    # Before the imports, which take much longer.
    if reason := find_forbidden_include(submission["text"]):
        answer: dict[str, Any] = {"forbidden": reason}
    else:
        answer = _grade_confined(submission)
    json.dump(answer, output)
    output.close()


def _grade_confined(submission: Mapping[str, Any]) -> dict[str, Any]:
    """Restrict this process, then return the answer for the submission."""
    import gpu.lessons.grading  # noqa: F401  # before files are restricted
    from gpu.hosts.program.host_compiler import find_compiler_paths
    from gpu.lessons.lesson_reader import preload_kernels, read_lesson
    from gpu.simulator.frontend.clang.parsing import confine_includes

    lesson = preload_kernels(read_lesson(Path(submission["lesson"])))
    task = lesson.task(submission["task"])
    compiler_paths: Iterable[Path] = ()
    if lesson.stage(task.stage).program is not None:
        with contextlib.suppress(EngineUnavailableError):  # the grader reports it
            compiler_paths = find_compiler_paths()
    _restrict_process(submission["scratch"], compiler_paths)
    confine_includes(Path(submission["scratch"]))
    with resource_limits.limit_resources(None):
        return _grade(lesson, task, submission["text"], submission["seed"])


def _grade(lesson: Lesson, task: Task, text: str, seed: int) -> dict[str, Any]:
    """Return the judgment; or the lesson's error, or how the grader failed."""
    from gpu.lessons.grading import grade_submission

    try:
        judgment = grade_submission(lesson, task, text, seed=seed)
        return {"judgment": _json_value(asdict(judgment)), "sentences": judgment.sentences}
    except InputError as error:
        return {"error": error.message}
    except MemoryError:
        return {"memory": True}
    except Exception as error:  # a defect of the grader must not count against the submission
        logging.getLogger(__name__).exception("The grader failed.")
        return {"failure": " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_LENGTH]}


def find_forbidden_include(text: str) -> str:
    """Return which include a submission may not have, or "": only CUDA's own headers exist for the grader.

    This is a message for students who include their own files; `confine_includes` is what protects files.
    """
    plain = blank_comments(_SPLICE.sub("", text))
    for match in _DIRECTIVE.finditer(plain):
        if match[1] != "include" or not _HEADER.fullmatch(match[2]):
            line = match[0].strip()[:80]
            return f"A submission may include only CUDA's headers, such as <cuda_runtime.h>: {line}"
    if probe := _PROBE.search(plain):
        return f"A submission must not test which files exist: {probe[0][:80]}"
    return ""


def _end_with_parent() -> None:
    """End this process when standard input closes, which happens however the grader ends."""
    os.read(0, 1)
    os._exit(1)


def _restrict_process(scratch: str, compiler_paths: Iterable[Path]) -> None:
    """Drop network access and access to most files; allow limits to end this process."""
    tempfile.tempdir = scratch
    drop_privileges()
    system_folders = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/proc/self", "/proc/meminfo",
                      "/dev/null", "/dev/urandom")  # fmt: skip
    system_paths = [Path(path) for path in system_folders]
    lockstep_paths = [ROOT / "gpu", ASSETS / "gpus"]
    restrict_file_access(
        [*system_paths, *find_python_folders(), *lockstep_paths, *compiler_paths], [Path(scratch), Path("/dev/null")]
    )
    resource_limits.allow_termination(counts_clock=False)


def _json_value(value: Any) -> Any:
    """Convert a value to strict JSON, without NaN."""
    if isinstance(value, dict):
        return {str(name): _json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    main()
