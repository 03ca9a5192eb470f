from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QByteArray, QSettings

from gpu.base.folders import settings_file
from gpu.patterns import find_pattern
from gui.model.settings import MAX_RECENT, SavedSettings
from gui.model.settings_file import MAX_FILE_BYTES
from tests import needs
from tests.attacks.settings import attack, read_all_settings


def test_defaults(saved_settings):
    assert (saved_settings.theme, saved_settings.text_size, saved_settings.engine, saved_settings.scale) == (
        "dark",
        "normal",
        "auto",
        "linear",
    )
    assert saved_settings.recent == []
    assert saved_settings.image is None


@pytest.mark.parametrize("key", ["theme", "text_size", "engine", "histogram_scale"])
@pytest.mark.parametrize("value", ["nonsense", "", "\ud800"])
def test_nonsense_is_as_if_it_had_never_been_stored(store, key, value):
    store.write_text(json.dumps({key: value}))
    saved_settings = SavedSettings(store)
    assert (saved_settings.theme, saved_settings.text_size, saved_settings.engine, saved_settings.scale) == (
        "dark",
        "normal",
        "auto",
        "linear",
    )
    assert saved_settings.problem_message == ""


@pytest.mark.parametrize(
    "given",
    [{}, {"size": 4, "filter": "box"}, {"size": "x", "gone": 1}, {"coefficients": "/dev/zero", "size": 10**400}],
)
def test_parameters_that_do_not_make_sense_take_their_defaults(store, given):
    store.write_text(json.dumps({"patterns/convolution/params": given}))
    params = SavedSettings(store).params(find_pattern("convolution"))
    assert params["size"] == 9
    assert params["filter"] in ("gaussian", "box")


def test_parameters_come_back(saved_settings, store):
    pattern = find_pattern("convolution")
    params = pattern.check({"filter": "custom", "coefficients": np.arange(25).reshape(5, 5) / 7, "border": "zero"})
    saved_settings.store_settings("convolution", "naive", params)
    saved_settings.write()
    saved_settings = SavedSettings(store)
    again = saved_settings.params(pattern)
    assert all(np.array_equal(again[name], params[name]) for name in params)
    assert saved_settings.variant(pattern) == "naive"


def test_a_variant_that_is_gone_is_the_first_rung(store):
    store.write_text(json.dumps({"patterns/convolution/variant": "gone"}))
    assert SavedSettings(store).variant(find_pattern("convolution")) == "naive"


def test_recent_files_are_unique_newest_first_and_few(saved_settings, tmp_path, store):
    for number in [*range(MAX_RECENT + 3), 5]:
        saved_settings.add_recent(tmp_path / str(number))
    assert [path.name for path in saved_settings.recent][:3] == ["5", "10", "9"]
    assert len(saved_settings.recent) == MAX_RECENT
    saved_settings.clear_recent()
    assert SavedSettings(store).recent == []


def test_what_two_windows_choose_stays(store):
    one, other = SavedSettings(store), SavedSettings(store)
    one.theme = "light"
    other.text_size = "large"
    again = SavedSettings(store)
    assert (again.theme, again.text_size) == ("light", "large")


def test_sizes_and_geometry_come_back(saved_settings, store):
    saved_settings.store_sizes("scan/page", [300, 0, 7])
    saved_settings.geometry = QByteArray(b"\x00\xff as Qt has it")
    saved_settings.write()
    again = SavedSettings(store)
    assert again.sizes("scan/page") == [300, 0, 7]
    assert again.geometry == saved_settings.geometry
    assert (again.sizes("sort/page"), SavedSettings(store.with_name("new.json")).geometry) == ([], None)


@pytest.mark.parametrize("described", ["\ud800", "ä", "x" * 100_000])
def test_a_geometry_that_qt_never_wrote_is_none(saved_settings, described):
    saved_settings._store.set_value("geometry", described)
    assert saved_settings.geometry is None


# --- what means harm


class HarmfulPickle:
    def __reduce__(self):
        return Path.touch, (Path("harmed"),)


