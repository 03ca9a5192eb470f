"""Grading of a class's submissions: each in its own limited process, two at a time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Timer
from typing import Any

from gpu.base.child_processes import ONE_THREAD, end_process, signal_name, start_python
from gpu.base.errors import InputError
from gpu.files.sources import read_source
from gpu.process.submission_files import choose_names
from gpu.process.temporary_files import own_temporary_folder

MAX_PROCESSES = 2
_TIME_LIMIT_S = 300.0
"""Seconds of wall time after which a submission's process is killed: ten times its CPU time limit.

The submission is then not graded, as a process that has not reached its CPU time limit may lack a core."""

_ENDING_REASONS = {
    "SIGPROF": "Parsing the text, or a launch, exceeds the limit of CPU time: it does not end, or expands without end.",
    "SIGXCPU": "It exceeds the limit of 30 seconds of CPU time.",
    "SIGSEGV": "Clang crashed while parsing the text: it is nested too deep, or too long.",
    "SIGKILL": "It was killed: it exceeds the limit of 30 seconds of CPU time or of 1 GB of memory.",
}


@dataclass(frozen=True)
class GradedSubmission:
    """Result of grading a submission.

    Parameters
    ----------
    name : str
        The file's name, with its folder if several students' files have the same name.
    words : str
        Short verdict.
    sentences : tuple of str
        Sentences for the student.
    judgment : dict
        `gpu.lessons.grading.Judgment` as JSON; empty if there is none.
    graded : bool
        False if Lockstep failed to grade it, which says nothing about the submission.
    """

    name: str
    accepted: bool
    words: str
    sentences: tuple[str, ...] = ()
    judgment: dict[str, Any] = field(default_factory=dict)
    graded: bool = True


def grade_submissions(
    lesson: Path, task: str, submissions: Sequence[Path], *, seed: int = 0
) -> Generator[GradedSubmission, None, None]:
    """Grade submissions, two at a time; yield the results in order. Closing the iterator ends the processes.

    Parameters
    ----------
    lesson : Path
        The lesson's folder.
    submissions : sequence of Path
        The files; a symbolic link is not followed.
    seed : int
        Random seed of hidden inputs; the same seed gives the same verdicts.

    Raises
    ------
    InputError
        If the lesson has an error.
    """
    grader = _Grader(lesson, task, seed)
    with own_temporary_folder(), ThreadPoolExecutor(MAX_PROCESSES) as pool:
        try:
            yield from pool.map(grader.grade, submissions, choose_names(submissions))
        finally:
            grader.stop()
            pool.shutdown(cancel_futures=True)


class _Grader:
    """Grades the submissions of one task, each in a process."""

    def __init__(self, lesson: Path, task: str, seed: int) -> None:
        self._lesson, self._task, self._seed = lesson, task, seed
        self._lock = Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def stop(self) -> None:
        """End the processes, and start no other ones."""
        with self._lock:
            self._stopped = True
            for process in self._processes:
                end_process(process)

    def grade(self, path: Path, name: str) -> GradedSubmission:
        """Grade one file."""
        try:
            text = read_source(path, follows_links=False)
        except InputError as error:
            return _reject_submission(name, "cannot be read", error.message)
        with tempfile.TemporaryDirectory(prefix="lockstep-grade-") as scratch:
            lesson = str(self._lesson.resolve())
            submission = {"lesson": lesson, "task": self._task, "text": text, "seed": self._seed, "scratch": scratch}
            code, answer = self._run_process(json.dumps(submission) + "\n")
        if "error" in answer:
            raise InputError(f"{self._lesson.name}/{self._task}: {answer['error']}")
        return _read_answer(name, code, answer)

    def _run_process(self, submission: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code of a grading process, and its answer, empty if it was killed."""
        with self._lock:
            if self._stopped:
                return 0, {}
            process = start_python("-m", "gpu.process.submission", environment=ONE_THREAD, own_session=True)
            self._processes.add(process)
        is_late = Event()

        def end_late_process() -> None:
            is_late.set()
            end_process(process)

        timer = Timer(_TIME_LIMIT_S, end_late_process)
        timer.start()
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with contextlib.suppress(OSError):  # it was killed
                    # The pipe stays open: the process ends when it closes, however this process ends.
                    process.stdin.write(submission.encode())
                    process.stdin.flush()
                output = process.stdout.read()
            finally:
                timer.cancel()
                end_process(process, grace_s=1)
                with contextlib.suppress(OSError):  # closing writes what a process that was killed has not read
                    process.stdin.close()
                with self._lock:
                    self._processes.remove(process)
        try:
            answer: dict[str, Any] = json.loads(output)
        except ValueError:
            answer = {}
        if is_late.is_set() and not answer:
            answer = {"failure": f"it did not end within {_TIME_LIMIT_S:g} s, as it waits or this machine is busy"}
        return process.returncode, answer


def _read_answer(name: str, code: int, answer: dict[str, Any]) -> GradedSubmission:
    """Return a grading process's result, from its exit code and its answer."""
    if "forbidden" in answer:
        return _reject_submission(name, "has a forbidden include", answer["forbidden"])
    if "memory" in answer:
        return _reject_submission(name, "needs too much memory", "It exceeds the limit of 1 GB of memory.")
    ended = signal_name(code)
    if not answer and ended in _ENDING_REASONS:
        return _reject_submission(name, "was ended", _ENDING_REASONS[ended])
    if "judgment" not in answer:
        reason = answer.get("failure", f"its process ended without an answer ({ended or code})")
        sentence = (
            f"Lockstep failed, not the submission: {reason.rstrip('.')}. Grade it by hand, and please report this."
        )
        return GradedSubmission(name, False, "? not graded: Lockstep failed", ("? Not graded.", sentence), graded=False)
    judgment = answer["judgment"]
    return GradedSubmission(
        name, judgment["accepted"], judgment["verdict"]["words"], tuple(answer["sentences"]), judgment
    )


def _reject_submission(name: str, verdict: str, reason: str) -> GradedSubmission:
    return GradedSubmission(name, False, f"✗ it {verdict}", (f"✗ It {verdict}.", reason))
