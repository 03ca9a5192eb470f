"""Installation of PyCUDA for an NVIDIA driver: `plan_build` decides how, `install` builds it.

PyCUDA is distributed as source; building it needs nvcc's folder, CUDA's headers and libraries, and a C++ compiler. The
machine's own toolkit is used unless it is newer than the driver; otherwise the one from PyPI.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu.hosts.pycuda import python_files
from tools.installation.probe import Toolkit

_ERROR_LINE = re.compile(
    r"\b(?:error|Error): (?!subprocess-exited)|: cannot find -l|No matching distribution|not found:"
)

FIRST_NVCC_PACKAGE = (13, 0)
"""The first CUDA version with a compiler on PyPI."""


@dataclass(frozen=True)
class BuildPlan:
    """How to build PyCUDA.

    Parameters
    ----------
    toolkit : Toolkit or None
        The machine's own toolkit.
    wheels : str
        Packages to install from PyPI first, without such a toolkit.
    obstacle : str
        Why it cannot be built, in one sentence.
    """

    toolkit: Toolkit | None = None
    wheels: str = ""
    obstacle: str = ""


def plan_build(driver: tuple[int, int], toolkits: Sequence[Toolkit], missing_packages: Sequence[str]) -> BuildPlan:
    """Return how to build PyCUDA for a driver that supports a CUDA version."""
    if missing_packages:
        return BuildPlan(obstacle=f"building it needs {' and '.join(missing_packages)}")
    # A program built with a newer CUDA than the driver's does not load.
    for toolkit in toolkits:
        if toolkit.version <= driver:
            return BuildPlan(toolkit)
    if driver >= FIRST_NVCC_PACKAGE:
        oldest = f"{FIRST_NVCC_PACKAGE[0]}.{FIRST_NVCC_PACKAGE[1]}"
        return BuildPlan(wheels=f"cuda-toolkit[cudart,curand,nvcc,profiler]>={oldest},<{driver[0]}.{driver[1] + 1}")
    version = f"{driver[0]}.{driver[1]}"
    newer = "; the toolkit found here is newer" if toolkits else ""
    return BuildPlan(
        obstacle=f"the driver supports CUDA {version}, which needs NVIDIA's toolkit {version} or older{newer} "
        "(or a driver for CUDA 13)"
    )


def wheels_folder(site_packages: Path) -> Path | None:
    """Return the folder with bin, include and lib of PyPI's CUDA packages."""
    folders = sorted(nvcc.parents[1] for nvcc in site_packages.glob("nvidia/cu*/bin/nvcc"))
    return folders[-1] if folders else None


def library_folders(toolkit: Path) -> list[Path]:
    """Return the existing library folders of a toolkit."""
    folders = [toolkit / "lib64", toolkit / "lib", *toolkit.glob("targets/*/lib")]
    return [folder for folder in folders if folder.is_dir()]


def link_libraries(toolkit: Path, driver_library: Path | None, links: Path) -> None:
    """Fill the folder `links` with the library names that a linker expects.

    PyPI's packages contain libcudart.so.13 but no libcudart.so, and a driver often lacks libcuda.so.
    """
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for name in ("libcudart.so", "libcurand.so"):
        for folder in library_folders(toolkit):
            if candidates := sorted(folder.glob(f"{name}*")):
                (links / name).symlink_to(candidates[0])
                break
    stubs = [folder / "stubs" / "libcuda.so" for folder in library_folders(toolkit)]
    for candidate in (driver_library, *stubs):
        if candidate and candidate.exists():
            (links / "libcuda.so").symlink_to(candidate)
            break


def build_environment(toolkit: Path, links: Path, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment variables for pip to build PyCUDA with that toolkit."""

    def prepend(name: str, *folders: Path, separator: str = os.pathsep) -> str:
        return separator.join([*map(str, folders), *filter(None, [environment.get(name)])])

    libraries = library_folders(toolkit)
    # libcurand is needed at run time too, and no loader searches a wheel's folders.
    flags = [environment.get("LDFLAGS", ""), *(f"-Wl,-rpath,{folder}" for folder in libraries)]
    return environment | {
        "PATH": prepend("PATH", toolkit / "bin"),
        "CUDA_ROOT": str(toolkit),
        "LIBRARY_PATH": prepend("LIBRARY_PATH", links, *libraries),
        "CPATH": prepend("CPATH", toolkit / "include"),
        "LDFLAGS": " ".join(filter(None, flags)),
    }


def install(python: Path, requirements: Path, build_plan: BuildPlan, driver_library: Path | None, venv: Path) -> str:
    """Build and install PyCUDA; return why that failed, or "".

    Parameters
    ----------
    python : Path
        The virtual environment's interpreter.
    requirements : Path
        The requirements file that contains PyCUDA.
    build_plan : BuildPlan
        The installed CUDA toolkit, or the packages with one to install first.
    driver_library : Path or None
        The driver's libcuda; None to link with the toolkit's stub.
    venv : Path
        The virtual environment, in which links to libraries are created.
    """
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    folder = build_plan.toolkit.folder if build_plan.toolkit else None
    if folder is None:
        if complaint := _run([*pip, build_plan.wheels], dict(os.environ)):
            return f"the CUDA compiler cannot be downloaded: {complaint}"
        folder = wheels_folder(_site_packages(python))
        if folder is None:
            return "the CUDA packages contain no nvcc for this machine"
    links = venv / "cuda-libraries"
    link_libraries(folder, driver_library, links)
    # pip regards a build that does not load as installed, and a cached build refers to another checkout's folders.
    _run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "pycuda"], dict(os.environ))
    build = [*pip, "--no-cache-dir", *python_files.pin_source(venv)]
    complaint = _run(build, build_environment(folder, links, dict(os.environ)))
    complaint = complaint or _run([*pip, "-r", str(requirements)], dict(os.environ))
    return complaint or _run([str(python), "-c", "import pycuda.driver"], dict(os.environ))


def _site_packages(python: Path) -> Path:
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command without output; return "" or the line of its output that best describes the error."""
    process = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if process.returncode == 0:
        return ""
    lines = [line.strip() for line in process.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR_LINE.search(line)] or lines[-1:]
    return errors[0][:300] if errors else f"exit status {process.returncode}"
