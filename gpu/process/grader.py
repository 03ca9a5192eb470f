"""A class's submissions, judged: each in a process of its own with limits, two at a time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.errors import InputError
from gpu.files.opening import name_of
from gpu.files.sources import read_source

AT_ONCE = 2
_CLOCK = 90.0
"""Seconds by the clock after which a submission's process is ended: three times what it may compute for."""

_ROOT = Path(__file__).resolve().parents[2]
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\n")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(include\w*|import|embed)\b[ \t]*([^\n]*)", re.MULTILINE)
_HEADER = re.compile(r"<(?!/)(?!.*\.\.)[\w./]+>\s*")
_ASKS = re.compile(r"\b__has_(?:include|embed)\w*")

_ENDED = {
    "SIGPROF": "Reading the text, or a launch, computes for longer than it may: it does not end, or grows without end.",
    "SIGALRM": "Reading the text takes too long: it does not end, or grows without end.",
    "SIGXCPU": "It computes for longer than the 30 seconds that a submission may.",
    "SIGSEGV": "Clang failed over the text: it is nested too deep, or too long.",
    "SIGKILL": "It was ended: it takes more than the 30 seconds or the 1 GB that a submission may.",
}


@dataclass(frozen=True)
class Graded:
    """A submission, graded.

    Parameters
    ----------
    name : str
        The file's; of files in folders of several students with the folder's.
    accepted : bool
    words : str
        The verdict in a few words.
    sentences : tuple of str
        What its student is told.
    judgment : dict
        `gpu.lessons.judging.Judgment` as JSON has it; empty where there is none.
    """

    name: str
    accepted: bool
    words: str
    sentences: tuple[str, ...] = ()
    judgment: dict[str, Any] = field(default_factory=dict)


def submitted(given: Sequence[str]) -> list[Path]:
    """Return the .cu files that are named, and those in the folders that are; InputError where there are none."""
    found: list[Path] = []
    for name in given:
        path = Path(name)
        found += sorted(path.rglob("*.cu")) if path.is_dir() else [path]
    if not found:
        raise InputError("There is no submission: a submission is a .cu file, or a folder with such files.")
    return found


def left_out(given: Sequence[str]) -> list[str]:
    """Return the files in folders that are named which are no submissions, as their names do not end in .cu."""
    return [
        name_of(each.relative_to(folder).as_posix())
        for folder in map(Path, given)
        if folder.is_dir()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.suffix != ".cu" and not each.name.startswith(".")
    ]


def _names(paths: Sequence[Path]) -> list[str]:
    """Return what submissions are called: their files' names or, where one is had twice, with their folders."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() for path in paths]
        with contextlib.suppress(ValueError):  # on several drives
            above = Path(os.path.commonpath([path.absolute().parent for path in paths]))
            names = [path.absolute().relative_to(above).as_posix() for path in paths]
    return [name_of(name) for name in names]


def grade(lesson: Path, task: str, submissions: Sequence[Path], *, seed: int = 0) -> Iterator[Graded]:
    """Judge submissions, two at a time; yield them in their order.

    Parameters
    ----------
    lesson : Path
        The lesson's folder.
    task : str
        The task's name in it.
    submissions : sequence of Path
    seed : int
        What hidden inputs grow from: the same one gives the same verdicts.

    Raises
    ------
    InputError
        The lesson is at fault.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(
            lambda path, name: _graded(lesson, task, path, name, seed), submissions, _names(submissions)
        )


def _graded(lesson: Path, task: str, path: Path, name: str, seed: int) -> Graded:
    try:
        text = read_source(path)
    except InputError as error:
        return _failed(name, "cannot be read", error.message)
    if reason := _reaches_out(text):
        return _failed(name, "includes what it may not", reason)
    with tempfile.TemporaryDirectory(prefix="lockstep-grade-") as scratch:
        wanted = {"lesson": str(lesson.resolve()), "task": task, "text": text, "seed": seed, "scratch": scratch}
        code, said = _judged(json.dumps(wanted) + "\n")
    if "error" in said:
        raise InputError(f"{lesson.name}/{task}: {said['error']}")
    if "memory" in said:
        return _failed(name, "takes too much memory", "It takes more than the 1 GB that a submission may.")
    if "judgment" not in said:
        ended = signal.Signals(-code).name if code < 0 else ""
        return _failed(name, "was ended", _ENDED.get(ended, f"Its process ended without an answer ({ended or code})."))
    judgment = said["judgment"]
    return Graded(name, judgment["accepted"], judgment["verdict"]["words"], tuple(said["sentences"]), judgment)


def _failed(name: str, words: str, sentence: str) -> Graded:
    return Graded(name, False, f"✗ it {words}", (f"✗ It {words}.", sentence))


def _judged(wanted: str) -> tuple[int, dict[str, Any]]:
    """Return a process's exit code, and what it said: nothing where it was ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu.process.submission"],
        cwd=_ROOT,
        # More threads only take more memory; the engine's own cache is nobody's business here.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        answer, _ = process.communicate(wanted, _CLOCK)
    except subprocess.TimeoutExpired:
        answer = ""
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            process.communicate()
    try:
        said: dict[str, Any] = json.loads(answer)
    except ValueError:
        said = {}
    return process.returncode, said


def _reaches_out(text: str) -> str:
    """Return why a text may not be read by a compiler here; "" where it may: it includes CUDA's own headers alone."""
    plain = _COMMENT.sub(" ", _SPLICE.sub("", text))
    for found in _DIRECTIVE.finditer(plain):
        if found[1] != "include" or not _HEADER.fullmatch(found[2]):
            line = found[0].strip()[:80]
            return f"A submission includes headers of CUDA, as in <cuda_runtime.h>, and no other file: {line}"
    if asks := _ASKS.search(plain):
        return f"A submission may not ask what files there are: {asks[0]}"
    return ""
