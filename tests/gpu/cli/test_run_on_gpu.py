"""What `run` says of times on a GPU, of which a pretended one stands in."""

from __future__ import annotations

import json

import pytest

from gpu import engines
from gpu.cli import main as cli
from gpu.patterns import all_patterns
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.gpu.fake_gpu import FakeGpu


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a reduction on a GPU of so few multiprocessors that its default stays small."""

    def call(*arguments: str, multiprocessors: int = 8) -> str:
        made = FakeGpu()
        made.device = made.device.__class__(**{**vars(made.device), "multiprocessors": multiprocessors})
        monkeypatch.setattr(engines, "create_engine", lambda *names: made)
        assert cli.main(["run", "reduction", "--variant", "atomic", "--block", "64", *arguments], NO_WINDOW) == 0
        return capsys.readouterr().out

    return call


def test_json_has_the_median_its_spread_and_its_gaps(run) -> None:
    report = json.loads(run("--n", "64", "--json"))
    timing = report["timing"]
    assert timing == {
        "median": 6.0, "min": 2.0, "max": 10.0, "repetitions": 9, "launches": 1, "gaps": 0.0, "launch": 0.25,
        "bound_by_launches": False, "comparable_from": 2**21,
    }  # fmt: skip
    assert report["time_ms"]["kernel"] == timing["median"]
    assert list(report["time_ms"]) == ["upload", "kernel", "download"]
    assert "counted" not in report


def test_text_says_how_it_was_timed_and_what_to_take_instead(run) -> None:
    text = run("--n", "64")
    assert "median of 9 warm runs, 2.00 to 10.0 ms" in text
    assert "Too small to fill this GPU" in text
    assert f"--n {2**21}, to compare variants" in text


def test_launches_that_bind_are_said(run, monkeypatch) -> None:
    monkeypatch.setattr(FakeGpu, "launch_ms", lambda self: 1.0)
    text = run("--n", "64")
    assert "Launch overhead: an empty launch would take 1 ms of these 6 ms." in text


def test_gaps_stand_apart(run) -> None:
    text = run("--n", "4096", "--variant", "grid-stride")
    assert "0.500 ms between its 2 launches, not counted above" in text


def test_the_default_grows_with_the_gpu_and_what_is_given_counts(run, monkeypatch) -> None:
    growing = all_patterns()["reduction"].device_sized_parameter
    assert growing is not None
    monkeypatch.setitem(vars(growing), "on_gpu", lambda multiprocessors: 32 * multiprocessors)
    assert "256 x int32" in run()
    assert "512 x int32" in run(multiprocessors=16)
    assert "100 x int32" in run("--n", "100")


def test_the_list_says_which_defaults_grow(capsys) -> None:
    assert cli.main(["list"], NO_WINDOW) == 0
    text = capsys.readouterr().out
    assert "(default 1048576, more on a GPU)" in text
    assert "(default 4096, more on a GPU)" in text
