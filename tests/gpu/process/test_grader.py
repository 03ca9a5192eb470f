"""Submissions of a class: each in a process of its own, which nothing that they do stalls, nor lets out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gpu.base.child_processes import start_python
from gpu.base.errors import InputError
from gpu.cli import main as cli
from gpu.lessons.lesson_reader import LIBRARY
from gpu.process import grader
from gpu.process.grader import grade_submissions
from gpu.process.submission_files import find_submissions
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.gpu.lessons.lesson_folder import KERNEL, SHOW, TASK, write_lesson

HEAD = "__global__ void add(const float *a, const float *b, float *c, int n) "
SUBMISSIONS = {
    "a-good.cu": KERNEL,
    "b-wrong.cu": KERNEL.replace("+ b[i]", "- b[i]"),
    "c-endless.cu": HEAD + "{ while (true) ; }",
    "d-giga.cu": HEAD + "{ int x[1 << 28]; for (int i = 0; i < n; ++i) x[i] = i; c[0] = x[n - 1]; }",
    "e-passwd.cu": '#include "/etc/passwd"\n' + HEAD + "{ }",
    "f-flood.cu": "#include <stdio.h>\n"
    + KERNEL.replace("if (i < n)", 'for (int k = 0; k < 99; ++k) printf("no judgment %d {}", k);\n    if (i < n)'),
    "g-template.cu": "template <int N> struct A { static const int v = A<N - 1>::v; };\n"
    + HEAD
    + "{ c[0] = A<9>::v; }",
}
SAID = {
    "a-good.cu": "✓ verified",
    "b-wrong.cu": "differs from reference",
    "c-endless.cu": "endless loop",
    "d-giga.cu": "cannot be run",
    "e-passwd.cu": "has a forbidden include",
    "f-flood.cu": "✓ verified",
    "g-template.cu": "does not compile",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grading")
    (folder / "adding").mkdir()
    write_lesson(folder / "adding", TASK)
    (folder / "class").mkdir()
    for name, text in SUBMISSIONS.items():
        (folder / "class" / name).write_text(text, "utf-8")
    return folder


def test_a_class_is_graded_and_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, report = folder / "table.csv", folder / "report.xml"
    task = f"{folder / 'adding'}/add"
    code = cli.main(
        ["grade", task, str(folder / "class"), "--json", "--csv", str(table), "--junit", str(report)], NO_WINDOW
    )
    told = json.loads(capsys.readouterr().out)
    assert code == 1
    assert told["accepted"] == 2
    words = {each["name"]: each["words"] for each in told["submissions"]}
    assert list(words) == list(SAID)
    for name, said in SAID.items():
        assert said in words[name], name
    cases = ElementTree.parse(report).getroot().findall("testcase")
    assert [(each.get("name"), each.find("failure") is None) for each in cases] == [
        (name, name in ("a-good.cu", "f-flood.cu")) for name in SAID
    ]
    assert table.read_text("utf-8").count("\n") == len(SAID) + 1


def test_a_submission_is_not_wrong_because_the_machine_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lesson(tmp_path, TASK)
    monkeypatch.setattr(grader, "_TIME_LIMIT_S", 0.01)
    (found,) = grader.grade_submissions(tmp_path, "add", [tmp_path / "add.cu"])
    assert not found.graded
    assert "0.01 s" in found.sentences[1]


def test_a_process_that_ends_before_it_reads_its_submission_does_not_end_the_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_and_end(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        process = start_python(*arguments, **options)
        process.kill()
        process.wait()
        return process

    write_lesson(tmp_path, TASK)
    monkeypatch.setattr(grader, "start_python", start_and_end)
    (found,) = grader.grade_submissions(tmp_path, "add", [tmp_path / "add.cu"])
    assert not found.accepted


def test_a_process_that_judges_opens_no_file_of_others(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", "utf-8")
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import sys; from pathlib import Path; from gpu.process.submission import _restrict_process\n"
                f"_restrict_process({str(tmp_path / 'scratch')!r}, [])\n"
                f"try: print(Path({str(secret)!r}).read_text())\n"
                "except PermissionError: print('refused')\n"
                "import socket\n"
                "try: socket.socket(); print('network')\n"
                "except PermissionError: print('refused')\n"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    from gpu.process.file_access import is_supported

    assert told.stdout.split() == (["refused", "refused"] if is_supported() else told.stdout.split())


@pytest.mark.parametrize(
    "text",
    [
        '#include "../adding/add.cu"',
        "#define F </etc/passwd>\n#include F",
        "%:include </etc/passwd>",
        "#inc\\\nlude <../x>",
        "#/* */include </etc/passwd>",
        "#include_next <stdio.h>",
        "#embed </etc/passwd>",
        "#if __has_include(</etc/passwd>)\n#endif",
    ],
)
def test_what_reaches_out_is_refused_unread(tmp_path: Path, text: str) -> None:
    write_lesson(tmp_path, TASK)
    path = tmp_path / "submission.cu"
    path.write_text(f"{text}\n{KERNEL}", "utf-8")
    (found,) = grade_submissions(tmp_path, "add", [path])
    assert not found.accepted
    assert "has a forbidden include" in found.words


def test_odd_names_of_files_are_told_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lesson(tmp_path, TASK)
    for name in (b"\xff.cu", b"a\nb.cu", b"\x1b[2J.cu"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text('#include "x.h"\n' + KERNEL)
    (tmp_path / "add.cu").unlink()
    lesson = tmp_path / "lesson"
    lesson.mkdir()
    write_lesson(lesson, TASK)
    submissions = [str(each) for each in tmp_path.glob("*.cu")]
    table, report = tmp_path / "table.csv", tmp_path / "report.xml"
    assert (
        cli.main(["grade", f"{lesson}/add", *submissions, "--csv", str(table), "--junit", str(report)], NO_WINDOW) == 1
    )
    told = capsys.readouterr().out
    told.encode()
    assert "\\udcff.cu" in told
    assert "\x1b" not in told
    assert table.read_text("utf-8").count("\n") == 4
    assert len(ElementTree.parse(report).getroot()) == 3


def test_a_folder_for_each_student_is_graded_and_what_is_no_submission_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "adding").mkdir()
    write_lesson(tmp_path / "adding", TASK)
    for student in ("anna", "ben"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "add.cu").write_text('#include "x.h"\n' + KERNEL, "utf-8")
    (tmp_path / "class" / "ben" / "add.cu.txt").write_text(KERNEL, "utf-8")
    assert cli.main(["grade", f"{tmp_path / 'adding'}/add", str(tmp_path / "class")], NO_WINDOW) == 1
    told = capsys.readouterr().out.split("\n")
    assert told[0] == "anna/add.cu: ✗ it has a forbidden include"
    assert [line for line in told if line.startswith("ben/")] == ["ben/add.cu: ✗ it has a forbidden include"]
    assert told[-2] == "Not graded: ben/add.cu.txt. The names do not end in .cu."
    assert "\n".join(told).count("has a forbidden include") == 2


def test_a_file_that_is_not_there_fails_alone(tmp_path: Path) -> None:
    write_lesson(tmp_path, TASK)
    (found,) = grade_submissions(tmp_path, "add", [tmp_path / "nobody.cu"])
    assert "cannot be read" in found.words
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="There is no submission"):
        find_submissions([str(tmp_path / "empty")])


def test_a_task_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    for task, said in (
        ("add", "LESSON/NAME"),
        ("99-nothing/add", "There is no lesson"),
        ("01-threads-and-indices", "is a lesson: give LESSON/NAME with the name of a task: add, grid-stride, mirror."),
        (f"{LIBRARY}/01-threads-and-indices/", "with the name of a task: add, grid-stride, mirror."),
        ("01-threads-and-indices/x", "has no task"),
    ):
        assert cli.main(["grade", task, "x.cu"], NO_WINDOW) == 2
        assert said in capsys.readouterr().err


def test_lessons_are_listed_and_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lessons"], NO_WINDOW) == 0
    assert "01-threads-and-indices: Threads and indices" in capsys.readouterr().out
    assert cli.main(["lessons", "--json"], NO_WINDOW) == 0
    assert json.loads(capsys.readouterr().out)["lessons"][0]["tasks"] == ["add", "grid-stride", "mirror"]
    assert cli.main(["lessons", "check", str(folder / "adding")], NO_WINDOW) == 0  # despite a warning
    printed = capsys.readouterr().out
    assert ", 1 task, " in printed
    assert "warning: adding/lesson.md:" in printed
    assert "8 instead of blockDim.x is accepted" in printed


def test_the_check_goes_on_after_an_unreadable_lesson_and_points_at_expressions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken", "wrong"):
        (tmp_path / name).mkdir()
        file = write_lesson(tmp_path / name, TASK, SHOW) / "lesson.md"
        before, after = ("order = 1", "order = [") if name == "broken" else ('"a + b"', '"a + d"')
        file.write_text(file.read_text("utf-8").replace(before, after), "utf-8")
    assert cli.main(["lessons", "check", str(tmp_path)], NO_WINDOW) == 1
    printed = capsys.readouterr().out
    assert "broken/lesson.md:4: Invalid TOML" in printed
    assert "wrong/lesson.md:12: add: 'a + d' has the unknown name 'd'; known names: a, b, n, trial." in printed
    assert "wrong: 2 steps, no questions, 1 task, no mistakes: 1 fault" in printed
