"""What the window says once when it opens: of settings, and of the cache, that cannot be used."""

from __future__ import annotations

import json
from queue import Queue

import pytest

from gpu.messages.requests import Ready
from gpu.process.host import EngineHost
from gpu.simulator.disk import complaint
from gui.model.settings import SavedSettings
from tests.gui.conftest import DEVICE, FakeHost, settle


@pytest.fixture
def opened(qtbot, make_window, store, gray):
    def opened():
        window = make_window(memory=SavedSettings(store))
        window.begin(gray)
        settle(qtbot, window)
        return window

    return opened


def test_the_window_opens_on_damaged_settings_and_says_so_once(qtbot, opened, store, color):
    store.write_text('{"image": ' + "[" * 100_000)
    window = opened()
    assert window.banner.isVisible()
    assert "could not be read" in window.banner.message.text()
    assert "settings-unreadable-1.json" in window.banner.message.text()
    assert window.appearance is not None
    assert window.memory.theme == "dark"
    window.bench.open(color)
    settle(qtbot, window)
    assert window.bench.image.path == color
    assert not window.banner.isVisible()


@pytest.mark.parametrize("name", ["x" * 300, "a/" * 2500, "/proc/1/map_files/x/y.png"])
def test_the_window_opens_where_the_image_of_the_last_time_cannot_be_looked_at(opened, store, name):
    store.write_text(json.dumps({"image": name, "recent": [name]}))
    window = opened()
    assert window.bench.image is not None
    assert not window.banner.isVisible()
    window.actions_._fill_recent()
    assert window.files._folder().is_dir()


def test_the_window_says_once_why_nothing_is_cached(qtbot, opened, monkeypatch, tmp_path, color):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    note = f"The cache folder {tmp_path / 'cache'} is not used: it is not a folder."
    monkeypatch.setattr(FakeHost, "start", lambda host: host.deliver(0, Ready(DEVICE, complaint())))
    window = opened()
    assert window.banner.isVisible()
    assert window.banner.message.text() == note
    assert not window.banner.advice.isVisible()
    window.set_engine("simulator")
    window.bench.open(color)
    settle(qtbot, window)
    assert not window.banner.isVisible()


def test_the_engine_s_process_tells_of_the_cache(monkeypatch, tmp_path):
    (tmp_path / "cache").touch()
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    heard = Queue()
    host = EngineHost("null", deliver=lambda _, event: heard.put(event))
    host.start()
    try:
        assert heard.get(timeout=60).note == complaint()
    finally:
        host.close()


def test_the_window_says_nothing_where_all_is_well(opened):
    assert not opened().banner.isVisible()
