"""Each command of README, CONTRIBUTING and the handbook runs, or is at least one that Lockstep accepts.

A command runs with small sizes, in a folder with small files of the names that the pages use. Commands that measure
for minutes or need a cluster are only parsed. The window does not open: a stand-in takes its place.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.base.paths import ASSETS, DOCS, KERNELS, ROOT
from gpu.cli import main as cli
from gpu.hosts.program.host_compiler import find_compiler
from gpu.hosts.pycuda import driver
from tests import needs
from tests.command_server import CommandServer

LESSONS = ASSETS / "lessons"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]

RACE = "kernels/histogram.cu histogram_racy --grid 8 --block 128 --arg random:4096 --arg zeros:256 --arg 4096 --arg 256"
PLACEHOLDERS = {
    "FILE.cu KERNEL": RACE,
    "FILE.cu": "main.cu",
    "SCRIPT.py": "script.py",
    "TASK FILES...": "01-threads-and-indices/add submissions/",
    "ARGS...": "1 2",
    "PATHS...": "src",
    "PATTERN": "reduction",
    "IMAGE": "assets/images/night-sky.pgm",
    "COMMAND": "run",
    "HOST": "localhost",
    "NAME": "GPU",
    "FILE": "main.cu",
    "DIR": "pictures",
}
"""Examples of the words that stand for others on a page; a longer word precedes its parts."""
LARGEST = {"--bodies": 200, "--steps": 2, "--n": 4096}
"""Sizes that a test takes instead of larger ones."""

PROGRAM = """\
#include <cstdio>
__global__ void fill(int *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
    int *a, last;
    cudaMalloc(&a, 128);
    fill<<<1, 32>>>(a);
    cudaMemcpy(&last, a + 31, 4, cudaMemcpyDeviceToHost);
    return last != 31;
}
"""
KERNEL = """\
// lockstep: simulate fill --grid 1 --block 32 --arg zeros:32
__global__ void fill(int *values) { values[threadIdx.x] = 1; }
"""
SCRIPT = """\
import numpy
import pycuda.autoinit
import pycuda.gpuarray

def test_sum():
    assert pycuda.gpuarray.arange(4, dtype=numpy.int32).get().sum() == 6

test_sum()
"""

CUPY_SCRIPT = """\
import cupy