def test_a_pickle_in_the_settings_of_old_is_not_executed(tmp_path, monkeypatch):
    """PyQt unpickles what QSettings holds as a PyQt_PyObject."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_SETTINGS", str(tmp_path / "Lockstep" / "settings.json"))
    made = QSettings(str(tmp_path / "made.ini"), QSettings.Format.IniFormat)
    for key in ("theme", "recent", "layout/geometry", "patterns/convolution/params"):
        made.setValue(key, HarmfulPickle())
    made.sync()
    harmful = (tmp_path / "made.ini").read_bytes()
    assert b"PyQt_PyObject" in harmful
    # Under names that Qt has not read yet in this process: those of the settings of old.
    (tmp_path / "Lockstep").mkdir()
    for name in ("Lockstep.ini", "Lockstep.conf"):
        (tmp_path / "Lockstep" / name).write_bytes(harmful)
    read_all_settings(SavedSettings())
    (tmp_path / "Lockstep" / "settings.json").write_bytes(harmful)
    saved_settings = SavedSettings()
    read_all_settings(saved_settings)
    assert not Path("harmed").exists()
    assert "Cannot read" in saved_settings.problem_message


def test_settings_are_where_the_platform_keeps_them(monkeypatch, tmp_path):
    monkeypatch.delenv("LOCKSTEP_SETTINGS")
    where = settings_file()
    assert (where.name, where.parent.name) == ("settings.json", "Lockstep")
    if sys.platform.startswith("linux"):
        assert where.is_relative_to(os.environ["XDG_CONFIG_HOME"])


DAMAGED = {
    "empty": b"",
    "no JSON": b"{",
    "not an object": b"[]",
    "deep": b'{"recent": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep parameters": b'{"patterns/scan/params": {"n": ' + b"[" * 90 + b"]" * 90 + b"}}",
    "another kind": b'{"theme": 7}',
    "a list of others": b'{"recent": [1]}',
    "parameters that are none": b'{"patterns/scan/params": []}',
    "no text": bytes(range(256)),
    "huge": b" " * (MAX_FILE_BYTES + 1),
    "a number of many digits": b'{"theme": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_is_no_settings_is_renamed_and_not_lost(store, content):
    store.write_bytes(content)
    saved_settings = SavedSettings(store)
    read_all_settings(saved_settings)
    other = store.with_name("settings-unreadable-1.json")
    assert other.read_bytes() == content
    assert saved_settings.problem_message == (
        f"Cannot read the settings, so defaults are used. The old file is kept as {other}."
    )
    again = SavedSettings(store)
    assert (again.theme, again.problem_message) == ("light", "")
    store.write_bytes(content)
    assert "settings-unreadable-2.json" in SavedSettings(store).problem_message
    assert other.read_bytes() == content


@needs.named_pipes
@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "endless link", "link to a device"])
def test_what_is_no_file_is_renamed(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    path = Path("settings.json")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
            (path / "precious").touch()
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case "endless link":
            path.symlink_to(path)
        case "link to a device":
            path.symlink_to("/dev/zero")
    before = path.lstat()
    saved_settings = SavedSettings(path)
    read_all_settings(saved_settings)
    other = path.with_name("settings-unreadable-1.json")
    assert (other.lstat().st_ino, other.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert "Cannot read" in saved_settings.problem_message
    assert SavedSettings(path).theme == "light"
    assert kind != "folder" or (other / "precious").exists()


def test_where_nothing_can_be_written_nothing_is_and_that_is_said(store, monkeypatch):
    store.write_text('{"theme": "light"}')
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    saved_settings = SavedSettings(store)
    assert saved_settings.theme == "light"
    read_all_settings(saved_settings)
    assert saved_settings.problem_message == f"Settings are not saved. Cannot write {store}: permission denied."
    assert list(store.parent.iterdir()) == [store]


def test_what_cannot_be_set_other_stays_as_it_is(store, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    store.write_text("{")
    monkeypatch.setattr(Path, "rename", refuse)
    saved_settings = SavedSettings(store)
    read_all_settings(saved_settings)
    assert "changes are not saved" in saved_settings.problem_message
    assert store.read_text() == "{"


@pytest.mark.parametrize("place", ["a\0b", "x" * 300, "file/settings.json", "/dev/null/settings.json", "x/" * 3000])
def test_a_place_where_no_file_can_be(tmp_path, place):
    (tmp_path / "file").touch()
    saved_settings = SavedSettings(tmp_path / place)
    read_all_settings(saved_settings)
    assert (
        "changes are not saved" in saved_settings.problem_message
        or "Settings are not saved" in saved_settings.problem_message
    )


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "/" * 70_000, "x/" * 2000, "\ud800", "/root/secret/x.png"])
def test_odd_paths_are_none_or_no_files(store, name):
    store.write_text(json.dumps({"image": name, "recent": [name]}))
    saved_settings = SavedSettings(store)
    assert saved_settings.problem_message == ""
    for path in (saved_settings.image, *saved_settings.recent):
        assert path is None or not os.path.isfile(path)


def test_a_hundred_odd_settings(tmp_path):
    for seed in range(100):
        attack(np.random.default_rng(seed), tmp_path)
