from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from PyQt6.QtCore import QPointF, QRectF, QSizeF

from gui.plots.label_placement import place_labels

ROOM = QRectF(0, 0, 600, 400)
SIZE = QSizeF(14, 12)


def spot(point):
    return QRectF(point - QPointF(5, 5), QSizeF(10, 10))


def test_a_point_alone_has_its_text_at_its_right():
    (place,) = place_labels([QPointF(100, 100)], [SIZE], [], ROOM)
    assert place.left() > 100
    assert place.center().y() == 100


@given(st.lists(st.tuples(st.integers(20, 400), st.integers(120, 280)), max_size=14))
def test_no_text_lies_on_a_point_or_on_another(places):
    points = [QPointF(*each) for each in places]
    taken = [spot(each) for each in points]
    found = place_labels([each + QPointF(5, 0) for each in points], [SIZE] * len(points), taken, ROOM)
    assert all(ROOM.contains(each) for each in found)
    assert not any(one.intersects(two) for one, two in combinations(found, 2))
    assert not any(text.intersects(point) for text in found for point in taken)


def test_points_in_one_place_have_their_texts_in_a_row():
    found = place_labels([QPointF(100, 100)] * 3, [SIZE] * 3, [], ROOM)
    assert not any(one.intersects(two) for one, two in combinations(found, 2))
    assert max(abs(each.center().y() - 100) for each in found) <= SIZE.height()


def test_where_nothing_is_free_a_text_stands_beside_its_point_all_the_same():
    (place,) = place_labels([QPointF(100, 100)], [SIZE], [ROOM], ROOM)
    assert place.contains(QPointF(110, 100))
