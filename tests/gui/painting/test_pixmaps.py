from __future__ import annotations

import gc

import pytest
from PyQt6.QtGui import QPixmap

from gui.painting.pixmaps import Pixmaps, PixmapStore

ONE = 10 * 10 * 4


def picture():
    return QPixmap(10, 10)


@pytest.fixture
def store(qapp):
    return PixmapStore(3 * ONE)


def test_what_was_unused_for_longest_goes_first(store):
    kept = Pixmaps(store)
    for key in "abc":
        kept.insert(key, picture())
    assert kept.find("a") is not None
    kept.insert("d", picture())
    assert [key in kept for key in "abcd"] == [True, False, True, True]
    assert store.bytes == 3 * ONE


def test_painters_share_the_room_and_not_the_keys(store):
    one, other = Pixmaps(store), Pixmaps(store)
    mine = one.insert("a", picture())
    assert other.find("a") is None
    for key in "abc":
        other.insert(key, picture())
    assert "a" not in one
    assert mine.width() == 10


def test_a_picture_is_painted_once_and_one_of_the_same_key_takes_its_place(store):
    kept, painted = Pixmaps(store), []
    for _ in range(2):
        kept.find_or_paint("a", lambda: painted.append(1) or picture())
    assert painted == [1]
    kept.insert("a", picture())
    assert (len(store), store.bytes) == (1, ONE)


@pytest.mark.usefixtures("only_new_garbage")
def test_pictures_go_with_their_painter_when_the_next_is_kept(store):
    kept, other = Pixmaps(store), Pixmaps(store)
    kept.insert("a", picture())
    del kept
    gc.collect()
    assert len(store) == 1, "whoever collects garbage may be another thread"
    other.insert("b", picture())
    assert (len(store), store.bytes) == (1, ONE)
    other.clear()
    assert (len(store), store.bytes) == (0, 0)


def test_a_picture_that_is_larger_than_all_room_is_painted_and_not_kept(store):
    large = Pixmaps(store).insert("a", QPixmap(100, 100))
    assert large.width() == 100
    assert (len(store), store.bytes) == (0, 0)
