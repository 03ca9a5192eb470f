"""Find out what CUDA there is on this machine. It runs as a process of its own, which no context or hang outlives."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76
_NVIDIA_ON_PCI = "0x10de"


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver gives it, and its compute capability."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True)
class Facts:
    """What was found.

    Parameters
    ----------
    system : str
        As `sys.platform` gives it.
    on_the_bus : bool
        Whether a device of NVIDIA's is plugged in, driver or not.
    driver_library, driver_tool : bool
        Whether libcuda can be loaded, and whether there is an nvidia-smi.
    status : int
        What cuInit returned; 0 is success.
    driver_cuda, toolkit_cuda : tuple of int
        The CUDA version that the driver supports, and that of nvcc; (0, 0) where not known.
    gpus : tuple of Gpu
    pycuda : str
        "" where it can be imported, "missing", or what the import complained about.
    nvcc : str
        Its path, or "".
    host_compiler : bool
        Whether there is the C++ compiler that nvcc calls.
    visible : str or None
        CUDA_VISIBLE_DEVICES.
    complaint : str
        Why nothing could be found out: the probe hung or died.
    """

    system: str
    on_the_bus: bool = False
    driver_library: bool = False
    driver_tool: bool = False
    status: int = 0
    driver_cuda: tuple[int, int] = (0, 0)
    toolkit_cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Gpu, ...] = field(default=())
    pycuda: str = "missing"
    nvcc: str = ""
    host_compiler: bool = False
    visible: str | None = None
    complaint: str = ""


def look() -> Facts:
    """Find out, in this process: this initializes the driver."""
    status, driver_cuda, gpus = _ask_driver()
    nvcc = find_nvcc()
    return Facts(
        system=sys.platform,
        on_the_bus=_on_the_bus(),
        driver_library=status is not None,
        driver_tool=shutil.which("nvidia-smi") is not None,
        status=status or 0,
        driver_cuda=driver_cuda,
        toolkit_cuda=_toolkit_version(nvcc),
        gpus=gpus,
        pycuda=_try_pycuda(),
        nvcc=nvcc,
        host_compiler=shutil.which("cl" if sys.platform == "win32" else "g++") is not None,
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def look_from_outside(timeout: float = 60.0) -> Facts:
    """Find out in another process, so that neither a context nor a hanging driver comes into this one."""
    root = Path(__file__).resolve().parents[2]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "gpu.devices.probe"], cwd=root, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return Facts(sys.platform, complaint=f"the NVIDIA driver did not answer within {timeout:.0f} s")
    if run.returncode:
        last = (run.stderr.strip().splitlines() or [f"code {run.returncode}"])[-1]
        return Facts(sys.platform, complaint=f"looking for one failed: {last}")
    return from_json(run.stdout)


def from_json(text: str) -> Facts:
    """Undo `to_json`."""
    found: dict[str, Any] = json.loads(text)
    found["gpus"] = tuple(Gpu(gpu["name"], tuple(gpu["capability"])) for gpu in found["gpus"])
    found["driver_cuda"] = tuple(found["driver_cuda"])
    found["toolkit_cuda"] = tuple(found["toolkit_cuda"])
    return Facts(**found)


def to_json(facts: Facts) -> str:
    """Return the facts as text, for the process that asked."""
    return json.dumps(asdict(facts))


def driver_version() -> str:
    """Return the NVIDIA driver's version, as its own tool says it; "" where that is not known."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(told.split("\n"))).strip()


def find_nvcc() -> str:
    """Return the path of nvcc: on PATH, in a toolkit's usual place, or from the PyPI wheels; "" where there is none."""
    name = "nvcc.exe" if sys.platform == "win32" else "nvcc"
    wheels = Path(sysconfig.get_path("purelib"), "nvidia")
    toolkits = [Path(value) for key in ("CUDA_HOME", "CUDA_PATH") if (value := os.environ.get(key))]
    places = [*toolkits, Path("/usr/local/cuda"), *sorted(wheels.glob("cu*"), reverse=True), wheels / "cuda_nvcc"]
    found = shutil.which("nvcc") or next((str(p / "bin" / name) for p in places if (p / "bin" / name).is_file()), "")
    return str(found)


def find_device_runtime(nvcc: str) -> str | None:
    """Return the folder of the toolkit of `nvcc` that has the device's runtime; None where there is none."""
    toolkit = Path(nvcc).resolve().parent.parent
    for folder in ("lib64", "lib", "lib/x64", "targets/x86_64-linux/lib"):
        if any((toolkit / folder / name).is_file() for name in ("libcudadevrt.a", "cudadevrt.lib")):
            return str(toolkit / folder)
    return None


def _ask_driver() -> tuple[int | None, tuple[int, int], tuple[Gpu, ...]]:
    """Return cuInit's status (None without a driver), the driver's CUDA version, and its GPUs."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None, (0, 0), ()
    number = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    version = (number.value // 1000, number.value % 1000 // 10)
    status = int(cuda.cuInit(0))
    if status:
        return status, version, ()
    cuda.cuDeviceGetCount(ctypes.byref(number))
    return 0, version, tuple(_describe(cuda, ordinal) for ordinal in range(number.value))


def _describe(cuda: Any, ordinal: int) -> Gpu:
    device, name, number = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), ordinal)
    cuda.cuDeviceGetName(name, len(name), device)
    capability = []
    for attribute in (_COMPUTE_MAJOR, _COMPUTE_MINOR):
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        capability.append(number.value)
    return Gpu(name.value.decode(errors="replace"), (capability[0], capability[1]))


def _toolkit_version(nvcc: str) -> tuple[int, int]:
    if not nvcc:
        return 0, 0
    try:
        run = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    release = re.search(r"release (\d+)\.(\d+)", run.stdout)
    return (int(release[1]), int(release[2])) if release else (0, 0)


def _try_pycuda() -> str:
    try:
        import pycuda.driver  # noqa: F401
    except ModuleNotFoundError as error:
        return "missing" if error.name == "pycuda" else str(error)
    except Exception as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    return ""


def _on_the_bus() -> bool:
    """Whether the PCI bus has a display or compute device of NVIDIA's; only Linux tells."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (device / "vendor").read_text().strip() == _NVIDIA_ON_PCI and (
                (device / "class").read_text().startswith("0x03")
            ):
                return True
        except OSError:
            continue
    return False


if __name__ == "__main__":
    print(to_json(look()))
