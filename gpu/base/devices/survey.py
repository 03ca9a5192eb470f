"""Available devices, and why others are unavailable, with remedies."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from gpu.base.devices import probe
from gpu.base.devices.probe import Gpu, ProbeResult
from gpu.base.devices.processor import count_cores, processor_name
from gpu.base.installation import OR_MAKE_SETUP, format_install_command

_SIMULATOR_HINT = "The simulator runs all kernels without a GPU."
_INSTALL_DRIVER = "Install NVIDIA's driver (https://www.nvidia.com/drivers) and restart the machine."
_INSTALL_PYCUDA = f"Run {format_install_command('cuda')}{OR_MAKE_SETUP}."

_NO_DEVICE, _DRIVER_MISMATCH, _NOT_SUPPORTED_BY_DRIVER = 100, 803, 804

_OLDEST_CAPABILITIES = {13: (7, 5), 12: (5, 0), 11: (3, 5)}
"""The oldest compute capability that a toolkit's nvcc compiles for, by its major version."""


@dataclass(frozen=True)
class DeviceStatus:
    """A device, whether kernels can run on it, and if not, the reason and the remedy.

    Parameters
    ----------
    engine : str
        "cuda" or "simulator".
    name : str
        Its name from the driver or the operating system.
    reason, remedy : str
        Empty if it is usable.
    """

    engine: str
    name: str
    usable: bool
    reason: str = ""
    remedy: str = ""


def list_device_statuses(run_probe: Callable[[], ProbeResult] = probe.run_probe_in_subprocess) -> list[DeviceStatus]:
    """Return the status of every NVIDIA GPU, or one entry with the reason why there is none; then the simulator's."""
    return [*check_gpus(run_probe()), check_simulator(importlib.util.find_spec("clang") is not None)]


def check_gpus(probe_result: ProbeResult) -> list[DeviceStatus]:
    """Return the status of each GPU, or one status with the reason why none is available."""
    obstacle = _explain_missing_gpu(probe_result)
    if obstacle:
        return [DeviceStatus("cuda", "NVIDIA GPU", False, *obstacle)]
    statuses = []
    for gpu in probe_result.gpus:
        obstacle = (
            _explain_missing_pycuda(probe_result)
            or _explain_missing_compiler(probe_result)
            or _explain_old_gpu(gpu, probe_result)
        )
        statuses.append(DeviceStatus("cuda", gpu.name, not obstacle, *(obstacle or ("", ""))))
    return statuses


def check_simulator(has_clang: bool) -> DeviceStatus:
    """Return the simulator's status."""
    count = count_cores()
    name = f"{processor_name()}, {count} core{'s' if count > 1 else ''}"
    if has_clang:
        return DeviceStatus("simulator", name, True)
    reason = "The package libclang, which reads the kernels, is not installed."
    return DeviceStatus("simulator", name, False, reason, f"Run {format_install_command()}{OR_MAKE_SETUP}.")


def _explain_missing_gpu(probe_result: ProbeResult) -> tuple[str, str] | None:
    """Return why the driver reports no GPU, and the remedy."""
    if probe_result.failure:
        return f"The search for GPUs failed: {probe_result.failure}.", "Restart the machine, then try nvidia-smi."
    if probe_result.system == "darwin":
        return "NVIDIA has no driver for macOS.", _SIMULATOR_HINT
    if not probe_result.driver_library:
        if probe_result.driver_tool:
            reason = "nvidia-smi is installed, but the driver's library libcuda is not found."
            return reason, "In a container, start it with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility."
        if probe_result.has_pci_device:
            return "There is an NVIDIA GPU, but no NVIDIA driver is installed.", _INSTALL_DRIVER
        return "No NVIDIA driver is installed.", f"{_SIMULATOR_HINT} With a GPU: {_INSTALL_DRIVER}"
    if probe_result.status in (_DRIVER_MISMATCH, _NOT_SUPPORTED_BY_DRIVER):
        reason = f"The NVIDIA driver's library and its kernel module do not match (CUDA error {probe_result.status})."
        return reason, "Restart the machine; in a container, use an image with a CUDA version not above the driver's."
    if probe_result.status not in (0, _NO_DEVICE):
        return (
            f"The NVIDIA driver does not start (CUDA error {probe_result.status}).",
            "Check the output of nvidia-smi.",
        )
    if probe_result.gpus:
        return None
    if probe_result.visible_devices is not None:
        reason = f"CUDA_VISIBLE_DEVICES={probe_result.visible_devices} hides every GPU."
        return reason, "Unset CUDA_VISIBLE_DEVICES, or name a GPU that nvidia-smi -L lists."
    reason = "The NVIDIA driver is installed, but it finds no GPU."
    return reason, "Check the output of nvidia-smi -L; a container needs `--gpus all`."


def _explain_missing_pycuda(probe_result: ProbeResult) -> tuple[str, str] | None:
    if not probe_result.pycuda:
        return None
    if probe_result.pycuda == "missing":
        return "PyCUDA is not installed.", _INSTALL_PYCUDA
    return f"PyCUDA cannot be loaded: {probe_result.pycuda}.", f"Rebuild it for this driver: {_INSTALL_PYCUDA}"


def _explain_missing_compiler(probe_result: ProbeResult) -> tuple[str, str] | None:
    if not probe_result.nvcc:
        reason = "The CUDA compiler nvcc is not found."
        return reason, f"Install the CUDA toolkit and put nvcc's folder on PATH{OR_MAKE_SETUP}."
    if not probe_result.toolkit_cuda[0]:
        return (
            f"The CUDA compiler {probe_result.nvcc} does not run.",
            f"Reinstall the CUDA toolkit{OR_MAKE_SETUP}.",
        )
    if not probe_result.host_compiler:
        if probe_result.system == "win32":
            return "nvcc needs Visual C++, and cl.exe is not found.", "Start from a Developer Command Prompt."
        return "nvcc needs a C++ compiler, and g++ is not found.", "Install it, for example by `apt install g++`."
    if probe_result.driver_cuda[0] < probe_result.toolkit_cuda[0]:
        driver, toolkit = _format_version(probe_result.driver_cuda), _format_version(probe_result.toolkit_cuda)
        reason = f"The driver is too old: it supports CUDA {driver}, nvcc is {toolkit}."
        return reason, f"Update the driver, or install a toolkit of CUDA {probe_result.driver_cuda[0]}."
    return None


def _explain_old_gpu(gpu: Gpu, probe_result: ProbeResult) -> tuple[str, str] | None:
    oldest = _OLDEST_CAPABILITIES.get(probe_result.toolkit_cuda[0])
    if oldest is None or gpu.capability >= oldest:
        return None
    toolkit, capability = _format_version(probe_result.toolkit_cuda), _format_version(gpu.capability)
    reason = f"CUDA {toolkit} does not support its compute capability {capability}."
    return reason, "Install an older toolkit: CUDA 12 supports 5.0 and later, CUDA 11 3.5 and later."


def _format_version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
