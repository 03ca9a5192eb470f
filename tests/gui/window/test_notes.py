"""What the window says once when it opens: of settings, and of the cache, that cannot be used."""

from __future__ import annotations

import json
from queue import Queue

import pytest

from gpu.messages.events import Ready
from gpu.process.engine_host import EngineHost
from gpu.simulator.disk import find_problem
from gui.model.settings import SavedSettings
from tests.gui.conftest import DEVICE, FakeHost, wait_until_idle


@pytest.fixture
def open_window(qtbot, make_window, store, gray):
    def open_page():
        window = make_window(saved_settings=SavedSettings(store))
        window.load_first_input(gray)
        wait_until_idle(qtbot, window)
        return window

    return open_page


def test_the_window_opens_on_damaged_settings_and_says_so_once(qtbot, open_window, store, color):
    store.write_text('{"image": ' + "[" * 100_000)
    window = open_window()
    assert window.banner.isVisible()
    assert "Cannot read" in window.banner.message.text()
    assert "settings-unreadable-1.json" in window.banner.message.text()
    assert window.appearance is not None
    assert window.saved_settings.theme == "dark"
    window.bench.open_image(color)
    wait_until_idle(qtbot, window)
    assert window.bench.image.path == color
    assert not window.banner.isVisible()


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 2500, "/proc/1/map_files/x/y.png"])
def test_the_window_opens_where_the_image_of_the_last_time_cannot_be_looked_at(open_window, store, name):
    store.write_text(json.dumps({"image": name, "recent": [name]}))
    window = open_window()
    assert window.bench.image is not None
    assert not window.banner.isVisible()
    window.window_actions._update_recent_menu()
    assert window.files._find_image_folder().is_dir()


def test_the_window_says_once_why_nothing_is_cached(qtbot, open_window, monkeypatch, tmp_path, color):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    note = f"The cache folder {tmp_path / 'cache'} is not used: it is not a folder."
    monkeypatch.setattr(FakeHost, "start", lambda host: host.deliver(0, Ready(DEVICE, find_problem())))
    window = open_window()
    assert window.banner.isVisible()
    assert window.banner.message.text() == note
    assert not window.banner.advice.isVisible()
    window.set_engine("simulator")
    window.bench.open_image(color)
    wait_until_idle(qtbot, window)
    assert not window.banner.isVisible()


def test_the_engine_s_process_tells_of_the_cache(monkeypatch, tmp_path):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    heard = Queue()
    host = EngineHost("null", deliver=lambda _, event: heard.put(event))
    host.start()
    try:
        assert heard.get(timeout=60).note == find_problem()
    finally:
        host.close()


def test_the_window_says_nothing_where_all_is_well(open_window):
    assert not open_window().banner.isVisible()
