from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from PyQt6.QtCore import QSize
from PyQt6.QtGui import QImage, QImageReader

from gpu.declaration.presentation import ArrayPresentation, BodiesPresentation, MatrixPresentation
from gpu.declaration.roles import Role
from gpu.patterns import all_patterns
from gui.driving.tour import run_tour
from gui.driving.window_session import SIZE
from gui.model.settings import SavedSettings

# One fixture goes through everything that there is.
pytestmark = pytest.mark.timeout(900)


SMALL_ENOUGH = {ArrayPresentation: 5000, MatrixPresentation: 100, BodiesPresentation: 500}


@pytest.fixture(scope="module")
def tour_pictures(tmp_path_factory, qapp):
    """A tour as of somebody who looks at small arrays: what is right of large ones the patterns' own tests say."""
    folder = tmp_path_factory.mktemp("tour") / "made"

    def small(_saved_settings, pattern):
        size = SMALL_ENOUGH.get(type(pattern.presentation))
        if size is None:
            return pattern.check({})
        rows = {parameter.name: size for parameter in pattern.parameters if parameter.unit == "rows"}
        return pattern.check({**rows, **pattern.params_for_role(Role.SIZE, size)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavedSettings, "params", small)
        return folder, run_tour(folder, "simulator", timeout_s=60)


STOPS = [
    (pattern.name, number, variant.name)
    for pattern in all_patterns().values()
    for number, variant in enumerate(pattern.variants, 1)
    if not variant.library
]


@pytest.mark.parametrize(("pattern", "number", "variant"), STOPS)
def test_every_variant_has_a_picture_and_a_right_result(tour_pictures, pattern, number, variant):
    folder, status = tour_pictures
    assert QImageReader(str(folder / f"{pattern}-{number}-{variant}.png")).size() == QSize(*SIZE)
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if (row["pattern"], row["variant"]) == (pattern, variant))
    lesson = all_patterns()[pattern].variant(variant).deliberate_error
    assert row["verdict"] == "verified" or lesson
    assert float(row["kernel_ms"]) > 0
    assert row["engine"] == "simulator"
    assert status == 0


def test_both_themes_of_every_pattern(tour_pictures):
    folder, _ = tour_pictures
    for name in [f"{name}{tab}" for name in all_patterns() for tab in ("", "-step")]:
        dark, light = (QImage(str(folder / f"{name}-{theme}.png")) for theme in ("dark", "light"))
        assert dark.pixelColor(3, 300).lightness() < 60 < 200 < light.pixelColor(3, 300).lightness()


def test_every_pattern_is_stepped_too(tour_pictures):
    folder, _ = tour_pictures
    for name in all_patterns():
        run, step = (QImage(str(folder / f"{name}{tab}-dark.png")) for tab in ("", "-step"))
        assert (step.width(), step.height()) == SIZE
        assert run != step


def test_the_table_for_people_has_every_row(tour_pictures):
    folder, _ = tour_pictures
    lines = (folder / "results.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("| ") for line in lines) == len(STOPS) + 1


@pytest.fixture
def one_pattern(monkeypatch):
    """A tour of one variant is enough to see what goes wrong."""
    histogram = all_patterns()["histogram"]
    variant = histogram.first_rung
    one_variant = replace(histogram, variants=(variant,), default_variant=variant.name)
    monkeypatch.setattr("gui.model.workbench.all_patterns", lambda: {"histogram": one_variant})


@pytest.mark.usefixtures("one_pattern")
def test_a_tour_with_wrong_results_says_so(tmp_path, qapp):
    assert run_tour(str(tmp_path), "null", timeout_s=30) == 1
    assert "WRONG" in (tmp_path / "results.csv").read_text()


@pytest.mark.usefixtures("one_pattern")
def test_a_tour_without_its_engine_says_so(tmp_path, qapp):
    assert run_tour(tmp_path, "tests.no_such:Engine", timeout_s=30) == 1
    assert "failed" in (tmp_path / "results.csv").read_text()
