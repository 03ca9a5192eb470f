from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QPoint, QPointF, Qt
from PyQt6.QtGui import QImage, QWheelEvent
from PyQt6.QtWidgets import QApplication, QHBoxLayout, QWidget

from gui.painting.pyramid import Pyramid, halve_picture, to_qimage
from gui.run_view.image_pane import ImagePane


@pytest.fixture
def panes(qtbot):
    made = ImagePane("one"), ImagePane("two")
    made[1].link_to(made[0])
    holder = QWidget()
    qtbot.addWidget(holder)
    layout = QHBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    for pane in made:
        layout.addWidget(pane)
        pane.show_picture(np.zeros((300, 400, 3), np.uint8))
    holder.resize(800, 300)
    with qtbot.waitExposed(holder):
        holder.show()
    yield made
    del holder


def ranges(pane):
    return np.array(pane.box.viewRange())


def test_the_whole_image_is_shown_at_first(panes):
    assert np.allclose(ranges(panes[0]), [[0, 400], [0, 300]], atol=2)


def test_wheel_and_keys_zoom_both_panes(qtbot, panes):
    before = np.ptp(ranges(panes[0])[0])
    view = panes[0]._widget
    event = QWheelEvent(
        QPointF(200, 150), QPointF(view.viewport().mapToGlobal(QPoint(200, 150))), QPoint(), QPoint(0, 240),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)
    qtbot.waitUntil(lambda: np.ptp(ranges(panes[0])[0]) < before)
    assert np.allclose(ranges(panes[0]), ranges(panes[1]), atol=1e-6)
    zoomed = np.ptp(ranges(panes[0])[0])
    qtbot.keyClicks(panes[1], "+")
    qtbot.waitUntil(lambda: np.ptp(ranges(panes[0])[0]) < zoomed)
    qtbot.keyClicks(panes[0], "0")
    assert np.allclose(ranges(panes[1]), [[0, 400], [0, 300]], atol=2)


def test_keys_keep_the_framed_pixel_in_view(qtbot, panes):
    def shown(pixel):
        return all(low <= each and each + 1 <= high for each, (low, high) in zip(pixel, ranges(panes[0]), strict=True))

    for _ in range(5):
        qtbot.keyClick(panes[0], Qt.Key.Key_Up)
    qtbot.keyClicks(panes[0], 18 * "+")
    assert panes[0].item.framed_pixel == (200, 145)
    assert np.ptp(ranges(panes[0])[1]) < 6
    assert shown((200, 145))
    for _ in range(7):
        qtbot.keyClick(panes[0], Qt.Key.Key_Left)
    assert shown((193, 145))
    qtbot.keyClicks(panes[0], 10 * "+")  # one pixel fills the height of the pane
    assert sum(ranges(panes[0])[1]) / 2 == pytest.approx(145.5, abs=0.01)


def test_zoom_stays_when_the_result_changes_and_goes_with_another_size(qtbot, panes):
    qtbot.keyClicks(panes[0], "++")
    zoomed = ranges(panes[0])
    panes[0].show_picture(np.ones((300, 400, 3), np.uint8))
    assert np.allclose(ranges(panes[0]), zoomed)
    panes[0].show_picture(np.ones((30, 40), np.uint8))
    assert np.allclose(ranges(panes[0])[0], [0, 40], atol=1)


def test_pointer_reads_pixels(qtbot, panes):
    seen = []
    panes[0].hovered.connect(seen.append)
    viewport = panes[0]._widget.viewport()
    qtbot.mouseMove(viewport, QPoint(100, 50))
    qtbot.mouseMove(viewport, QPoint(101, 51))
    qtbot.waitUntil(lambda: bool(seen))
    assert np.allclose(seen[-1], (101, 51), atol=2)
    QApplication.sendEvent(viewport, QEvent(QEvent.Type.Leave))
    assert seen[-1] is None


def test_arrow_keys_move_the_pixel_frame_and_stop_at_the_edge(qtbot, panes):
    seen = []
    panes[0].show_picture(np.zeros((3, 3), np.uint8))
    panes[0].hovered.connect(seen.append)
    for _ in range(4):
        qtbot.keyClick(panes[0], Qt.Key.Key_Left)
    qtbot.keyClick(panes[0], Qt.Key.Key_Down)
    assert seen[0] == (0, 1)
    assert seen[-1] == (0, 2)
    assert panes[0].item.framed_pixel == (0, 2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (900, 1), (3, 2, 3), (1025, 777), (640, 513, 3)])
