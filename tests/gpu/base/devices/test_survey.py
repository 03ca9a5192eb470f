from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpu.base.devices import probe
from gpu.base.devices import survey as devices
from gpu.base.devices.probe import Gpu, ProbeResult
from gpu.base.devices.survey import DeviceStatus, check_gpus, check_simulator, list_device_statuses

GPU = Gpu("NVIDIA H200", (9, 0))
GOOD = ProbeResult(
    system="linux",
    has_pci_device=True,
    driver_library=True,
    driver_tool=True,
    driver_cuda=(13, 0),
    toolkit_cuda=(13, 0),
    gpus=(GPU,),
    pycuda="",
    nvcc="/usr/local/cuda/bin/nvcc",
    host_compiler=True,
)
NOTHING = ProbeResult("linux")


def test_a_gpu_with_everything_is_usable():
    assert check_gpus(GOOD) == [DeviceStatus("cuda", "NVIDIA H200", True)]
    assert check_gpus(replace(GOOD, driver_cuda=(13, 0), toolkit_cuda=(13, 2)))[0].usable
    assert check_gpus(replace(GOOD, toolkit_cuda=(14, 0), driver_cuda=(14, 0)))[0].usable


@pytest.mark.parametrize(
    ("facts", "reason", "remedy"),
    [
        (
            NOTHING,
            "No NVIDIA driver is installed.",
            "The simulator runs all kernels without a GPU. With a GPU: Install",
        ),
        (
            replace(NOTHING, has_pci_device=True),
            "There is an NVIDIA GPU, but no NVIDIA driver is installed.",
            "Install NVIDIA's driver",
        ),
        (
            replace(NOTHING, driver_tool=True),
            "nvidia-smi is installed, but the driver's library libcuda is not found.",
            "In a container, start it with `--gpus all`",
        ),
        (ProbeResult("darwin"), "NVIDIA has no driver for macOS.", "The simulator runs all kernels"),
        (
            replace(GOOD, status=100, gpus=()),
            "The NVIDIA driver is installed, but it finds no GPU.",
            "Check the output of nvidia-smi -L; a container needs `--gpus all`.",
        ),
        (
            replace(GOOD, status=100, gpus=(), visible_devices="7"),
            "CUDA_VISIBLE_DEVICES=7 hides every GPU.",
            "Unset CUDA_VISIBLE_DEVICES",
        ),
        (
            replace(GOOD, gpus=(), visible_devices=""),
            "CUDA_VISIBLE_DEVICES= hides every GPU.",
            "Unset CUDA_VISIBLE_DEVICES",
        ),
        (
            replace(GOOD, status=803, gpus=()),
            "The NVIDIA driver's library and its kernel module do not match (CUDA error 803).",
            "Restart the machine",
        ),
        (
            replace(GOOD, status=999, gpus=()),
            "The NVIDIA driver does not start (CUDA error 999).",
            "Check the output of nvidia-smi.",
        ),
        (
            replace(GOOD, pycuda="missing"),
            "PyCUDA is not installed.",
            "Run `pip install -r requirements-cuda.txt`, or run `make setup`.",
        ),
        (
            replace(GOOD, pycuda="libcurand.so.10: cannot open shared object file"),
            "PyCUDA cannot be loaded: libcurand.so.10: cannot open shared object file.",
            "Rebuild it for this driver",
        ),
        (
            replace(GOOD, nvcc="", toolkit_cuda=(0, 0)),
            "The CUDA compiler nvcc is not found.",
            "Install the CUDA toolkit",
        ),
        (
            replace(GOOD, toolkit_cuda=(0, 0)),
            "The CUDA compiler /usr/local/cuda/bin/nvcc does not run.",
            "Reinstall the CUDA toolkit",
        ),
        (replace(GOOD, host_compiler=False), "nvcc needs a C++ compiler, and g++ is not found.", "Install it"),
        (
            replace(GOOD, system="win32", host_compiler=False),
            "nvcc needs Visual C++, and cl.exe is not found.",
            "Start from a Developer Command Prompt.",
        ),
        (
            replace(GOOD, driver_cuda=(12, 8)),
            "The driver is too old: it supports CUDA 12.8, nvcc is 13.0.",
            "Update the driver, or install a toolkit of CUDA 12.",
        ),
        (
            replace(GOOD, gpus=(Gpu("GTX 1080", (6, 1)),)),
            "CUDA 13.0 does not support its compute capability 6.1.",
            "Install an older toolkit",
        ),
        (
            replace(NOTHING, failure="the NVIDIA driver did not answer within 60 s"),
            "The search for GPUs failed: the NVIDIA driver did not answer within 60 s.",
            "Restart the machine, then try nvidia-smi.",
        ),
    ],
)
def test_a_gpu_that_is_not_usable_has_its_reason_and_remedy(facts: ProbeResult, reason: str, remedy: str):
    (status,) = check_gpus(facts)
    assert status.engine == "cuda"
    assert not status.usable
    assert status.reason == reason
    assert status.remedy.startswith(remedy)


def test_each_gpu_is_judged_by_itself():
    statuses = check_gpus(replace(GOOD, gpus=(GPU, Gpu("GTX 1080", (6, 1)))))
    assert [(status.name, status.usable) for status in statuses] == [("NVIDIA H200", True), ("GTX 1080", False)]


def test_the_simulator_comes_last_with_the_processor_s_name():
    found = list_device_statuses(lambda: GOOD)
    assert [status.engine for status in found] == ["cuda", "simulator"]
    assert found[1].usable
    assert found[1].name.endswith(("core", "cores"))


def test_a_simulator_without_its_front_end_says_what_to_install():
    status = check_simulator(False)
    assert not status.usable
    assert status.reason == "The package libclang, which reads the kernels, is not installed."
    assert "requirements.txt" in status.remedy


def test_facts_survive_the_way_between_processes():
    assert probe.from_json(probe.to_json(GOOD)) == GOOD


def _list_driver_parts() -> set[str]:
    """Return the modules and libraries of NVIDIA's driver that this process has loaded, also by other tests."""
    libraries = Path("/proc/self/maps")
    lines = libraries.read_text().splitlines() if libraries.exists() else []
    modules = {name for name in sys.modules if name.partition(".")[0] == "pycuda"}
    return modules | {line.split()[-1] for line in lines if "libcuda.so" in line}


def test_the_real_probe_answers_and_leaves_nothing_in_this_process():
    loaded = _list_driver_parts()
    facts = probe.run_probe_in_subprocess()
    assert facts.failure == ""
    assert facts.system == sys.platform
    assert _list_driver_parts() == loaded


def test_a_driver_that_hangs_is_told(monkeypatch: pytest.MonkeyPatch):
    def hang(*arguments: object, **options: object) -> None:
        raise subprocess.TimeoutExpired("probe", 5)

    monkeypatch.setattr(subprocess, "run", hang)
    facts = probe.run_probe_in_subprocess(5)
    assert facts.failure == "the NVIDIA driver did not answer within 5 s"
    assert not devices.check_gpus(facts)[0].usable


def test_a_probe_that_dies_is_told(monkeypatch: pytest.MonkeyPatch):
    def die(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], -11, "", "")

    monkeypatch.setattr(subprocess, "run", die)
    assert probe.run_probe_in_subprocess().failure == "the probe process ended with: code -11"


@pytest.mark.gpu
@pytest.mark.hardware
def test_a_gpu_that_the_tests_use_is_usable():
    gpus = [status for status in list_device_statuses() if status.engine == "cuda"]
    assert gpus
    assert all(status.usable for status in gpus), gpus
