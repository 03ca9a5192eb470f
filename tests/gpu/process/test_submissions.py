"""Attacks on the grader by submissions: links, includes, texts that stall a reader, and ends of processes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from gpu.base.errors import InputError
from gpu.base.paths import ROOT
from gpu.cli import main as cli
from gpu.cli.grade import format_csv, format_junit
from gpu.lessons.lesson_reader import read_lesson
from gpu.process import submission, submission_files
from gpu.process.grader import GradedSubmission, _read_answer, grade_submissions
from gpu.process.submission_files import find_submissions
from gpu.simulator.frontend.clang import parsing
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.gpu.lessons.lesson_folder import KERNEL, TASK, write_lesson

DOUBLED = "".join(f"#define A{number} A{number - 1} A{number - 1}\n" for number in range(1, 40))
GROWING = f"#define A0 c[0] = 1;\n{DOUBLED}__global__ void add(float *a, float *b, float *c, int n) {{ A38 }}\n"
"""A text that clang parses until its limit of CPU time, 5 s."""
SPELLINGS = (
    '#include "{}"', "#include <{}>", "\f#\vinclude\f<{}>", "%:include <{}>", "??=include <{}>", "#inc\\\nlude <{}>",
    "#\\ \ninclude <{}>", "#/* */include /* */ <{}>", 'const char *q = "/*";\n#include <{}>\n// */',
    "#include_next <{}>",
    "#import <{}>", "#embed <{}>", "#define F <{}>\n#include F", "#define S(x) #x\n#define T(x) S(x)\n#include T({})",
    "#if __has_include(<{}>)\n#define SECRET\n#endif", "#define H __has_include(<{}>)\n#if H\n#define SECRET\n#endif",
    "#if __has_embed(<{}>)\n#define SECRET\n#endif", "R\"(\n)\";\n#include <{}>",
    "#ifdef X\n#else\n# include <{}>\n#endif",
    '__device__ void f() {{ asm(".incbin \\"{}\\""); }}', "#pragma GCC dependency <{}>\n#include_next <{}>",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_an_include_reaches_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("#define SECRET\nvisible\n", "utf-8")
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(parsing, "_confinement", [])
    parsing.confine_includes(tmp_path / "scratch")
    text = f"{spelling.format(*[secret] * 2)}\n#ifdef SECRET\n#error visible\n#endif\n{KERNEL}"
    _, diagnoses = parsing.parse(text, tmp_path / "add.cu", {})
    assert not [each.excerpt for each in diagnoses if "visible" in each.message]


def test_headers_of_cuda_are_visible_to_submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_confinement", [])
    parsing.confine_includes(tmp_path)
    text = "#include <cuda_runtime.h>\n#include <cooperative_groups.h>\n#include <vector>\n" + KERNEL
    text = text.replace("int i =", "auto block = cooperative_groups::this_thread_block();\nint i = 0 * block.size() +")
    _, diagnoses = parsing.parse(text, tmp_path / "add.cu", {})
    assert not [each.excerpt for each in diagnoses if each.is_error]


@needs.linux
def test_links_are_not_followed(tmp_path: Path) -> None:
    lesson, folder, other = tmp_path / "adding", tmp_path / "class", tmp_path / "other"
    for each in (lesson, folder, other):
        each.mkdir()
    write_lesson(lesson, TASK)
    (other / "secret.cu").write_text("#error secret\n")
    (folder / "a.cu").symlink_to(lesson / "add.cu")
    (folder / "b.cu").symlink_to(other / "secret.cu")
    (folder / "c").symlink_to(other)
    paths = find_submissions([str(folder)]).paths
    assert [path.name for path in paths] == ["a.cu", "b.cu"]
    for graded in grade_submissions(lesson, "add", paths):
        assert not graded.accepted
        assert "cannot be read" in graded.words
        assert "is a symbolic link" in graded.sentences[1]
        assert "#error" not in "".join(graded.sentences)


def test_a_wrong_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", " "):
        with pytest.raises(InputError, match="is empty"):
            find_submissions([name])
    monkeypatch.setattr(submission_files, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(InputError, match="more than 3 files"):
        find_submissions([str(tmp_path)])


@pytest.mark.parametrize("piece", ["/* ", 'R"(', 'R"aaaaaaaaaaaaaaaaaaaaaaaaa', "\\ ", "'", "#include <a"])
def test_the_filter_of_includes_is_linear(piece: str) -> None:
    began = time.process_time()
    submission.find_forbidden_include(piece * (450_000 // len(piece)))
    assert time.process_time() - began < 5


def test_a_model_of_time_grades_in_the_restricted_process(tmp_path: Path) -> None:
    write_lesson(tmp_path, TASK + 'modeled = { gpu = "h200", n = 4096, times = 1.2 }\n')
    (graded,) = grade_submissions(tmp_path, "add", [tmp_path / "add.cu"])
    assert graded.accepted, graded.sentences
    assert graded.judgment["limits"]


def test_a_failure_of_the_grader_is_not_the_submissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    lesson = read_lesson(write_lesson(tmp_path, TASK))

    def fail(*arguments: Any, **options: Any) -> None:
        raise KeyError("x" * 999)

    monkeypatch.setattr("gpu.lessons.grading.grade_submission", fail)
    answer = submission._grade(lesson, lesson.task("add"), KERNEL, 0)
    caplog.clear()
    for graded in (_read_answer("a.cu", 0, answer), _read_answer("a.cu", 1, {})):
        assert not graded.accepted
        assert not graded.graded
        assert "Lockstep failed, not the submission" in graded.sentences[1]
        assert len(graded.sentences[1]) < 500
        assert "not graded" in format_csv([graded])
        report = format_junit("a/b", [graded])
        assert 'failures="0" errors="1"' in report
        assert "<error " in report


@pytest.mark.parametrize(
    "name",
    ["=1.cu", " =1.cu", "\t+1.cu", "＝1.cu", " ＋1.cu", "－1.cu", "＠a.cu", "a;=1.cu", "a; -1.cu", "a\n@x.cu",
     "a|=1.cu", "\ufeff=1.cu", "a;\u200b=1.cu", "\x00=1.cu", "\xad-1.cu", "﹦1.cu", "⁺1.cu", ";" * 50_000 + "=1"],
)  # fmt: skip
def test_no_cell_is_a_formula(name: str) -> None:
    (_, row) = csv.reader(io.StringIO(format_csv([GradedSubmission(name, True, "✓ verified")])))
    for cell in row[0].replace("\n", ";").replace("|", ";").split(";"):
        visible = "".join(each for each in cell if unicodedata.category(each)[0] not in "CZ")
        assert unicodedata.normalize("NFKC", visible)[:1] not in set("=+-@")
    assert row[0].replace("'", "") == name


def test_the_seed_is_secret_unless_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lesson(tmp_path, TASK)
    seeds = []
    for options in ([], [], ["--seed", "7"]):
        cli.main(["grade", f"{tmp_path}/add", str(tmp_path / "none.cu"), "--json", *options], NO_WINDOW)
        seeds.append(json.loads(capsys.readouterr().out)["seed"])
    assert seeds[0] != seeds[1]
    assert seeds[2] == 7
    cli.main(["grade", f"{tmp_path}/add", str(tmp_path / "none.cu"), "--seed", "7"], NO_WINDOW)
    assert "--seed 7 gives the same verdicts" in capsys.readouterr().out


def _find_graders(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent and b"gpu.process.submission" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@needs.linux
@pytest.mark.alone
@pytest.mark.parametrize("end", ["SIGINT", "SIGKILL"])
def test_ending_the_command_keeps_what_was_graded_and_leaves_no_process(tmp_path: Path, end: str) -> None:
    (tmp_path / "adding").mkdir()
    (tmp_path / "class").mkdir()
    write_lesson(tmp_path / "adding", TASK)
    for name in "bcdefghijk":
        (tmp_path / "class" / f"{name}.cu").write_text(GROWING)
    (tmp_path / "class" / "a.cu").write_text(KERNEL)
    table = tmp_path / "marks.csv"
    command = ["main.py", "grade", f"{tmp_path}/adding/add", str(tmp_path / "class"), "--csv", str(table)]
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a.cu: accepted\n"
        graders = _find_graders(process.pid)
        assert graders
        began = time.monotonic()
        process.send_signal(signal.Signals[end])
        rest, _ = process.communicate(timeout=60)
        took = time.monotonic() - began
    assert took < 3
    if end == "SIGINT":
        assert process.returncode == cli.STOPPED
        assert "\n1 of " in f"\n{rest}"
    assert 2 <= table.read_text("utf-8").count("\n") < 12
    deadline = time.monotonic() + 3
    while any(map(_is_running, graders)) and time.monotonic() < deadline:
        os.sched_yield()
    assert not any(map(_is_running, graders))
