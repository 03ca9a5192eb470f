"""Every area is attacked a little with each run of the tests, and what attacks them finds what is broken."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import needs
from tools import fuzz
from tools.fuzz import CRASHED, HANG, MEMORY, PASSED, TRACEBACK, Batch, Tally

HOSTILE = "tests.tools.hostile_areas"
unix = needs.posix


@unix
@pytest.mark.parametrize("area", fuzz.list_areas())
def test_attacks_of_each_area_find_nothing(tmp_path, area):
    if area == "streams":
        needs.module("zarr", needs.DASK)
    attack = fuzz.load_attack(area)
    for number in range(getattr(sys.modules[attack.__module__], "IN_TESTS", 40)):
        folder = tmp_path / str(number)
        folder.mkdir()
        attack(fuzz.make_generator(area, 0, number), folder)


def attack_area(folder: Path, area: str, count: int = 3) -> Batch:
    # What is to be a hang is one soon; nothing else is one on a machine that is busy.
    return Batch(area, HOSTILE, 1, 0, count, folder, limit_s=0.3 if area in ("endless", "deaf", "waiting") else 60.0)


@unix
@pytest.mark.parametrize(
    ("area", "outcome"),
    [("broken", TRACEBACK), ("endless", HANG), ("greedy", MEMORY), ("sound", PASSED), ("waiting", PASSED)],
)
def test_what_came_of_an_attack_is_told(tmp_path, area, outcome):
    if area == "greedy" and sys.platform != "linux":
        needs.skip(needs.LINUX)
    count = 150 if area == "broken" else 3
    found = fuzz.run_batch(attack_area(tmp_path, area, count)).outcomes
    assert found.total() == count
    assert found[outcome] == count or (area == "broken" and 0 < found[outcome] < count)
    assert set(found) <= {outcome, PASSED}
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == count - found[PASSED]
    assert all("Traceback" in (each / "why.txt").read_text() for each in kept)
    if area == "broken":
        assert any((each / "x.npy").exists() for each in kept)


@unix
def test_a_crash_ends_a_batch_and_its_input_is_kept(tmp_path):
    found = fuzz.run_batch(attack_area(tmp_path, "crashing", 50)).outcomes
    assert found[CRASHED] == 1
    assert found[PASSED] == found.total() - 1 < 49
    (kept,) = tmp_path.iterdir()
    assert (kept / "input").read_text() == "x"
    assert "ended with -11" in (kept / "why.txt").read_text()


@unix
def test_what_hears_no_alarm_is_ended_from_outside(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "_GRACE_PERIOD_S", 3.0)
    assert fuzz.run_batch(attack_area(tmp_path, "deaf")).outcomes == {HANG: 1}


@unix
def test_areas_are_attacked_until_there_were_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "_BATCH", 5)
    tallies = fuzz.attack_areas(["sound"], 3, 12, 60, tmp_path, package=HOSTILE)
    assert 12 <= tallies["sound"].attack_count <= 25
    assert tallies["sound"].passed


def test_the_limit_counts_computing_time_and_no_area_takes_all_inputs(tmp_path, monkeypatch):
    counts, seconds = {"fast": 50, "slow": 1, "idle": 10}, {"fast": 1.0, "slow": 10.0, "idle": 0.0}
    monkeypatch.setattr(fuzz, "run_batch", lambda b: Tally(Counter({PASSED: counts[b.area]}), seconds[b.area]))
    tallies = fuzz.attack_areas(list(counts), 3, 1000, 35, tmp_path, jobs=1)
    found = {area: tally.attack_count for area, tally in tallies.items()}
    assert found["idle"] == 340, "a third of the inputs, although it takes no computing time"
    assert found["fast"] == 350
    assert found["slow"] == 3, "ten seconds each: 37 with those of the fast area are over the limit"


def test_an_attack_is_the_same_each_time():
    made = [
        fuzz.make_generator(area, seed, number).bytes(9)
        for area, seed, number in itertools.product("ab", (1, 2), (1, 2))
    ]
    assert len(set(made)) == 8
    assert made[0] == fuzz.make_generator("a", 1, 1).bytes(9)


def test_the_page_keeps_what_is_beside_its_section(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## Fuzzing: nothing\n\nold\n\n## Tests\n\nkept\n")
    tallies = {"cache": Tally(Counter({PASSED: 1234})), "command_lines": Tally(Counter({PASSED: 3, HANG: 1}))}
    fuzz.write_page(page, "a processor, 2 cores", "How.", tallies)
    text = page.read_text()
    assert text.startswith("# Page\n\n## Fuzzing: a processor, 2 cores, 2")
    assert text.endswith("\n\n## Tests\n\nkept\n")
    assert "old" not in text
    assert "| command lines | 4 | 3 | 0 | 1 | 0 | 0 |" in text
    assert "| **all** | **1,238** | **1,237** | **0** | **1** | **0** | **0** |" in text


def test_the_page_of_the_project_has_its_section():
    assert f"\n{fuzz._HEADING}: " in fuzz.PAGE.read_text("utf-8")
