"""The bundles: a Python that works in any folder, and a command that finds it."""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpu import __version__
from gpu.base.paths import ROOT
from gui.user_kernel.user_file import RECORDING_SUFFIXES
from tests import needs
from tools.installation import bundle
from tools.installation.wheel_check import CheckError

LIBRARY = ("os.py", "test/regrtest.py", "site-packages/foreign.py", "json/__init__.py", "json/__pycache__/x.pyc")


@pytest.mark.parametrize("base", ["/usr", "/usr/local"])
def test_a_python_of_the_system_is_refused(tmp_path, base):
    with pytest.raises(CheckError, match=f"in {base} belongs to the system"):
        bundle.copy_python(tmp_path / "python", Path(base))
    assert not list(tmp_path.iterdir())


@needs.linux
@pytest.mark.parametrize(("system", "name"), [("Linux", "libpython3.11.so.1.0"), ("Darwin", "libpython3.11.dylib")])
def test_tests_and_packages_of_the_copied_python_are_left_out(tmp_path, monkeypatch, system, name):
    monkeypatch.setattr(bundle, "_SYSTEM", system)
    library = tmp_path / "base" / "lib" / bundle._PYTHON
    for file in (*LIBRARY, "EXTERNALLY-MANAGED"):
        (library / file).parent.mkdir(parents=True, exist_ok=True)
        (library / file).touch()
    (library.parent / "libpython3.so").symlink_to(library / "os.py")
    (library.parent / name).touch()
    (tmp_path / "base" / "bin").mkdir()
    (tmp_path / "base" / "bin" / bundle._PYTHON).touch()
    bundle.copy_python(tmp_path / "python", tmp_path / "base")
    copied = {str(path.relative_to(tmp_path / "python")) for path in (tmp_path / "python").rglob("*") if path.is_file()}
    lib = f"lib/{bundle._PYTHON}"
    assert copied == {f"bin/{bundle._PYTHON}", f"lib/{name}", f"{lib}/os.py", f"{lib}/json/__init__.py"}


def test_a_copied_python_of_windows_has_its_library_and_no_command_of_pip(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "_SYSTEM", "Windows")
    kept = {"python.exe", "pythonw.exe", "python313.dll", "DLLs/_ssl.pyd", "Lib/os.py", "Lib/json/__init__.py"}
    kept |= {"Lib/xml/tools/x.py", "Lib/venv/Scripts/activate"}
    left_out = {f"Lib/{name}" for name in LIBRARY if Path(name).parts[0] in ("test", "site-packages")}
    left_out |= {
        "Scripts/pip.exe",
        "libs/python313.lib",
        "include/Python.h",
        "Tools/i18n.py",
        "python-3.13.9-amd64.exe",
    }
    for name in kept | left_out:
        (tmp_path / "base" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "base" / name).touch()
    python = bundle.copy_python(tmp_path / "python", tmp_path / "base")
    files = {path.relative_to(tmp_path / "python").as_posix() for path in python.parent.rglob("*") if path.is_file()}
    assert files == kept
    assert (python.parent / "Lib" / "site-packages").is_dir(), "pip installs there"


