"""Properties of this machine, detected without changing it: libraries, display, driver, toolkits."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gui.qt.system_libraries import can_load_library, missing_libraries

FONT_PACKAGE = "fonts-dejavu-core"
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")
_HEADERS = ("cuda.h", "cudaProfiler.h", "curand.h")  # PyCUDA includes these; a small toolkit may lack the last two
_X_SOCKETS = "/tmp/.X11-unix"  # the fixed folder of the sockets of this machine's X servers


@dataclass(frozen=True)
class Toolkit:
    """Folder of a CUDA toolkit, and its version, such as (13, 0)."""

    folder: Path
    version: tuple[int, int]


def missing_qt_packages(libraries: Mapping[str, str], can_load: Callable[[str], bool] = can_load_library) -> list[str]:
    """Return the packages of the libraries that do not load, and of a font if there is none."""
    if platform.system() != "Linux":
        return []
    missing = list(missing_libraries(libraries, can_load).values())
    return missing if _has_font() else [*missing, FONT_PACKAGE]


def _has_font() -> bool:
    folders = (Path(folder).expanduser() for folder in _FONT_FOLDERS)
    return any(
        name.endswith((".ttf", ".otf", ".ttc", ".pfb"))
        for folder in folders
        for _, _, names in os.walk(folder)
        for name in names
    )


def find_apt_prefix(which: Callable[[str], str | None] = shutil.which) -> list[str] | None:
    """Return the prefix with which apt-get may install, [] as root, else sudo; None without apt-get or permission."""
    if not which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0:
        return ["sudo", "-n"]
    return None


def has_display(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a window can open: on Linux, whether an X or Wayland server responds."""
    if platform.system() != "Linux" or environment.get("QT_QPA_PLATFORM"):
        return True
    if environment.get("WAYLAND_DISPLAY"):
        return True
    return bool(environment.get("DISPLAY")) and _x_server_responds(environment["DISPLAY"])


def _x_server_responds(display: str) -> bool:
    match = re.fullmatch(r"(?:unix)?([^:]*):(\d+)(?:\.\d+)?", display)
    if not match:
        return True  # leave an unknown form to Qt
    host, number = match[1], int(match[2])
    addresses: Iterable[tuple[socket.AddressFamily, object]]
    if host:
        addresses = [(socket.AF_INET, (host, 6000 + number))]
    else:
        path = f"{_X_SOCKETS}/X{number}"
        addresses = [
            (socket.AF_UNIX, path),
            (socket.AF_UNIX, f"\0{path}"),
            (socket.AF_INET, ("localhost", 6000 + number)),
        ]
    return any(_accepts_connection(family, address) for family, address in addresses)


def _accepts_connection(family: socket.AddressFamily, address: object) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(2)
        try:
            connection.connect(address)  # type: ignore[arg-type]
        except OSError:
            return False
        return True


def driver_cuda_version() -> tuple[int, int] | None:
    """Return the newest CUDA version that the NVIDIA driver supports; None without a driver."""
    name = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
        version = ctypes.c_int()
        if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return (version.value // 1000, version.value % 1000 // 10) if version.value else None


def driver_library() -> Path | None:
    """Return the path of libcuda.so.1 as the loader finds it; None without a driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
        mapped = Path("/proc/self/maps").read_text("utf-8", "replace")
    except OSError:
        return None
    match = re.search(r"\s(/\S*libcuda\.so\S*)$", mapped, re.MULTILINE)
    return Path(match[1]) if match else None


def find_toolkits() -> list[Toolkit]:
    """Return this machine's CUDA toolkits: the one on PATH first, then the newest first."""
    on_path = shutil.which("nvcc")
    variables = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT") if os.environ.get(name)]
    folders = [Path(on_path).resolve().parents[1]] if on_path else []
    folders += [Path(name) for name in variables]
    installed = [toolkit for folder in Path("/usr/local").glob("cuda*") if (toolkit := read_toolkit(folder))]
    preferred = [toolkit for folder in folders if (toolkit := read_toolkit(folder))]
    return preferred + sorted(installed, key=lambda toolkit: toolkit.version, reverse=True)


def read_toolkit(folder: Path) -> Toolkit | None:
    """Return the toolkit in a folder; None if the folder has no toolkit that can build PyCUDA."""
    nvcc = folder / "bin" / "nvcc"
    includes = [folder / "include", *folder.glob("targets/*/include")]
    if not nvcc.exists() or not any(all((include / name).exists() for name in _HEADERS) for include in includes):
        return None
    try:
        output = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    release = re.search(r"release (\d+)\.(\d+)", output)
    return Toolkit(folder, (int(release[1]), int(release[2]))) if release else None


def missing_build_packages() -> list[str]:
    """Return the missing packages for compiling a Python extension."""
    packages = [] if shutil.which("g++") or shutil.which("c++") else ["g++"]
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        packages.append(f"python{sysconfig.get_python_version()}-dev")
    return packages
