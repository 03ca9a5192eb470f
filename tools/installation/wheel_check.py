"""Build the wheel, install it read-only in a new virtual environment, and use it from another folder with a new home.

Then pipx and uvx run it, each in an environment of its own.

    python -m tools.installation.wheel_check [--keep DIST]

With --keep, the source archive and the wheel are copied to that folder, for a release. pip downloads the dependencies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpu import __version__
from gpu.base.paths import PACKAGE_FOLDER, ROOT

MAX_WHEEL_BYTES = 12_000_000
_TIMEOUT_S = 600
_TOP_LEVEL = {"lockstep", f"lockstep_gpu-{__version__}.dist-info", f"lockstep_gpu-{__version__}.data"}

_KERNEL = """\
// lockstep: simulate double_all --grid 2 --block 64 --arg random:100 --arg 100
extern "C" __global__ void double_all(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
"""

_PICTURE = """\
import lockstep

if __name__ == "__main__":
    lockstep.add_app_to_path()
    from gui.driving.window_session import open_window, wait_until

    with open_window("simulator") as window:
        window.choose_pattern("reduction")
        assert wait_until(lambda: "reduction" in window.bench.outcomes and window.is_idle, 120)
        assert window.bench.outcomes["reduction"].report.verified
        assert window.grab().save("window.png")
"""


_CELL = """\
from lockstep.notebook import run_cell

if __name__ == "__main__":
    run = run_cell("double_all --grid 2 --block 64 --arg random:100 --arg 100", open("double.cu").read(), {})
    print(run.report, len(run.player))
    assert run.player
"""


class CheckError(Exception):
    """A step of the check failed; the message names it and has the end of its output."""


def build(folder: Path) -> Path:
    """Build the source archive and, from it, the wheel; return the wheel's path."""
    builder = folder.parent / "builder"
    venv.create(builder, with_pip=True)
    python = find_program(builder, "python")
    run("the builder", [python, "-m", "pip", "install", "--quiet", "build"])
    run("the build", [python, "-m", "build", "--outdir", folder, ROOT])
    return next(folder.glob("*.whl"))


def check_contents(wheel: Path) -> None:
    """Check the wheel's size and its names at the top level of site-packages.

    Raises
    ------
    CheckError
        If it is larger than `MAX_WHEEL_BYTES`, or contains other names than the package's own.
    """
    if wheel.stat().st_size > MAX_WHEEL_BYTES:
        raise CheckError(f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {MAX_WHEEL_BYTES:,}.")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    if other := {name.partition("/")[0] for name in names} - _TOP_LEVEL:
        raise CheckError(f"{wheel.name} would install {', '.join(sorted(other))} beside the package lockstep.")
    for name in ("main.py", "gpu/base/commit.txt", "kernels/reduction.cu", "assets/images/cat.png"):
        if f"lockstep/{PACKAGE_FOLDER}/{name}" not in names:
            raise CheckError(f"{wheel.name} lacks {name}.")


def check_installation(wheel: Path, folder: Path) -> None:
    """Install the wheel in a new virtual environment, and use it.

    Raises
    ------
    CheckError
        If a command fails, or changes the installation.
    """
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    python = find_program(environment, "python")
    run("the installation", [python, "-m", "pip", "install", "--quiet", wheel])
    check_commands(environment, find_program(environment, "lockstep"), python, folder)
    _allow_writing(environment)
    run("the removal", [python, "-m", "pip", "uninstall", "--quiet", "--yes", "lockstep-gpu"])
    if left := sorted(environment.rglob("*lockstep*")):
        raise CheckError(f"pip uninstall leaves {left[0]}.")


def check_runners(wheel: Path, folder: Path) -> None:
    """Run the wheel by pipx and by uvx, with a new home each.

    Raises
    ------
    CheckError
        If one fails.
    """
    environment = folder / "runners"
    venv.create(environment, with_pip=True)
    python = find_program(environment, "python")
    run("the installation of pipx and uv", [python, "-m", "pip", "install", "--quiet", "pipx", "uv"])
    runners: dict[str, Sequence[str | Path]] = {
        "pipx": [python, "-m", "pipx", "run", "--spec", wheel],
        "uvx": [find_program(environment, "uvx"), "--from", wheel],
    }
    for name, command in runners.items():
        home = folder / name
        home.mkdir()
        start = time.monotonic()
        output = run(name, [*command, "lockstep", "run", "reduction"], home, _user_environment(home))
        if "verified    yes" not in output:
            raise CheckError(f"{name} printed no verified result:\n{output[-2000:]}")
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


def check_commands(installation: Path, lockstep: Path, python: Path, folder: Path) -> None:
    """Make an installation read-only, and run the commands that a new user tries.

    Parameters
    ----------
    installation : Path
        The folder of all installed files.
    lockstep, python : Path
        The installed commands.
    folder : Path
        Where a home and a working folder are created.

    Raises
    ------
    CheckError
        If a command fails, or changes the installation.
    """
    _forbid_writing(installation)
    before = _list_files(installation)
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    (work / "double.cu").write_text(_KERNEL, "utf-8")
    (work / "picture.py").write_text(_PICTURE, "utf-8")
    (work / "cell.py").write_text(_CELL, "utf-8")
    app = next(installation.rglob(f"lockstep/{PACKAGE_FOLDER}"))
    launch = ["--grid", "2", "--block", "64", "--arg", "random:100", "--arg", "100"]
    steps: dict[str, tuple[Sequence[str | Path], Path, str]] = {
        "--version": ([lockstep, "--version"], work, f"lockstep {__version__} (commit "),
        "--where": ([lockstep, "--where"], work, f"installation  {app}"),
        "-m lockstep": ([python, "-m", "lockstep", "list"], work, "reduction"),
        "run": ([lockstep, "run", "reduction"], work, "verified    yes"),
        "simulate": ([lockstep, "simulate", "double.cu", "double_all", *launch], work, "No findings."),
        "check": ([lockstep, "check", "double.cu"], work, "1 checked, 0 findings"),
        "the window": ([python, "-m", "gui.driving.startup_time", str(time.time())], app, "wall_ms"),
        "the window's picture": ([python, "picture.py"], work, ""),
        "a notebook's cell": ([python, "cell.py"], work, "No findings."),
    }
    for name, (command, where, expected) in steps.items():
        start = time.monotonic()
        output = run(name, command, where, _user_environment(home))
        if expected not in output:
            raise CheckError(f"{name} printed no {expected!r}:\n{output[-2000:]}")
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    if changed := before ^ _list_files(installation):
        raise CheckError(f"The installation was changed: {sorted(name for name, *_ in changed)[:5]}")


def find_program(environment: Path, name: str) -> Path:
    """Return the path of a command in a virtual environment."""
    return environment / "Scripts" / f"{name}.exe" if os.name == "nt" else environment / "bin" / name


def _user_environment(home: Path) -> dict[str, str]:
    """Return the environment of a new user without a display."""
    own = ("LOCKSTEP_", "XDG_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    folders = dict.fromkeys(("HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"), str(home))
    return kept | folders | {"QT_QPA_PLATFORM": "offscreen"}


def _forbid_writing(folder: Path) -> None:
    """Remove the write permission, as `chmod -R a-w`; root may write nevertheless, so changes are compared too."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _allow_writing(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IRWXU)


def _list_files(folder: Path) -> set[tuple[str, int, int]]:
    """Return path, size and time of change of all files."""
    files = ((path, path.lstat()) for path in folder.rglob("*") if not path.is_dir())
    return {(str(path), status.st_size, status.st_mtime_ns) for path, status in files}


def run(
    name: str,
    command: Sequence[str | Path],
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a step's command; return its output.

    Raises
    ------
    CheckError
        If it fails.
    """
    process = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    if process.returncode != 0:
        raise CheckError(f"{name} failed with exit code {process.returncode}:\n{process.stdout[-4000:]}")
    return process.stdout


def remove(folder: Path) -> None:
    """Delete a folder whose files are read-only."""
    _allow_writing(folder)
    shutil.rmtree(folder)


def create_folder(prefix: str) -> Path:
    """Create a temporary folder; return its path as Lockstep prints it, without links or Windows' short names."""
    return Path(tempfile.mkdtemp(prefix=prefix)).resolve()


def run_steps(name: str, steps: Callable[[Path], None]) -> int:
    """Run steps in a temporary folder, which is deleted; print a step's failure, or the duration.

    Parameters
    ----------
    name : str
        What the steps build and check.
    steps : callable
        Called with the folder; raises CheckError.

    Returns
    -------
    int
        The exit code: 1 if a step failed.
    """
    folder = create_folder(f"lockstep-{name.replace(' ', '-')}-")
    start = time.monotonic()
    try:
        steps(folder)
    except CheckError as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 1
    finally:
        remove(folder)
    print(f"the {name} works, built and checked in {time.monotonic() - start:.0f} s")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check the wheel; return 0 if all steps succeed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.installation.wheel_check", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--keep", metavar="DIST", type=Path, help="copy the source archive and the wheel there")
    options = parser.parse_args(arguments)

    def build_and_check(folder: Path) -> None:
        wheel = build(folder / "dist")
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        check_contents(wheel)
        check_installation(wheel, folder)
        check_runners(wheel, folder)
        if options.keep:
            shutil.copytree(folder / "dist", options.keep, dirs_exist_ok=True)

    return run_steps("wheel", build_and_check)


if __name__ == "__main__":
    sys.exit(main())
