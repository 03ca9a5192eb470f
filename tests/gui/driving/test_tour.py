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


def choose_representatives(pattern):
    """Return a pattern with its first and default variants, and one of each further kernel file.

    The tab of a pattern's lesson needs its variants: of such a pattern, all stay.
    """
    if pattern.lessons:
        return pattern
    chosen = {pattern.kernel_file_of(each.name): each.name for each in reversed(pattern.variants) if not each.library}
    names = {pattern.first_rung.name, pattern.default_variant, *chosen.values()}
    variants = [each for each in pattern.variants if each.name in names]
    presets = tuple(each for each in pattern.presets if each.variant in ("", *names))
    return replace(pattern, variants=tuple(replace(each, successor="") for each in variants), presets=presets)


REPRESENTATIVES = ("convolution", "histogram", "scan", "matmul", "nbody")
"""Patterns that have all kinds of presentation, and a pattern with lessons."""
PATTERNS = {
    "representatives": {name: choose_representatives(all_patterns()[name]) for name in REPRESENTATIVES},
    "all": all_patterns(),
}


@pytest.fixture(scope="module", params=["representatives", pytest.param("all", marks=pytest.mark.sweep)])
def tour_pictures(tmp_path_factory, qapp, request):
    """A tour as of somebody who looks at small arrays: what is right of large ones the patterns' own tests say."""
    folder = tmp_path_factory.mktemp("tour") / "made"
    patterns = PATTERNS[request.param]

    def small(_saved_settings, pattern):
        size = SMALL_ENOUGH.get(type(pattern.presentation))
        if size is None:
            return pattern.check({})
        rows = {parameter.name: size for parameter in pattern.parameters if parameter.unit == "rows"}
        return pattern.check({**rows, **pattern.params_for_role(Role.SIZE, size)})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavedSettings, "params", small)
        patch.setattr("gui.model.workbench.all_patterns", lambda: patterns)
        status = run_tour(folder, "simulator", timeout_s=60)
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        rows = {(row["pattern"], row["variant"]): row for row in csv.DictReader(file)}
    return folder, status, patterns, rows


def test_every_variant_has_a_picture_and_a_right_result(tour_pictures):
    folder, status, patterns, rows = tour_pictures
    for name, pattern in patterns.items():
        for number, variant in enumerate(pattern.variants, 1):
            if variant.library:
                continue
            picture = folder / f"{name}-{number}-{variant.name}.png"
            assert QImageReader(str(picture)).size() == QSize(*SIZE), picture.name
            row = rows[name, variant.name]
            assert row["verdict"] == "verified" or variant.deliberate_error, row
            assert float(row["kernel_ms"]) > 0, row
            assert row["engine"] == "simulator"
    assert status == 0


def test_both_themes_of_every_pattern(tour_pictures):
    folder, _, patterns, _ = tour_pictures
    for name in [f"{name}{tab}" for name in patterns for tab in ("", "-step")]:
        dark, light = (QImage(str(folder / f"{name}-{theme}.png")) for theme in ("dark", "light"))
        assert dark.pixelColor(3, 300).lightness() < 60 < 200 < light.pixelColor(3, 300).lightness()


def test_every_pattern_is_stepped_too(tour_pictures):
    folder, _, patterns, _ = tour_pictures
    for name in patterns:
        run, step = (QImage(str(folder / f"{name}{tab}-dark.png")) for tab in ("", "-step"))
        assert (step.width(), step.height()) == SIZE
        assert run != step


def test_the_table_for_people_has_every_row(tour_pictures):
    folder, _, patterns, rows = tour_pictures
    lines = (folder / "results.md").read_text(encoding="utf-8").splitlines()
    expected = sum(not variant.library for pattern in patterns.values() for variant in pattern.variants)
    assert sum(line.startswith("| ") for line in lines) == expected + 1 == len(rows) + 1


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
