"""PyCUDA's own Python files, taken from its source archive: what scripts run on where there is no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "2026.1"
_STAMP = "lockstep-pycuda-files"
_TOOLKIT = ("lib64/libcudadevrt.a", "lib/x64/cudadevrt.lib")
"""Empty files in the place of a toolkit's: PyCUDA looks whether they are there."""


def folder(venv: Path) -> Path:
    """Return where the files go; `gpu/pycuda/driver.py` looks for them there."""
    return venv / "share" / "lockstep" / f"pycuda-{VERSION}"


def ensure(python: Path, venv: Path, *, again: bool = False) -> str:
    """Fetch and unpack the files where they are missing.

    Parameters
    ----------
    python : Path
        The virtual environment's Python.
    venv : Path
    again : bool
        Whether to try once more what failed before.

    Returns
    -------
    str
        Why they are not there; "" where they are.
    """
    if (folder(venv) / "pycuda" / "driver.py").is_file():
        return ""
    stamp = venv / _STAMP
    if stamp.exists() and stamp.read_text("utf-8").startswith(f"{VERSION}\n") and not again:
        return stamp.read_text("utf-8").partition("\n")[2]
    failure = _fetch(python, folder(venv))
    if failure:
        stamp.write_text(f"{VERSION}\n{failure}", "utf-8")
    return failure


def _fetch(python: Path, target: Path) -> str:
    with tempfile.TemporaryDirectory() as held:
        archive, failure = download(python, Path(held))
        return failure if archive is None else unpack(archive, target)


def download(python: Path, held: Path) -> tuple[Path | None, str]:
    """Download PyCUDA's source archive into a folder; return it, or why it could not be had."""
    wanted = ["--no-deps", "--no-binary", "pycuda", f"pycuda=={VERSION}", "--dest", str(held)]
    done = subprocess.run(
        [python, "-m", "pip", "download", "--quiet", *wanted],
        capture_output=True,
        text=True,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        check=False,
    )
    archive = next(held.glob("pycuda-*.tar.gz"), None)
    if done.returncode != 0 or archive is None:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return None, said[-1].removeprefix("ERROR: ") if said else "pip could not download it"
    return archive, ""


def unpack(archive: Path, target: Path) -> str:
    """Unpack PyCUDA's Python files from its source archive; return why that failed, or ""."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as held:
        try:
            with tarfile.open(archive) as packed:
                members = [each for each in packed.getmembers() if Path(each.name).parts[1:2] == ("pycuda",)]
                packed.extractall(held, members, filter="data")
        except (tarfile.TarError, OSError) as error:
            return f"{archive.name} cannot be unpacked: {error}"
        found = next(Path(held).glob("*/pycuda/driver.py"), None)
        if found is None:
            return f"{archive.name} has no pycuda/driver.py"
        whole = found.parents[1]
        for name in _TOOLKIT:
            (whole / "toolkit" / name).parent.mkdir(parents=True, exist_ok=True)
            (whole / "toolkit" / name).touch()
        # Whoever looks for nvcc finds this; who calls it through PyCUDA is answered by the simulator.
        nvcc = whole / "toolkit" / "bin" / "nvcc"
        nvcc.parent.mkdir()
        nvcc.write_text("#!/bin/sh\necho 'The simulator answers for nvcc within Python only.' >&2\nexit 1\n", "utf-8")
        nvcc.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        whole.rename(target)
    return ""
