"""Requirements of tests beyond requirements.txt, as markers: what is missing, and the command that supplies it.

Every skip of the suite stands here, so that `make test` can list them by reason.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from gpu.base.devices.probe import find_nvcc
from gpu.base.paths import ROOT

SHARED = ROOT.parent / "shared"
"""The teaching texts and their listings, beside the checkout; they are not part of the project."""

LISTINGS = "the teaching texts in ../shared: they are not published, so nothing supplies them"
DASK = "Dask: pip install -r requirements-dask.txt"
IPYTHON = "IPython: pip install ipython"
PYCUDA = "PyCUDA's Python files: make setup"
COMPILER = "a C++ compiler: apt-get install g++"
LINUX = "Linux: run the tests on Linux too"
SYSTEM_CALL_FILTERS = "system call filters (seccomp): run the tests on a Linux kernel that has them"
GPU = "an NVIDIA GPU: make gpu-test on a machine that has one"


def skip_reason(requirement: str) -> str:
    """Return the sentence of a skip."""
    return f"needs {requirement}"


def needs(is_present: object, requirement: str) -> pytest.MarkDecorator:
    """Return a marker that skips a test where a requirement is missing."""
    return pytest.mark.skipif(not is_present, reason=skip_reason(requirement))


def skip(requirement: str) -> None:
    """Skip the running test."""
    pytest.skip(skip_reason(requirement))


def module(name: str, requirement: str) -> object:
    """Import a module, or skip where it is not installed."""
    return pytest.importorskip(name, reason=skip_reason(requirement))


linux = needs(sys.platform.startswith("linux"), LINUX)
posix = needs(os.name == "posix", "signals and file modes of POSIX: run the tests on Linux too")
proc = needs(Path("/proc/self/environ").exists(), "/proc: run the tests on Linux too")
named_pipes = needs(hasattr(os, "mkfifo"), "named pipes: run the tests on Linux too")
unnamed_files = needs(hasattr(os, "O_TMPFILE"), "O_TMPFILE: run the tests on Linux too")
full_device = needs(Path("/dev/full").exists(), "/dev/full: run the tests on Linux too")
nvcc = needs(find_nvcc(), "nvcc: pip install nvidia-cuda-nvcc, or install the CUDA toolkit")
git = needs(shutil.which("git"), "git: apt-get install git")
openssl = needs(shutil.which("openssl"), "openssl: apt-get install openssl")
cplusplus = needs(any(map(shutil.which, ("g++", "clang++", "c++"))), COMPILER)
listings = needs((SHARED / "listings").is_dir(), LISTINGS)
registry = needs(
    os.environ.get("LOCKSTEP_REGISTRY") == "1", "a package registry: LOCKSTEP_REGISTRY=1 make test ARGS=tests/tools"
)
dask = needs(importlib.util.find_spec("distributed"), DASK)
