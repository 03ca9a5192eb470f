from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PyQt6.QtGui import QFont, QFontMetricsF

from gpu.stepping.phases import Phase
from gpu.stepping.segments import Segment
from gui.painting.theme import code_font, look
from gui.step_view.time.name_places import place_names
from gui.step_view.time.timeline import Timeline, shorten_label
from tests.gui.window.tasks.desk import list_texts


@pytest.mark.parametrize(
    ("label", "characters", "shown"),
    [
        ("distance = 64", 13, "distance = 64"),
        ("distance = 64", 6, "64"),
        ("128", 3, "128"),
        ("key of digits", 9, "key of d…"),
        ("key of digits", 3, ""),
        ("load", 2, ""),
        ("0 …", 2, "0…"),
        ("", 1, ""),
    ],
)
def test_a_stretch_is_named_by_what_can_be_read_of_it(qapp, label, characters, shown):
    metric = QFontMetricsF(code_font(11))
    assert shorten_label(label, metric, characters * metric.horizontalAdvance("0") + 1) == shown


def empty_columns(picture, top, bottom):
    """Return the runs of columns, as pairs of their ends, in which nothing is painted between two heights."""
    image = picture.toImage()
    ground = image.pixel(0, bottom - 1)
    rows = range(top, bottom)
    empty = np.array([all(image.pixel(x, y) == ground for y in rows) for x in range(image.width())])
    borders = np.flatnonzero(np.diff(np.concatenate(([0], empty.astype(int), [0]))))
    return list(zip(borders[::2].tolist(), borders[1::2].tolist(), strict=True))


@pytest.mark.parametrize("what", ["phases", "kernels"])
def test_words_side_by_side_do_not_touch(qtbot, what):
    made = Timeline()
    qtbot.addWidget(made)
    font = QFont(made.font())
    font.setPixelSize(look().small_px)
    metric = QFontMetricsF(font)
    segments = [Segment(first, first + 10, "", number) for number, first in enumerate((0, 10, 20))]
    top = look().px(11) + look().px(26) + 7
    for width in range(160, 240):
        made.resize(width, 80)
        made.open(segments, (), ("a",) * 3)
        room = made.x_of(20) - made.x_of(10)
        # As long as fits into a stretch, and not a pixel longer.
        name = "m" * int((room - 6) / metric.horizontalAdvance("m"))
        if room - 6 - metric.horizontalAdvance(name) > 1 or len(name) < 3:
            continue
        if what == "phases":
            made.open(segments, (), ("",), [Phase(each.first, each.last, name, 0) for each in segments])
        else:
            made.open(segments, (), (name,) * 3)
        middle = made.x_of(10)
        gaps = empty_columns(made.grab(), top, made.height() - 2)
        assert any(end - start >= 8 for start, end in gaps if start < middle + 8 and end > middle - 8), width
        return
    pytest.fail("no width at which the words just fit")


def test_segments_are_named_alike(qtbot):
    made = Timeline()
    qtbot.addWidget(made)
    labels = ("load", "half = 1, stride = 1", "half = 2, stride = 2", "stride = 1")
    made.open([Segment(10 * k, 10 * k + 10, label, k) for k, label in enumerate(labels)], (), ("a",) * 4)
    metric = QFontMetricsF(code_font(11))
    for width, names in ((900, list(labels)), (300, ["load", "1", "2", "1"]), (900, list(labels))):
        made.resize(width, 80)
        made.grab()
        assert made.segment_names(metric) == names


def test_names_of_phases_are_whole_beyond_their_spans_or_all_shortened_to_their_numbers(qtbot):
    made = Timeline()
    qtbot.addWidget(made)
    made.resize(520, 80)
    segments = [Segment(first, first + 100, "", 0) for first in range(0, 600, 100)]
    between = [Phase(0, 300, "load", 0), Phase(300, 360, "add on the way", 0), Phase(360, 600, "fold", 0)]
    made.open(segments, (), ("",), between)
    assert made.x_of(360) - made.x_of(300) < QFontMetricsF(made.font()).horizontalAdvance("add on the way")
    assert made.shown_phase_names == ["load", "add on the way", "fold"]
    rounds = [Phase(30 * k, 30 * k + 30, f"round {k}", 0) for k in range(10)]
    made.open(segments, (), ("",), [*rounds, Phase(300, 600, "write 1", 0)])
    assert made.shown_phase_names == [*map(str, range(10)), "write 1"]
    made.show_moment(100)
    assert "round 3" in list_texts(made), "the current phase has its whole name"


def test_placed_names_are_apart_and_at_their_spans():
    spans = [(0.0, 10.0), (10.0, 100.0), (100.0, 104.0), (104.0, 106.0), (106.0, 200.0)]
    names = ["aaaa", "b", "cccc", "dddd", ""]
    places = place_names(names, spans, lambda name: 10.0 * len(name), (0.0, 200.0), 5.0)
    assert [place and place.text for place in places] == ["aaaa", "b", "cccc", None, None]
    shown = [place for place in places if place is not None]
    assert all(before.right + 5 <= after.left for before, after in pairwise(shown))
    assert all(place.left <= sum(span) / 2 <= place.right for place, span in zip(shown, spans, strict=False))
    assert shown[0].left == 0, "within the row"
