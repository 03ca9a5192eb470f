"""The page of bodies, driven by pointer and keys: the camera, files, films, what it says."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QPointF, Qt
from PyQt6.QtGui import QColor, QWheelEvent
from PyQt6.QtWidgets import QApplication, QFileDialog

from gpu.declaration.pattern import Progress
from gpu.messages.bodies import LoadBodies, SaveBodies
from gpu.messages.events import Failure
from gpu.messages.files import SaveArray
from gui.painting.theme import look
from gui.run_view.bodies.canvas import BodiesCanvas
from tests.gui.run_view.bodies.conftest import body_requests, wait_for_simulation

BODIES = "x,y,z,vx,vy,vz,m\n0,0,0,0,0,0,1\n1,0,0,0,1,0,0.5\n0,2,0,1,0,0,0.25\n"


def drag(qtbot, canvas, button, by, modifier=Qt.KeyboardModifier.NoModifier):
    middle = canvas.rect().center()
    qtbot.mousePress(canvas, button, modifier, middle)
    qtbot.mouseMove(canvas, middle + by)
    qtbot.mouseRelease(canvas, button, modifier, middle + by)


def turn_wheel(canvas, at, notches):
    event = QWheelEvent(
        QPointF(at), canvas.mapToGlobal(QPointF(at)), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, event)


# --- the camera


def test_a_left_drag_orbits_while_it_stands_still(qtbot, bodies):
    before, camera = len(body_requests(bodies)), body_requests(bodies)[-1].camera
    drag(qtbot, bodies.view.canvas, Qt.MouseButton.LeftButton, QPoint(60, 40))
    wait_for_simulation(qtbot, bodies)
    request = body_requests(bodies)[-1]
    assert len(body_requests(bodies)) > before
    assert request.steps == 0
    assert request.camera.yaw < camera.yaw
    assert request.camera.pitch > camera.pitch
    assert (request.camera.target, request.camera.distance) == (camera.target, camera.distance)


@pytest.mark.parametrize(
    ("button", "modifier"),
    [(Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier),
     (Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier)],
)  # fmt: skip
def test_a_right_drag_moves_the_scene(qtbot, bodies, button, modifier):
    camera = body_requests(bodies)[-1].camera
    drag(qtbot, bodies.view.canvas, button, QPoint(60, 40), modifier)
    wait_for_simulation(qtbot, bodies)
    moved = body_requests(bodies)[-1].camera
    assert moved.target != camera.target
    assert (moved.yaw, moved.pitch, moved.distance) == (camera.yaw, camera.pitch, camera.distance)


def test_the_wheel_zooms_and_a_double_click_goes_home(qtbot, bodies):
    canvas = bodies.view.canvas
    camera = body_requests(bodies)[-1].camera
    turn_wheel(canvas, QPoint(30, 30), 3)
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].camera.distance == pytest.approx(camera.distance / 1.15**3)
    assert body_requests(bodies)[-1].camera.target != camera.target
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.rect().center())
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].camera == camera


def test_keys_move_the_camera_and_play(qtbot, bodies):
    canvas = bodies.view.canvas
    assert canvas.hasFocus(), "keys work as soon as the page is shown"
    first = canvas.camera
    for key, modifier in (
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier),
        (Qt.Key.Key_Plus, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Minus, Qt.KeyboardModifier.NoModifier),
    ):
        before = canvas.camera
        qtbot.keyClick(canvas, key, modifier)
        assert canvas.camera != before
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    assert canvas.camera == first
    qtbot.keyClick(canvas, Qt.Key.Key_Period)
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.frame.figures.steps == 1
    qtbot.keyClick(canvas, Qt.Key.Key_Space)
    assert bodies.view.playing
    qtbot.waitUntil(lambda: bodies.view.frame.figures.steps > 3)
    qtbot.keyClick(canvas, Qt.Key.Key_Space)
    wait_for_simulation(qtbot, bodies)
    qtbot.keyClick(canvas, Qt.Key.Key_R)
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.frame.figures.steps == 0


def test_the_camera_stays_at_a_new_beginning_and_goes_home_for_other_bodies(qtbot, bodies):
    drag(qtbot, bodies.view.canvas, Qt.MouseButton.LeftButton, QPoint(60, 40))
    wait_for_simulation(qtbot, bodies)
    camera = bodies.view.canvas.camera
    bodies.view.controls.buttons["first"].click()
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.canvas.camera == camera
    bodies.page.form.change_values(preset="plummer")
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.canvas.camera != camera


def test_pictures_are_as_large_as_the_sky(qtbot, bodies):
    canvas = bodies.view.canvas
    request = body_requests(bodies)[-1]
    widths = {request.width for request in body_requests(bodies) if request.width}
    assert max(widths) <= canvas.width()
    bodies.resize(1000, 620)
    wait_for_simulation(qtbot, bodies)
    request = next(request for request in reversed(body_requests(bodies)) if request.width)
    assert (request.width, request.height) == (canvas.width() // 2 * 2, canvas.height() // 2 * 2)
    bodies.resize(2400, 1500)
    wait_for_simulation(qtbot, bodies)
    request = next(request for request in reversed(body_requests(bodies)) if request.width)
    assert request.width * request.height <= 960 * 540, "a CPU's time goes into the bodies"


def test_a_picture_of_its_size_is_shown_pixel_for_pixel(qtbot):
    canvas = BodiesCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(401, 301)
    picture = np.random.default_rng(1).integers(0, 256, (300, 400, 3), np.uint8)
    canvas.show_picture(picture)
    shown = canvas.grab().toImage()
    for x, y in ((200, 150), (60, 290), (399, 150), (200, 299)):
        assert shown.pixelColor(x, y).getRgb()[:3] == tuple(picture[y, x])
    canvas.show_picture(np.full((100, 200, 3), 200, np.uint8))
    shown = canvas.grab().toImage()
    assert [shown.pixelColor(200, y).lightness() > 100 for y in (40, 60, 240, 260)] == [False, True, True, False]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_sky_is_dark_in_both_themes(qtbot, bodies, theme):
    bodies.appearance.set_theme(theme)
    wait_for_simulation(qtbot, bodies)
    picture = bodies.view.canvas.grab().toImage()
    assert picture.pixelColor(picture.width() // 2, picture.height() // 2).lightness() < 20


# --- files


def test_a_file_of_bodies_is_what_it_begins_with(qtbot, bodies, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text(BODIES)
    number = body_requests(bodies)[-1].simulation
    bodies.files.open_file(path)
    wait_for_simulation(qtbot, bodies)
    request = body_requests(bodies)[-1]
    assert request.simulation != number
    assert request.bodies.open()[:, 6].tolist() == [1.0, 0.5, 0.25]
    assert bodies.view.description.toolTip() == "three.csv"
    assert "3 bodies" in bodies.view.canvas.right_text
    bodies.view.controls.buttons["first"].click()
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].bodies is not None, "its beginning is the file's"
    bodies.page.form.change_values(preset="cube")
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].bodies is None
    assert bodies.view.files.source_path is None


def test_a_bad_file_names_its_line_and_all_stays(qtbot, bodies, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(BODIES + "1,2,three,4,5,6,7\n")
    number = bodies.view.simulation.number
    bodies.files.open_file(path)
    wait_for_simulation(qtbot, bodies)
    assert bodies.banner.isVisible()
    assert "5" in bodies.banner.message.text()
    assert "bad.csv" in bodies.banner.message.text()
    assert bodies.view.simulation.number == number
    assert bodies.view.files.source_path is None


def test_tipsy_opens_the_page_of_bodies(qtbot, bodies, tmp_path):
    bodies.choose_pattern("scan")
    bodies.files.open_file(tmp_path / "none.tipsy")
    wait_for_simulation(qtbot, bodies)
    assert bodies.page.bodies is bodies.view
    assert any(isinstance(request, LoadBodies) for request in bodies.host.requests)
    assert "none.tipsy" in bodies.banner.message.text()


def test_numbers_and_images_still_open_elsewhere(qtbot, bodies, tmp_path, gray):
    bodies.files.open_file(gray)
    wait_for_simulation(qtbot, bodies)
    assert bodies.page.pattern.is_image_pattern


def test_an_own_file_outlives_the_engine(qtbot, bodies, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text(BODIES)
    bodies.files.open_file(path)
    wait_for_simulation(qtbot, bodies)
    bodies.set_engine("simulator")
    bodies.host = type(bodies.host).instances[-1]
    qtbot.waitUntil(lambda: bodies.view.frame is not None and len(body_requests(bodies)) > 0)
    assert body_requests(bodies)[-1].bodies.open()[:, 6].tolist() == [1.0, 0.5, 0.25]


def test_bodies_and_pictures_are_saved(qtbot, bodies, tmp_path, monkeypatch):
    names = iter([(str(tmp_path / "now"), "Tipsy (*.tipsy)"), (str(tmp_path / "sky.png"), "PNG image (*.png)")])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: next(names))
    bodies.window_actions.actions_by_name["save"].trigger()
    wait_for_simulation(qtbot, bodies)
    bodies.window_actions.actions_by_name["export"].trigger()
    wait_for_simulation(qtbot, bodies)
    saved = [request for request in bodies.host.requests if isinstance(request, SaveBodies | SaveArray)]
    assert saved[0] == SaveBodies(str(tmp_path / "now.tipsy"), bodies.view.simulation.number)
    assert saved[1].path == str(tmp_path / "sky.png")
    assert bodies.status.message_label.text() == "Saved sky.png"


def test_what_is_saved_while_another_file_waits_does_not_take_its_place(qtbot, bodies, tmp_path):
    bodies.host.answers_later = True
    bodies.view.controls.buttons["step"].click()
    for name in ("one.csv", "two.csv"):
        bodies.view.files.save(tmp_path / name)
    bodies.view.files.save_picture(tmp_path / "three.png")
    bodies.host.answers_later = False
    bodies.host.answer_all()
    wait_for_simulation(qtbot, bodies)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.csv", "three.png", "two.csv"]


def test_a_file_is_left_for_the_preset(qtbot, bodies, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text(BODIES)
    menu = bodies.view.controls.menu
    back = next(action for action in menu.actions() if action.text() == "Back to the preset")
    menu.aboutToShow.emit()
    assert not back.isEnabled()
    bodies.files.open_file(path)
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.canvas.left_text.startswith("three.csv")
    menu.aboutToShow.emit()
    assert back.isEnabled()
    back.trigger()
    wait_for_simulation(qtbot, bodies)
    assert body_requests(bodies)[-1].bodies is None
    assert bodies.view.canvas.left_text.startswith("t = 0")
    assert "three.csv" not in bodies.view.description.toolTip()


def test_what_cannot_be_saved_is_said(qtbot, bodies, tmp_path):
    result_of = bodies.host.result_of
    bodies.host.result_of = lambda request: (
        Failure("input", "There is no room.") if isinstance(request, SaveBodies) else result_of(request)
    )
    bodies.view.files.save(tmp_path / "now.csv")
    wait_for_simulation(qtbot, bodies)
    assert bodies.banner.message.text() == "There is no room."


# --- films


def test_a_film_has_every_frame_that_was_played(qtbot, bodies, tmp_path):
    from PIL import Image

    path = tmp_path / "film.gif"
    bodies.view.film_export.begin_film(path)
    assert bodies.view.playing
    assert bodies.view.controls.record.text() == "■ End film"
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps >= 6)
    bodies.view.simulation.play(False)
    wait_for_simulation(qtbot, bodies)
    steps = bodies.view.frame.figures.steps
    qtbot.mouseClick(bodies.view.controls.record, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bodies.status.message_label.text() == "Saved film.gif", timeout=20_000)
    assert bodies.view.controls.record.isEnabled()
    assert bodies.view.canvas.recording == ""
    with Image.open(path) as film:
        shades = []
        for number in range(film.n_frames):
            film.seek(number)
            shades.append(int(np.asarray(film.convert("L"))[20, 20]))
    # The pretended engine paints twelve times the number of steps as a shade of gray.
    assert [round(shade / 12) for shade in shades] == list(range(1, steps + 1))


def test_a_film_shows_as_many_steps_a_frame_as_were_chosen(qtbot, bodies, tmp_path):
    bodies.host.step_ms = 80.0
    bodies.view.controls.speed.setCurrentIndex(2)
    bodies.view.film_export.begin_film(tmp_path / "film.gif")
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps >= 15)
    assert all(request.steps == 5 for request in body_requests(bodies) if request.steps)
    qtbot.mouseClick(bodies.view.controls.record, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: body_requests(bodies)[-1].steps == 1)
    bodies.view.simulation.play(False)
    qtbot.waitUntil(lambda: bodies.status.message_label.text() == "Saved film.gif", timeout=20_000)


def test_a_film_that_cannot_be_written_is_said(qtbot, bodies, tmp_path):
    bodies.view.film_export.begin_film(tmp_path / "film.avi")
    assert "Cannot write film.avi" in bodies.banner.message.text()
    assert not bodies.view.film_export.recording
    bodies.view.film_export.begin_film(tmp_path / "none" / "film.gif")
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps >= 2)
    qtbot.keyClick(bodies, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: "film.gif: there is no folder" in bodies.banner.message.text(), timeout=20_000)
    assert not bodies.view.playing


def test_closing_the_window_gives_a_film_up(qtbot, bodies, tmp_path):
    bodies.view.film_export.begin_film(tmp_path / "film.mp4")
    qtbot.waitUntil(lambda: bodies.view.frame is not None and bodies.view.frame.figures.steps >= 2)
    bodies.close()
    assert list(tmp_path.glob("film*")) == []


# --- what it says


def test_what_the_pointer_does_is_said_until_it_has_been_tried(qtbot):
    def foot():
        shown = canvas.grab().toImage()
        return any(shown.pixelColor(x, y).lightness() > 60 for x in range(100, 300) for y in range(270, 300))

    canvas = BodiesCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(400, 300)
    canvas.show_picture(np.zeros((300, 400, 3), np.uint8))
    assert foot()
    drag(qtbot, canvas, Qt.MouseButton.LeftButton, QPoint(10, 0))
    assert not foot()


def test_it_says_what_is_going_on(qtbot, bodies):
    canvas = bodies.view.canvas
    assert canvas.left_text.startswith("t = 0 ")
    assert "frames/s" not in canvas.right_text
    bodies.view.controls.buttons["play"].click()
    qtbot.waitUntil(lambda: "frames/s" in canvas.right_text)
    assert bodies.view.controls.buttons["play"].accessibleName() == "Pause"
    assert "G interactions/s" in bodies.view.speed.toolTip()
    bodies.view.controls.buttons["play"].click()
    wait_for_simulation(qtbot, bodies)


def test_what_the_first_picture_waits_for_is_said(qtbot, bodies):
    view, host = bodies.view, bodies.host
    host.answers_later = True
    view.simulation.redraw()
    qtbot.waitUntil(lambda: bool(host.pending))
    (number,) = host.pending
    host.deliver(number, Progress(None, "compiling k"))
    qtbot.waitUntil(lambda: bodies.status.message_label.text() == "Compiling k…")
    assert not view.note or not view.note.isVisible(), "there is a picture to look at"
    view.canvas._image = None
    host.deliver(number, Progress(None, "compiling l"))
    qtbot.waitUntil(lambda: view.note is not None and view.note.text() == "Compiling l…")
    assert view.note.isVisible()
    host.answers_later = False
    host.answer_all()
    qtbot.waitUntil(lambda: not view.note.isVisible())
    assert bodies.status.message_label.text() == "", "it has been compiled"
    bodies.status.show_message("Saved bodies.csv")
    view.simulation.redraw()
    wait_for_simulation(qtbot, bodies)
    assert bodies.status.message_label.text() == "Saved bodies.csv"


def test_the_kernel_is_shown_when_it_is_wanted(qtbot, bodies):
    assert bodies.view.side_panel.isVisible()
    assert not bodies.page.source.isVisible()
    qtbot.mouseClick(bodies.page.side_choice.buttons["Kernel"], Qt.MouseButton.LeftButton)
    assert bodies.page.source.isVisible()
    assert "verified" in bodies.page.numbers.verdict.text()


def test_presets_are_called_by_their_titles(bodies):
    box = bodies.page.form.fields["preset"].box
    titles = {preset.params["preset"]: preset.title for preset in bodies.page.pattern.presets}
    assert {box.itemData(row): box.itemText(row) for row in range(box.count())} == titles


def test_the_speed_of_other_bodies_is_not_left_standing(qtbot, bodies):
    bodies.view.controls.buttons["step"].click()
    wait_for_simulation(qtbot, bodies)
    assert "G interactions/s" in bodies.view.speed.toolTip()
    bodies.page.form.change_values(preset="plummer")
    wait_for_simulation(qtbot, bodies)
    assert bodies.view.speed.toolTip() == ""


def test_what_makes_a_run_that_ends_is_not_asked_for(bodies):
    assert set(bodies.page.form.fields) == {"preset", "bodies", "dt", "softening"}
    assert set(bodies.bench.settings["nbody"].params) > {"steps", "block"}


def test_plots_mark_where_the_kernel_changed(qtbot, bodies):
    view, window = bodies.view, bodies
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    assert not view.plots.kernel_changes, "the first kernel is no change"
    qtbot.keyClick(view.canvas, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: view.frame.figures.steps > 3)
    qtbot.keyClick(view.canvas, Qt.Key.Key_3)
    first = view.frame.figures.time
    qtbot.waitUntil(lambda: view.frame.figures.time > first + 0.02)
    qtbot.keyClick(view.canvas, Qt.Key.Key_4)
    qtbot.waitUntil(lambda: len(view.plots.kernel_changes) == 2)
    titles = [variant.title for variant in window.page.pattern.variants]
    (before, third), (after, fourth) = view.plots.kernel_changes
    assert (third, fourth) == (f"3 {titles[2]}", f"4 {titles[3]}")
    assert 0 < before <= first < after
    qtbot.waitUntil(lambda: view.plots._compute_time_span()[1] > 1.1 * after)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Space)
    wait_for_simulation(qtbot, window)
    picture = view.plots.grab().toImage()
    span_first, span_last = view.plots._compute_time_span()
    room = view.plots.width() - view.plots._axis_width - 1
    column = round(view.plots._axis_width + (after - span_first) / (span_last - span_first) * room)
    accent = QColor(look().theme.accent)
    near = [picture.pixelColor(x, y) for x in (column - 1, column, column + 1) for y in range(picture.height())]
    assert sum(abs(each.blue() - accent.blue()) < 60 and each.blue() > each.red() + 40 for each in near) > 60
    qtbot.keyClick(view.canvas, Qt.Key.Key_R)
    qtbot.waitUntil(lambda: not view.plots.kernel_changes)


@pytest.mark.parametrize("ask", ["toggle_film", "save_picture_as", "save_as"])
def test_time_stands_still_behind_a_question_for_a_name(qtbot, bodies, monkeypatch, ask):
    view, seen = bodies.view, []

    def name(*_):
        before = view.frame.figures.steps
        qtbot.wait(200)
        seen.append((view.playing, view.frame.figures.steps - before))
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(name))
    view.simulation.play(True)
    qtbot.waitUntil(lambda: view.frame.figures.steps > 3)
    (view.toggle_film if ask == "toggle_film" else getattr(view.files, ask))()
    assert len(seen) == 1
    assert not seen[0][0]
    assert seen[0][1] <= 2, "a frame may have been on its way"
    assert view.playing
    steps = view.frame.figures.steps
    qtbot.waitUntil(lambda: view.frame.figures.steps > steps)
    view.simulation.play(False)
    wait_for_simulation(qtbot, bodies)
