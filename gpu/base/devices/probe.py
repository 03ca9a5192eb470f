"""Probe for this machine's CUDA installation, in a separate process that a hanging driver cannot block."""

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

from gpu.base.child_processes import last_line
from gpu.base.paths import ROOT

_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76
_NVIDIA_VENDOR_ID = "0x10de"


@dataclass(frozen=True)
class Gpu:
    """A GPU's name from the driver, and its compute capability."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True)
class ProbeResult:
    """Results of the probe.

    Parameters
    ----------
    system : str
        `sys.platform`.
    has_pci_device : bool
        Whether the PCI bus has an NVIDIA device, with or without a driver.
    driver_library, driver_tool : bool
        Whether libcuda can be loaded, and whether nvidia-smi exists.
    status : int
        The return value of cuInit; 0 is success.
    driver_cuda, toolkit_cuda : tuple of int
        The CUDA version that the driver supports, and that of nvcc; (0, 0) if unknown.
    pycuda : str
        "" if it can be imported, "missing", or the import's error message.
    nvcc : str
        Its path, or "".
    host_compiler : bool
        Whether the C++ compiler that nvcc needs exists.
    visible_devices : str or None
        CUDA_VISIBLE_DEVICES.
    failure : str
        Why the probe has no results: it timed out or failed.
    """

    system: str
    has_pci_device: bool = False
    driver_library: bool = False
    driver_tool: bool = False
    status: int = 0
    driver_cuda: tuple[int, int] = (0, 0)
    toolkit_cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Gpu, ...] = field(default=())
    pycuda: str = "missing"
    nvcc: str = ""
    host_compiler: bool = False
    visible_devices: str | None = None
    failure: str = ""


def run_probe() -> ProbeResult:
    """Probe in this process, which initializes the driver."""
    status, driver_cuda, gpus = _query_driver()
    nvcc = find_nvcc()
    return ProbeResult(
        system=sys.platform,
        has_pci_device=_has_nvidia_pci_device(),
        driver_library=status is not None,
        driver_tool=shutil.which("nvidia-smi") is not None,
        status=status or 0,
        driver_cuda=driver_cuda,
        toolkit_cuda=_toolkit_version(nvcc),
        gpus=gpus,
        pycuda=_try_pycuda(),
        nvcc=nvcc,
        host_compiler=shutil.which("cl" if sys.platform == "win32" else "g++") is not None,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def run_probe_in_subprocess(timeout: float = 60.0) -> ProbeResult:
    """Probe in another process, so that this one gets neither a context nor a hanging driver."""
    try:
        run = subprocess.run(
            [sys.executable, "-m", "gpu.base.devices.probe"], cwd=ROOT, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return ProbeResult(sys.platform, failure=f"the NVIDIA driver did not answer within {timeout:.0f} s")
    if run.returncode:
        reason = last_line(run.stderr, f"code {run.returncode}")
        return ProbeResult(sys.platform, failure=f"the probe process ended with: {reason}")
    return from_json(run.stdout)


def from_json(text: str) -> ProbeResult:
    """Parse the output of `to_json`."""
    fields: dict[str, Any] = json.loads(text)
    fields["gpus"] = tuple(Gpu(gpu["name"], tuple(gpu["capability"])) for gpu in fields["gpus"])
    fields["driver_cuda"] = tuple(fields["driver_cuda"])
    fields["toolkit_cuda"] = tuple(fields["toolkit_cuda"])
    return ProbeResult(**fields)


def to_json(result: ProbeResult) -> str:
    """Return the results as JSON, for the calling process."""
    return json.dumps(asdict(result))


def driver_version() -> str:
    """Return the NVIDIA driver's version from nvidia-smi; "" if unknown."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return next(iter(output.split("\n"))).strip()


def find_nvcc() -> str:
    """Return the path of nvcc: on PATH, in a toolkit's usual folder, or from the PyPI wheels; "" if there is none."""
    name = "nvcc.exe" if sys.platform == "win32" else "nvcc"
    paths = [folder / "bin" / name for folder in _list_toolkits("cuda_nvcc")]
    return str(shutil.which("nvcc") or next((path for path in paths if path.is_file()), ""))


def find_thrust() -> Path | None:
    """Return the folder that contains Thrust's headers, of a toolkit or of the PyPI wheels; None if there is none."""
    folders = [folder / "include" / part for folder in _list_toolkits("cuda_cccl") for part in ("cccl", "")]
    return next((folder for folder in folders if (folder / "thrust" / "version.h").is_file()), None)


def _list_toolkits(wheel: str) -> list[Path]:
    """Return the usual folders of toolkits, and of PyPI wheels; `wheel` is the folder of a part before CUDA 13."""
    wheels = Path(sysconfig.get_path("purelib"), "nvidia")
    toolkits = [Path(value) for key in ("CUDA_HOME", "CUDA_PATH") if (value := os.environ.get(key))]
    return [*toolkits, Path("/usr/local/cuda"), *sorted(wheels.glob("cu[0-9]*"), reverse=True), wheels / wheel]


def find_device_runtime(nvcc: str) -> str | None:
    """Return the folder of nvcc's toolkit that contains the device runtime; None if there is none."""
    toolkit = Path(nvcc).resolve().parent.parent
    for folder in ("lib64", "lib", "lib/x64", "targets/x86_64-linux/lib"):
        if any((toolkit / folder / name).is_file() for name in ("libcudadevrt.a", "cudadevrt.lib")):
            return str(toolkit / folder)
    return None


def load_driver(*, keeps_lock: bool = False) -> ctypes.CDLL:
    """Return the driver's library, whose calls release Python's lock or keep it; raise OSError without a driver."""
    library = ctypes.PyDLL if keeps_lock else ctypes.CDLL
    return library("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _query_driver() -> tuple[int | None, tuple[int, int], tuple[Gpu, ...]]:
    """Return cuInit's status (None without a driver), the driver's CUDA version, and its GPUs."""
    try:
        cuda = load_driver()
    except OSError:
        return None, (0, 0), ()
    number = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    version = (number.value // 1000, number.value % 1000 // 10)
    status = int(cuda.cuInit(0))
    if status:
        return status, version, ()
    cuda.cuDeviceGetCount(ctypes.byref(number))
    return 0, version, tuple(_read_gpu(cuda, ordinal) for ordinal in range(number.value))


def _read_gpu(cuda: Any, ordinal: int) -> Gpu:
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


def _has_nvidia_pci_device() -> bool:
    """Return whether the PCI bus has an NVIDIA display or compute device; False on systems other than Linux."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            if (device / "vendor").read_text().strip() == _NVIDIA_VENDOR_ID and (
                (device / "class").read_text().startswith("0x03")
            ):
                return True
        except OSError:
            continue
    return False


if __name__ == "__main__":
    print(to_json(run_probe()))