def test_qt_keeps_the_modules_that_the_window_imports(tmp_path):
    """By the names of files and folders on Linux, Windows and macOS."""
    used = {
        name
        for path in (ROOT / "gui").rglob("*.py")
        for name in re.findall(r"from PyQt6\.(Qt\w+) import", path.read_text("utf-8"))
    }
    assert "QtWidgets" in used
    kept = {f"{name}.abi3.so" for name in used} | {f"{name}.pyd" for name in used}
    kept |= {f"Qt6/lib/lib{name.replace('Qt', 'Qt6')}.so.6" for name in used}
    kept |= {f"Qt6/bin/{name.replace('Qt', 'Qt6')}.dll" for name in used}
    kept |= {f"Qt6/lib/{name}.framework/{name}" for name in used}
    kept |= {"Qt6/plugins/platforms/libqxcb.so", "Qt6/lib/libicudata.so.73", "Qt6/lib/libQt6XcbQpa.so.6", "sip.pyi"}
    removed = {"QtQuick3D.abi3.so", "QtPdf.pyd", "Qt6/lib/libQt6QmlModels.so.6", "Qt6/bin/Qt6Quick.dll", "Qt6/qml/a/b"}
    removed |= {
        "Qt6/lib/QtDesigner.framework/Versions/A/QtDesigner",
        "Qt6/bin/avcodec-61.dll",
        "Qt6/lib/libavcodec.so.61",
    }
    for name in kept | removed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    bundle.remove_unused_qt(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == kept


@needs.posix
@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_the_command_starts_the_bundles_python_from_any_folder(tmp_path, monkeypatch, system):
    """Also through a link, with spaces in the folder's name, and whatever Python's variables say."""
    monkeypatch.setattr(bundle, "_SYSTEM", system)
    folder = tmp_path / "my programs"
    python = bundle.find_home(folder) / "python" / "bin" / bundle._PYTHON
    python.parent.mkdir(parents=True)
    shown = '"$0" "$@" "home=$PYTHONHOME" "path=$PYTHONPATH" "user=$PYTHONNOUSERSITE"'
    python.write_text(f"#!/bin/sh\nprintf '%s\\n' {shown}\nexit 3\n")
    python.chmod(0o755)
    (tmp_path / "link").symlink_to(bundle.write_launcher(folder))
    environment = {**os.environ, "PYTHONHOME": sys.prefix, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [tmp_path / "link", "run", "a b"], cwd="/", env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [str(python), "-m", "lockstep", "run", "a b", "home=", "path=", "user=1"]


def test_an_application_of_macos_names_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "_SYSTEM", "Darwin")
    bundle.find_home(tmp_path).mkdir(parents=True)
    launcher = bundle.write_launcher(tmp_path)
    contents = tmp_path / "Lockstep.app" / "Contents"
    properties = plistlib.loads((contents / "Info.plist").read_bytes())
    assert contents / "MacOS" / properties["CFBundleExecutable"] == launcher
    assert properties["CFBundleShortVersionString"] == __version__
    [opened] = properties["CFBundleDocumentTypes"]
    [declared] = properties["UTExportedTypeDeclarations"]
    assert opened["LSItemContentTypes"] == [declared["UTTypeIdentifier"]]
    suffixes = {f".{name}" for name in declared["UTTypeTagSpecification"]["public.filename-extension"]}
    assert suffixes == {*RECORDING_SUFFIXES} - {".html"}, "browsers open players"


def test_the_command_of_windows_starts_the_bundles_python(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "_SYSTEM", "Windows")
    lines = bundle.write_launcher(tmp_path).read_bytes().split(b"\r\n")
    assert lines[-2] == b'"%~dp0python\\python.exe" -m lockstep %*'
    assert b"set PYTHONPATH=" in lines


def test_the_installer_of_windows_gets_what_its_script_needs(tmp_path, monkeypatch):
    script = (ROOT / "package" / "windows" / "lockstep.iss").read_text("utf-8")
    commands = []
    monkeypatch.setattr(bundle, "_SYSTEM", "Windows")
    monkeypatch.setattr(bundle, "run", lambda _name, command, *_: commands.append([str(word) for word in command]))
    archive = bundle.pack(tmp_path / bundle.NAME)
    [[iscc, *words]] = commands
    assert (iscc, words[-1]) == ("iscc", str(ROOT / "package" / "windows" / "lockstep.iss"))
    definitions = dict(word.removeprefix("/D").split("=", 1) for word in words if word.startswith("/D"))
    assert definitions == {"Version": __version__, "Bundle": str(tmp_path / bundle.NAME)}
    assert set(re.findall(r"\{#(\w+)\}", script)) == set(definitions)
    assert {f"/O{archive.parent}", f"/F{archive.stem}"} <= set(words)
    opened = set(re.findall(r"Classes\\(\.\w+)\\OpenWithProgids", script))
    assert opened == {*RECORDING_SUFFIXES} - {".html"}, "browsers open players"


def test_a_large_bundle_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "MAX_BUNDLE_BYTES", 9)
    (tmp_path / "bundle.tar.xz").write_bytes(b"0" * 10)
    with pytest.raises(CheckError, match=r"bundle\.tar\.xz has 10 bytes, more than 9"):
        bundle.check_archive(tmp_path / "bundle.tar.xz", tmp_path)