assert cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")(cupy.arange(4)) == 6
"""

NAMED = [["simulate"], ["program"], ["pycuda"], ["cupy"], ["model"], ["grade"], ["run"], ["tour"], ["check"]]
"""Commands that require arguments."""
OURS = re.compile(r"(?:\S*\bpython main\.py\b|lockstep(?![\w-])) *")
OTHERS = re.compile(
    r"(py|python3?) -m venv |\S*pip install |openssl |\S*python -m (distributed\.cli\.dask|gui|tools)[\w.]+"
)
"""Other programs, which the tests of the installation, of clusters, of pictures and of tools run."""
TARGETS = set(re.findall(r"[\w-]+", re.findall(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text("utf-8"))[0]))


def blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each indented or fenced block of a page, without indentation; joins continued lines."""
    lines: list[str] = []
    fenced = False
    for line in [*re.sub(r"\\\n *", "", text).splitlines(), "end"]:
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(line.strip())
        elif line and lines:
            yield lines
            lines = []


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a page: lines of blocks, and inline code that begins with our program or `make`."""
    for lines in blocks(text):
        is_shell = OURS.match(lines[0]) or OTHERS.match(lines[0]) or lines[0].startswith("make ")
        for line in filter(None, lines):
            if is_shell:
                # A comment follows after "#", a description after several spaces.
                yield re.split(r"\s{3,}|\s+# ", line)[0]
            elif found := re.search(r"\S*\bpython main\.py .*|\bmake (-C \S+ )?\w+$", line):
                yield found[0]
    prose = re.sub(r"^(```.*?^```|    .*?)$", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        command = " ".join(code.split())
        if OURS.match(command) or command.startswith("make "):
            yield command


def alternatives(command: str) -> Iterator[list[str]]:
    """Yield the arguments of `python main.py` for each choice that a command shows, with examples as placeholders."""
    text = OURS.sub("", command, count=1).replace(" [options]", "")
    for name, example in PLACEHOLDERS.items():
        text = re.sub(rf"(?<![\w./-]){re.escape(name)}(?![\w.])", example, text)
    parts = [
        ["", *part[1:-1].split("|")] if part.startswith("[") else [part] for part in re.split(r"(\[[^\]]*\])", text)
    ]
    for chosen in itertools.product(*parts):
        words = [
            word.split("|") if re.fullmatch(r"\w+(\|\w+)+", word) else [word] for word in shlex.split("".join(chosen))
        ]
        for each in map(list, itertools.product(*words)):
            # Where a page only names a command, as in "check it with `python main.py simulate`", it has no arguments.
            yield [*each, "--help"] if each in NAMED else each


COMMANDS = {command: page.name for page in PAGES for command in commands(page.read_text("utf-8"))}
"""Each command, and a page that shows it."""
ARGUMENTS = {shlex.join(words): words for command in COMMANDS if OURS.match(command) for words in alternatives(command)}


class Parsed(BaseException):
    """The arguments are accepted; raised instead of running the command."""


def accepts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether Lockstep's parser accepts arguments, or they name a file to open."""
    parse = argparse.ArgumentParser.parse_args

    def stop(*given: Any, **options: Any) -> None:
        parse(*given, **options)
        raise Parsed

    with monkeypatch.context() as patched:
        patched.setattr(argparse.ArgumentParser, "parse_args", stop)
        try:
            return cli.main(words, desktop()) == 0
        except Parsed:
            return True
        except SystemExit as ended:  # of --help
            return not ended.code


def desktop() -> cli.Desktop:
    return cli.Desktop(
        open_window=lambda *given: 0, run_tour=lambda folder: 0, measure_actions=lambda page, repetitions: 0
    )


def reason_to_parse_only(words: list[str]) -> str:
    """Return why a test does not run a command; "" if it does."""
    if words[0] == "bench" and "--show" not in words and words[1:] != ["window"]:
        return "measures for minutes"
    if words[0] == "grade" and words != next(each for each in ARGUMENTS.values() if each[:2] == words[:2]):
        return "another command grades this task"
    return "needs a cluster" if "dask" in words else ""


def solution(task: str, folder: Path) -> Path:
    """Return the kernel file of a task's solution."""
    lesson, _, name = task.rpartition("/")
    return (folder if (folder / lesson).is_dir() else LESSONS) / lesson / f"{name}.cu"


def write_files(folder: Path, words: list[str]) -> None:
    """Write the files that a command reads: images, kernels, programs, the lesson of the guide, and submissions."""
    shutil.copytree(KERNELS, folder / "kernels")
    for image in ("cat.png", "night-sky.pgm"):
        target = folder / "assets" / "images" / image
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ASSETS / "images" / image, target)
    script = CUPY_SCRIPT if words[:1] == ["cupy"] else SCRIPT
    for name, text in (("main.cu", PROGRAM), ("script.py", script), ("test_mine.py", SCRIPT)):
        if name in words:
            (folder / name).write_text(text)
    if words[:1] == ["check"]:
        (folder / "src").mkdir()
        (folder / "tests").mkdir()
        (folder / "src" / "main.cu").write_text(PROGRAM)
        (folder / "tests" / "kernels.cu").write_text(KERNEL)
        (folder / "lockstep-baseline.json").write_text('{"version": 1, "findings": []}')
    for word in words:
        if word.endswith(".sequence"):  # the window's stand-in takes any file
            (folder / word).touch()
    lesson = folder / "my-lessons" / "turning"
    lesson.mkdir(parents=True)
    guide = (DOCS / "lessons.md").read_text("utf-8")
    for name, begin in (("lesson.md", "    +++\n"), ("reverse.cu", "    __global__ void reverse")):
        shown = re.match(r"(?: {4}.*\n|\n)+", guide[guide.index(begin) :])
        assert shown is not None
        (lesson / name).write_text(textwrap.dedent(shown[0]), "utf-8")
    if words[:1] == ["grade"]:
        for word in words[2 : next((at for at, word in enumerate(words) if word.startswith("--")), None)]:
            target = folder / word.replace("*", "mine")
            (target if word.endswith("/") else target.parent).mkdir(exist_ok=True)
            shutil.copy(solution(words[1], folder), target)


