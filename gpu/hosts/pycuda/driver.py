"""Installation of the modules that replace `pycuda._driver` and `pycuda._pvt_struct`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from gpu.base import folders
from gpu.base.errors import EngineUnavailableError
from gpu.base.paths import IS_INSTALLED
from gpu.hosts.pycuda import enumerations, faults, modules, packing, python_files, random_numbers, streams
from gpu.hosts.pycuda.bindings import BINDINGS
from gpu.hosts.pycuda.compiler import Compiler
from gpu.hosts.pycuda.memory import arrays, host_memory, pools
from gpu.hosts.pycuda.names import MODULE, NAMES

# Importing a module registers its names.
_PARTS = (arrays, enumerations, faults, host_memory, modules, pools, random_numbers, streams)


def python_layer() -> Path:
    """Return the folder of PyCUDA's own Python files, below `pycuda`: in a checkout's virtual environment, or data."""
    if IS_INSTALLED:
        return folders.data_folder() / f"pycuda-{python_files.VERSION}"
    return python_files.files_folder(Path(sys.prefix))


def explain_unavailable() -> str:
    """Return why PyCUDA scripts cannot run here, as a sentence; "" if they can."""
    if not python_files.are_present(python_layer()):
        return f"PyCUDA's Python files are not in {python_layer()}."
    try:
        import platformdirs  # noqa: F401
        import pytools  # noqa: F401
    except ImportError as error:
        return f"PyCUDA needs a package that is not installed: {error}."
    return ""


def fetch_missing_files(report: Callable[[str], None]) -> None:
    """Download PyCUDA's Python files if they are missing; report this first, as one line.

    Raises
    ------
    EngineUnavailableError
        If they cannot be downloaded or stored.
    """
    target = python_layer()
    if python_files.are_present(target):
        return
    report(f"lockstep: Fetching the Python files of PyCUDA {python_files.VERSION} with pip, once.")
    failure = python_files.fetch(Path(sys.executable), target)
    if failure and not python_files.are_present(target):  # another process may have stored them meanwhile
        raise EngineUnavailableError(
            f"PyCUDA's Python files cannot be fetched: {failure}.",
            advice="Try again with a network connection to the package index.",
        )


def install() -> None:
    """Make `import pycuda` in this process use PyCUDA's own Python files on top of the simulator.

    Raises
    ------
    EngineUnavailableError
        If these files are missing.
    """
    if reason := explain_unavailable():
        raise EngineUnavailableError(reason, advice="`lockstep pycuda` fetches them from PyPI.")
    import pytools.prefork

    driver, struct = ModuleType(MODULE), ModuleType("pycuda._pvt_struct")
    driver.__dict__.update(NAMES)
    struct.__dict__.update(pack=packing.pack, calcsize=packing.calcsize)
    sys.modules[MODULE], sys.modules[struct.__name__] = driver, struct
    # Installed cuda-bindings would call a GPU's driver.
    bindings = {name: ModuleType(name) for name in ("cuda", "cuda.bindings", "cuda.bindings.driver")}
    for name, module in bindings.items():
        module.__path__ = []
        if parent := bindings.get(name.rpartition(".")[0]):
            setattr(parent, name.rpartition(".")[2], module)
    bindings["cuda.bindings.driver"].__dict__.update(BINDINGS)
    sys.modules.update(bindings)
    sys.path.insert(0, str(python_layer()))
    pytools.prefork.forker = Compiler(pytools.prefork.forker)  # type: ignore[assignment]
    os.environ["PYCUDA_DISABLE_CACHE"] = "1"  # sources are always compiled again
    # On import, PyCUDA searches for a toolkit, to link its device runtime and on Windows.
    toolkit = python_layer() / "toolkit"
    os.environ["CUDA_ROOT"] = os.environ["CUDA_PATH"] = str(toolkit)
    os.environ["PATH"] = f"{toolkit / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
