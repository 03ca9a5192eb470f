"""Grading of a class's submissions: each in its own limited process, two at a time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.base.child_processes import ONE_THREAD, end_process, signal_name, start_python
from gpu.base.errors import InputError
from gpu.files.file_access import format_path
from gpu.files.source_lexer import blank_comments
from gpu.files.sources import read_source

MAX_PROCESSES = 2
_TIME_LIMIT_S = 90.0
"""Seconds of wall time after which a submission's process is killed: three times its CPU time limit."""

_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\n")
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(include\w*|import|embed)\b[ \t]*([^\n]*)", re.MULTILINE)
_HEADER = re.compile(r"<(?!/)(?!.*\.\.)[\w./]+>\s*")
_PROBE = re.compile(r"\b__has_(?:include|embed)\w*")

_ENDING_REASONS = {
    "SIGPROF": "Parsing the text, or a launch, exceeds the limit of CPU time: it does not end, or expands without end.",
    "SIGALRM": "Parsing the text exceeds the time limit: it does not end, or expands without end.",
    "SIGXCPU": "It exceeds the limit of 30 seconds of CPU time.",
    "SIGSEGV": "Clang crashed while parsing the text: it is nested too deep, or too long.",
    "SIGKILL": "It was killed: it exceeds the limit of 30 seconds or of 1 GB of memory.",
}


@dataclass(frozen=True)
class GradedSubmission:
    """Result of grading a submission.

    Parameters
    ----------
    name : str
        The file's name, with its folder if several students' files have the same name.
    accepted : bool
    words : str
        Short verdict.
    sentences : tuple of str
        Sentences for the student.
    judgment : dict
        `gpu.lessons.grading.Judgment` as JSON; empty if there is none.
    """

    name: str
    accepted: bool
    words: str
    sentences: tuple[str, ...] = ()
    judgment: dict[str, Any] = field(default_factory=dict)


def find_submissions(names: Sequence[str]) -> list[Path]:
    """Return the named .cu files and those in the named folders; raise InputError if there are none."""
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        paths += sorted(path.rglob("*.cu")) if path.is_dir() else [path]
    if not paths:
        raise InputError("There is no submission: name a .cu file, or a folder with .cu files.")
    return paths


def find_ignored_files(names: Sequence[str]) -> list[str]:
    """Return the files in the named folders that are ignored because their names do not end in .cu."""
    return [
        format_path(each.relative_to(folder).as_posix())
        for folder in map(Path, names)
        if folder.is_dir()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.suffix != ".cu" and not each.name.startswith(".")
    ]


def _choose_names(paths: Sequence[Path]) -> list[str]:
    """Return unique names of submissions: the file names, with folders if a file name occurs twice."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() for path in paths]
        with contextlib.suppress(ValueError):  # on several drives
            above = Path(os.path.commonpath([path.absolute().parent for path in paths]))
            names = [path.absolute().relative_to(above).as_posix() for path in paths]
    return [format_path(name) for name in names]


def grade_submissions(
    lesson: Path, task: str, submissions: Sequence[Path], *, seed: int = 0
) -> Iterator[GradedSubmission]:
    """Grade submissions, two at a time; yield the results in order.

    Parameters
    ----------
    lesson : Path
        The lesson's folder.
    task : str
        The task's name in it.
    submissions : sequence of Path
    seed : int
        Random seed of hidden inputs; the same seed gives the same verdicts.

    Raises
    ------
    InputError
        If the lesson has an error.
    """
    with ThreadPoolExecutor(MAX_PROCESSES) as pool:
        yield from pool.map(
            lambda path, name: _grade_file(lesson, task, path, name, seed), submissions, _choose_names(submissions)
        )


def _grade_file(lesson: Path, task: str, path: Path, name: str, seed: int) -> GradedSubmission:
    try:
        text = read_source(path)
    except InputError as error:
        return _reject_submission(name, "cannot be read", error.message)
    if reason := _find_forbidden_include(text):
        return _reject_submission(name, "has a forbidden include", reason)
    with tempfile.TemporaryDirectory(prefix="lockstep-grade-") as scratch:
        submission = {"lesson": str(lesson.resolve()), "task": task, "text": text, "seed": seed, "scratch": scratch}
        code, answer = _run_grading_process(json.dumps(submission) + "\n")
    if "error" in answer:
        raise InputError(f"{lesson.name}/{task}: {answer['error']}")
    if "memory" in answer:
        return _reject_submission(name, "needs too much memory", "It exceeds the limit of 1 GB of memory.")
    if "judgment" not in answer:
        ended = signal_name(code)
        reason = _ENDING_REASONS.get(ended, f"Its process ended without an answer ({ended or code}).")
        return _reject_submission(name, "was ended", reason)
    judgment = answer["judgment"]
    return GradedSubmission(
        name, judgment["accepted"], judgment["verdict"]["words"], tuple(answer["sentences"]), judgment
    )


def _reject_submission(name: str, verdict: str, reason: str) -> GradedSubmission:
    return GradedSubmission(name, False, f"✗ it {verdict}", (f"✗ It {verdict}.", reason))


def _run_grading_process(submission: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of a grading process, and its answer, empty if it was killed."""
    process = start_python("-m", "gpu.process.submission", environment=ONE_THREAD, own_session=True)
    output = b""
    with process:
        try:
            output, _ = process.communicate(submission.encode(), _TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_process(process)
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        answer = {}
    return process.returncode, answer


def _find_forbidden_include(text: str) -> str:
    """Return why a text must not be compiled here, or "": only CUDA's own headers may be included."""
    plain = blank_comments(_SPLICE.sub("", text))
    for match in _DIRECTIVE.finditer(plain):
        if match[1] != "include" or not _HEADER.fullmatch(match[2]):
            line = match[0].strip()[:80]
            return f"A submission may include only CUDA's headers, such as <cuda_runtime.h>: {line}"
    if probe := _PROBE.search(plain):
        return f"A submission must not test which files exist: {probe[0]}"
    return ""
