"""PyCUDA's Python files from its source archive, on which scripts run without a GPU."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "2026.1"
_HASH = "sha256:759516160628ba06f32ce7e563e3f5b9214691dc9528a03ea99ea1073f4e14ba"
_STAMP = "lockstep-pycuda-files"
_TOOLKIT = ("lib64/libcudadevrt.a", "lib/x64/cudadevrt.lib")
"""Empty files in place of a toolkit's: PyCUDA checks that they exist."""


def files_folder(venv: Path) -> Path:
    """Return the folder of the files in a checkout's virtual environment."""
    return venv / "share" / "lockstep" / f"pycuda-{VERSION}"


def are_present(target: Path) -> bool:
    """Return whether a folder contains the files."""
    return (target / "pycuda" / "driver.py").is_file()


def ensure_files(python: Path, venv: Path, *, retry: bool = False) -> str:
    """Download and unpack the files into a virtual environment if they are missing.

    Parameters
    ----------
    python : Path
        The virtual environment's Python.
    retry : bool
        Retry after an earlier failure.

    Returns
    -------
    str
        Why they are missing; "" if they are not.
    """
    if are_present(files_folder(venv)):
        return ""
    stamp = venv / _STAMP
    if stamp.exists() and stamp.read_text("utf-8").startswith(f"{VERSION}\n") and not retry:
        return stamp.read_text("utf-8").partition("\n")[2]
    failure = fetch(python, files_folder(venv))
    if failure:
        stamp.write_text(f"{VERSION}\n{failure}", "utf-8")
    return failure


def fetch(python: Path, target: Path) -> str:
    """Download and unpack the files into a folder; return why that failed, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        archive, failure = download(python, Path(folder))
        return failure if archive is None else unpack(archive, target)


def download(python: Path, download_folder: Path) -> tuple[Path | None, str]:
    """Download PyCUDA's source archive into a folder; return it, or None and the reason."""
    options = [*pin_source(download_folder), "--dest", str(download_folder)]
    process = subprocess.run(
        [_find_python_with_pip(python, download_folder / "pip"), "-m", "pip", "download", "--quiet", *options],
        capture_output=True,
        text=True,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        check=False,
    )
    archive = next(download_folder.glob("pycuda-*.tar.gz"), None)
    if process.returncode != 0 or archive is None:
        errors = [line for line in process.stderr.splitlines() if line.startswith("ERROR")]
        return None, errors[-1].removeprefix("ERROR: ") if errors else "pip could not download it"
    return archive, ""


def pin_source(folder: Path) -> list[str]:
    """Write a requirements file into a folder; return pip's options to take only the archive with the known hash."""
    file = folder / "pycuda-source.txt"
    file.write_text(f"pycuda=={VERSION} --hash={_HASH}\n", "utf-8")
    return ["--no-deps", "--no-binary", "pycuda", "--require-hashes", "-r", str(file)]


def _find_python_with_pip(python: Path, folder: Path) -> Path:
    """Return this Python, or a temporary virtual environment's if the environment has no pip, as those of uv."""
    if importlib.util.find_spec("pip") or python != Path(sys.executable):
        return python
    subprocess.run([python, "-m", "venv", folder], capture_output=True, check=False)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def unpack(archive: Path, target: Path) -> str:
    """Unpack PyCUDA's Python files from its source archive; return why that failed, or ""."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _unpack_files(archive, target)
    except OSError as error:
        return f"{target} cannot be written: {error.strerror or error}"


def _unpack_files(archive: Path, target: Path) -> str:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        try:
            with tarfile.open(archive) as packed:
                members = [each for each in packed.getmembers() if Path(each.name).parts[1:2] == ("pycuda",)]
                packed.extractall(folder, members, filter="data")
        except (tarfile.TarError, OSError) as error:
            return f"{archive.name} cannot be unpacked: {error}"
        driver = next(Path(folder).glob("*/pycuda/driver.py"), None)
        if driver is None:
            return f"{archive.name} has no pycuda/driver.py"
        source = driver.parents[1]
        for name in _TOOLKIT:
            (source / "toolkit" / name).parent.mkdir(parents=True, exist_ok=True)
            (source / "toolkit" / name).touch()
        # Scripts that look for nvcc find this file; calls of nvcc through PyCUDA use the simulator.
        nvcc = source / "toolkit" / "bin" / "nvcc"
        nvcc.parent.mkdir()
        nvcc.write_text("#!/bin/sh\necho 'The simulator replaces nvcc within Python only.' >&2\nexit 1\n", "utf-8")
        nvcc.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        source.rename(target)
    return ""
