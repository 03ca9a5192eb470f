"""Where a command's words go, and names that are none: one line, whatever was typed and whoever reads."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from gpu.base.paths import ROOT
from gpu.cli import main as cli
from gpu.hosts.pycuda import driver
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW

unix = needs.full_device


def shell(line: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", line.replace("lockstep", f"{sys.executable} main.py")], cwd=ROOT, capture_output=True, text=True
    )
    return done.returncode, done.stderr


@unix
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("lockstep list >/dev/full", 2, "lockstep: Cannot write the output: no space left on device.\n"),
        ("lockstep list >&-", 0, ""),
        ("lockstep list --wrong 2>&-", 2, ""),
        ("lockstep list <&- | head -1", 0, ""),
        ("PYTHONSAFEPATH=1 lockstep list", 0, ""),
        ("lockstep pycuda -m nothing.there", 2, "lockstep: There is no module 'nothing.there'.\n"),
        ("set -o pipefail; lockstep list --json | true", 1, ""),
    ],
)
def test_where_nobody_can_listen(line, code, said):
    if "pycuda" in line and driver.explain_unavailable():
        needs.skip(needs.PYCUDA)
    assert shell(line) == (code, said)


def find_refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        code = cli.main(arguments, NO_WINDOW)
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    assert len(err) < 2100
    return err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "reduction", "--input", ""),
        ("run", "convolution", "--input", ""),
        ("run", "nbody", "--input", ""),
        ("atomics", "--input", ""),
        ("run", "reduction", "--n", "9", "--output", ""),
        ("run", "nbody", "--frames", ""),
        ("tour", ""),
        ("run", "reduction", "--engine", "dask", "--scheduler", ""),
        ("--engine", "dask", "--scheduler", ""),
        ("grade", "01-threads-and-indices/add", "x.cu", "--csv", ""),
    ],
    ids=" ".join,
)
def test_a_name_that_is_empty_is_not_the_same_as_none(capsys, arguments):
    assert "is empty: give a name" in find_refusal(capsys, *arguments)


@pytest.mark.parametrize("word", ["a\nb", "\x1b[2J\x1b[31mred", "\u202egnp", "\udcff\udcfe", "x" * 10_000])
def test_what_was_typed_breaks_no_line_and_colors_no_terminal(capsys, tmp_path, word):
    find_refusal(capsys, "run", "reduction", word)
    find_refusal(capsys, word)
    find_refusal(capsys, "run", "reduction", "--n", word)
    find_refusal(capsys, "run", "reduction", "--seed", word)
    find_refusal(capsys, "run", "reduction", "--input", word)
    find_refusal(capsys, "run", "reduction", "--n", "9", "--output", word)
    find_refusal(capsys, "run", "convolution", "--input", word)
    if len(word) < 200:
        (tmp_path / f"{word}.csv").write_text("not a number")
        find_refusal(capsys, "run", "reduction", "--input", str(tmp_path / f"{word}.csv"))


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300, "loop/x"])
def test_a_folder_that_cannot_be_made(capsys, tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    said = find_refusal(capsys, "run", "nbody", "--bodies", "9", "--steps", "1", "--frames", str(tmp_path / name))
    assert "Cannot create the folder " in said


def test_a_page_of_measurements_that_cannot_be_written(capsys, tmp_path):
    assert "is a folder" in find_refusal(capsys, "bench", "simulator", "--document", str(tmp_path))


@pytest.mark.parametrize("option", ["--grid", "--block", "--shared", "--max-steps", "--schedule", "--arg"])
def test_numbers_of_thousands_of_digits_are_no_numbers(capsys, tmp_path, option):
    (tmp_path / "k.cu").write_text("__global__ void k() {}")
    many = "9" * 5000
    value = {"--schedule": f"shuffle:{many}", "--arg": f"zeros:{many}"}.get(option, many)
    given = ["--grid", "1", "--block", "1"]
    said = find_refusal(capsys, "simulate", str(tmp_path / "k.cu"), "k", *given, option, value)
    assert "invalid" not in said


def test_letters_that_a_terminal_lacks_are_written_in_others(monkeypatch, tmp_path):
    (tmp_path / "x.cu").write_text('#include "y.h"')
    terminal = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, "ascii"))
    assert cli.main(["grade", "01-threads-and-indices/add", str(tmp_path / "x.cu")], NO_WINDOW) == 1
    assert b"\\u2717 it has a forbidden include" in terminal.getvalue()


def test_what_the_system_refuses_is_not_called_the_output(monkeypatch, capsys):
    def broken() -> None:
        raise OSError("no library llvm.\nThis could mean anything.")

    monkeypatch.setattr("gpu.base.devices.survey.list_device_statuses", broken)
    said = find_refusal(capsys, "devices")
    assert said == "lockstep: The operating system reports: no library llvm. this could mean anything.\n"


def test_lessons_whose_name_no_folder_can_have(capsys):
    assert "There is no lesson 'xxx" in find_refusal(capsys, "grade", f"{'x' * 5000}/add", "x.cu")


def test_more_options_than_anybody_means(capsys):
    said = find_refusal(capsys, "simulate", "k.cu", "k", *["--arg", "1"] * 6000)
    assert said == "lockstep: There are more than 5,000 options.\n"
