"""The command `run nbody`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.cli import main as cli
from gpu.files import images
from gpu.patterns.nbody.files import read_bodies, write_bodies
from gpu.patterns.nbody.presets import generate
from tests.gpu.cli.no_desktop import NO_WINDOW

SMALL = ("--engine", "simulator", "--preset", "plummer", "--bodies", "40", "--softening", "0.1", "--dt", "0.01")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(("run", "nbody", *arguments), NO_WINDOW)
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run


def test_bodies_go_from_a_preset_through_steps_to_a_file(command: Any, tmp_path: Path) -> None:
    target = tmp_path / "final.csv"
    code, out, _ = command(*SMALL, "--steps", "3", "--output", str(target))
    assert code == 0
    table = {line[:14].strip(): line[14:] for line in out.splitlines()[1:]}
    assert table["input"] == "plummer, seed 0, 40 bodies"
    assert table["verified"] == "yes"
    assert table["steps"] == "3, to time 0.03"
    assert "GFLOP/s" in table["kernels"]
    assert table["drift"].endswith("of the initial energy")
    assert table["saved"] == str(target)
    bodies = read_bodies(target)
    first = generate("plummer", 40, 0)
    assert bodies.shape == first.shape
    moved = np.abs(bodies[:, :3] - first[:, :3]).max()
    assert 0 < moved < 0.2


def test_a_terminal_is_told_how_far_it_is(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(*SMALL, "--steps", "3")[2] == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code, out, err = command(*SMALL, "--steps", "3")
    assert code == 0
    assert [line.strip() for line in err.split("\r")] == ["step 1 of 3", "step 2 of 3", "", ""]
    assert "step 1" not in out


def test_json_has_the_figures_of_the_steps(command: Any) -> None:
    code, out, _ = command(*SMALL, "--steps", "2", "--json", "--variant", "naive", "--seed", "3")
    assert code == 0
    data = json.loads(out)
    assert data["verified"] is True
    assert data["variant"] == "naive"
    simulation = data["simulation"]
    assert (simulation["bodies"], simulation["steps"], simulation["time"]) == (40, 2, 0.02)
    assert simulation["conserved"]["total"] < 0
    assert abs(simulation["conserved"]["drift"]) < 1e-3


def test_a_file_goes_on_where_it_was(command: Any, tmp_path: Path) -> None:
    half, whole, both = (str(tmp_path / name) for name in ("half.csv", "whole.tipsy", "both.tipsy"))
    assert command(*SMALL, "--steps", "2", "--output", half)[0] == 0
    given = ("--engine", "simulator", "--softening", "0.1", "--dt", "0.01", "--input", half)
    code, out, _ = command(*given, "--steps", "2", "--output", both)
    assert code == 0
    assert "half.csv, 40 bodies" in out
    assert command(*SMALL, "--steps", "4", "--output", whole)[0] == 0
    np.testing.assert_array_equal(read_bodies(both), read_bodies(whole))


def test_frames_are_pictures_of_every_step(command: Any, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "frames"
    code, out, _ = command(*SMALL, "--steps", "2", "--frames", str(folder))
    assert code == 0
    assert str(folder) in out
    assert sorted(file.name for file in folder.iterdir()) == [f"frame-{step:06}.png" for step in range(3)]
    first, last = (images.read_image(folder / f"frame-{step:06}.png").pixels for step in (0, 2))
    assert first.shape == (720, 1280, 3)
    assert first.max() > 100
    assert (first != last).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bodies", "0"), "--bodies is a whole number from 1"),
        (("--preset", "moon"), "--preset is one of galaxies"),
        (("--preset", "solar", "--bodies", "9"), "--bodies has no effect with --preset solar"),
        (("--output", "final.txt"), "its suffix has to be one of .csv, .tipsy"),
        (("--output", "missing/final.csv"), "there is no folder missing"),
        (("--input", "missing.csv"), "There is no file missing.csv"),
        (("--input", "bad.csv"), "bad.csv, line 2: 2 numbers, but a body has seven"),
        (("--frames", "bad.csv"), "Cannot create the folder bad.csv: file exists"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("1,2,3,4,5,6,7\n1,2\n")
    code, out, complaint = command("--engine", "simulator", *arguments)
    assert code == 2
    assert message in complaint
    assert complaint.count("\n") == 1
    assert out == ""
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


def test_one_body_is_no_plural(command: Any, tmp_path: Path) -> None:
    write_bodies(tmp_path / "one.csv", generate("plummer", 1, 0))
    code, out, _ = command("--engine", "simulator", "--input", str(tmp_path / "one.csv"), "--steps", "1")
    assert code == 0
    assert "one.csv, 1 body\n" in out