def run(words: list[str], server: CommandServer) -> int:
    """Run a command in the current folder; return its exit code."""
    if words[:1] in (["program"], ["pycuda"], ["cupy"]):  # these end with the exit code of a process of their own
        return server.run(words).returncode
    return cli.main(words, desktop())


@pytest.mark.parametrize("words", ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_command_of_a_page_runs(words, command_server, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "lockstep"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_files(folder, words)
    assert accepts(words, monkeypatch), capsys.readouterr().err
    if words and reason_to_parse_only(words):
        return
    if words[:1] == ["pycuda"] and driver.explain_unavailable():
        needs.skip(needs.PYCUDA)
    if words[:1] == ["program"]:
        try:
            find_compiler()
        except EngineUnavailableError:
            needs.skip(needs.COMPILER)
    words = [
        str(min(int(word), LARGEST[last])) if last in LARGEST else word
        for last, word in itertools.pairwise(["", *words])
    ]
    words = [each for word in words for each in ([*map(str, Path().glob(word))] if word.startswith("*") else [word])]
    if words[:1] in (["run"], ["atomics"]) and "--help" not in words:
        words += ["--engine", "simulator"]
    finds_a_race = words[:1] == ["simulate"] and "histogram_racy" in words
    try:
        code = run(words, command_server)
    except SystemExit as ended:  # of --help
        code = int(ended.code or 0)
    assert code == finds_a_race, capsys.readouterr().err


@pytest.mark.parametrize("command", [command for command in COMMANDS if not OURS.match(command)])
def test_other_commands_exist(command):
    if not command.startswith("make "):
        assert OTHERS.match(command), f"{COMMANDS[command]}: what tests this command?"
        files = re.findall(r"-r (\S+)", command)
        assert [file for file in files if not (ROOT / file).is_file()] == []
        modules = re.findall(r"-m ((?:gui|tools)[\w.]+)", command)
        assert [module for module in modules if find_spec(module) is None] == []
        return
    words = shlex.split(re.sub(r"-C \S+ ", "", command))[1:]
    assert {word for word in words if "=" not in word} <= TARGETS


def test_the_commands_are_found():
    pages = {page.name for page in PAGES if [*commands(page.read_text("utf-8"))]}
    assert pages >= {"README.md", "CONTRIBUTING.md", "clusters.md", "lessons.md", "own-kernels.md", "without-a-gpu.md"}
    assert len(ARGUMENTS) > 40
    text = (
        "A `python main.py\nlist`.\n\n    python main.py run PATTERN   runs\n    make test  # all\n\n```\nmake x\n```\n"
    )
    assert [*commands(text)] == ["python main.py run PATTERN", "make test", "make x", "python main.py list"]
    assert [*alternatives("python main.py bench a|b [c|d e]")] == [
        ["bench", first, *rest] for rest in ([], ["c"], ["d", "e"]) for first in ("a", "b")
    ]


@pytest.mark.parametrize(
    "words", [["run", "reduction", "--elements", "9"], ["simulat", "a.cu"], ["bench", "--shown", "x"]]
)
def test_a_command_that_no_longer_parses_is_found(words, monkeypatch, capsys):
    assert not accepts(words, monkeypatch)
    assert capsys.readouterr().err