def test_any_shape_is_painted(qtbot, panes, shape):
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    panes[0].show_picture(picture)
    assert not panes[0].grab().isNull()


def test_what_is_painted_is_the_picture(qtbot, panes):
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 1] = (250, 10, 20)
    panes[0].show_picture(picture)
    image = panes[0].grab().toImage()
    color = image.pixelColor(275, 75)
    assert (color.red(), color.green(), color.blue()) == (250, 10, 20)
    assert image.pixelColor(125, 75).lightness() == 0


@pytest.mark.parametrize("shape", [(2, 2), (7, 5), (301, 4, 3), (600, 130)])
def test_halved_is_the_mean_of_four(shape):
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    rows, columns = shape[0] // 2, shape[1] // 2
    blocks = picture[: 2 * rows, : 2 * columns].astype(float).reshape(rows, 2, columns, 2, *shape[2:])
    assert np.abs(halve_picture(picture) - blocks.mean(axis=(1, 3))).max() <= 0.5


def test_a_pyramid_paints_the_copy_that_suits_the_zoom(qtbot):
    pyramid = Pyramid(np.zeros((2048, 1024), np.uint8))
    qtbot.waitUntil(lambda: len(pyramid._images) == 4)
    assert pyramid.level_for(2.0).height() == 2048
    assert pyramid.level_for(0.5).height() == 1024
    assert pyramid.level_for(0.3).height() == 1024
    assert pyramid.level_for(0.01).height() == 256


def test_a_qimage_sees_a_view_with_gaps():
    picture = np.arange(60, dtype=np.uint8).reshape(6, 10)
    image = to_qimage(picture[1:4, :7])
    assert (image.width(), image.height()) == (7, 3)
    assert image.pixelColor(6, 2).red() == picture[3, 6]


def grab_pane(pane):
    image = pane.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    memory = image.constBits().asarray(image.sizeInBytes())
    return np.asarray(memory).reshape(image.height(), image.bytesPerLine())[:, : image.width()].copy()


def find_written_pixels(pane, picture, values):
    """Return in which pixels of a picture something is painted because of the values."""
    pane.show_picture(picture)
    before = grab_pane(pane)
    pane.show_picture(picture, values)
    changed = grab_pane(pane) != before
    (left, right), (top, bottom) = pane.box.viewRange()
    ys, xs = np.nonzero(changed)
    columns = left + (right - left) * (xs + 0.5) / changed.shape[1]
    rows = top + (bottom - top) * (ys + 0.5) / changed.shape[0]
    return sorted({(int(x), int(y)) for x, y in zip(columns // 1, rows // 1, strict=True)})


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 3), (1, 1), (2, 7)])
def test_values_are_written_in_large_pixels(panes, shape):
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    written = find_written_pixels(panes[0], picture, picture)
    assert written == sorted((x, y) for y in range(shape[0]) for x in range(shape[1]))


@pytest.mark.parametrize(("level", "is_darker"), [(255, True), (0, False)])
def test_values_contrast_with_their_pixels(panes, level, is_darker):
    picture = np.full((3, 4), level, np.uint8)
    panes[0].show_picture(picture, picture)
    inside = grab_pane(panes[0])[20:280, 20:380].astype(int)
    assert abs(int(inside.min() if is_darker else inside.max()) - level) > 200


def test_no_values_are_written_where_they_do_not_fit(panes):
    picture = np.zeros((30, 40), np.uint8)
    assert find_written_pixels(panes[0], picture, np.full(picture.shape, 255)) == []
    few = np.zeros((6, 8), np.uint8)
    assert find_written_pixels(panes[0], few, np.full(few.shape, 12)) != []
    assert find_written_pixels(panes[0], few, np.full(few.shape, 123456789)) == []
    assert find_written_pixels(panes[0], few, np.full(few.shape, np.nan)) != []


def test_values_appear_when_a_large_picture_is_zoomed(qtbot, panes):
    picture = np.random.default_rng(0).integers(0, 256, (300, 400), np.uint8)
    assert find_written_pixels(panes[0], picture, picture) == []
    qtbot.keyClicks(panes[0], "+" * 16)
    panes[0].show_picture(picture)
    before = grab_pane(panes[0])
    panes[0].show_picture(picture, picture)
    assert (grab_pane(panes[0]) != before).any()
