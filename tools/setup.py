"""Install Lockstep's dependencies and start it: python -m tools.setup COMMAND.

Each step checks whether it is necessary and prints one line if it is, so a second run changes nothing. A command that
needs more rights than the user has is printed instead, for the user to run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu.base.paths import ROOT
from gpu.hosts.pycuda import python_files
from gui.qt import system_libraries
from tools.installation import gpu_support, probe

VENV = ROOT / ".venv"
RUN_REQUIREMENTS = (ROOT / "requirements-run.txt",)
TEST_REQUIREMENTS = (*RUN_REQUIREMENTS, ROOT / "requirements.txt")
DEV_REQUIREMENTS = (*TEST_REQUIREMENTS, ROOT / "requirements-dev.txt")
"""Requirements files of what runs Lockstep, its tests, and its linters."""
CUDA_REQUIREMENTS = ROOT / "requirements-cuda.txt"
DASK_REQUIREMENTS = ROOT / "requirements-dask.txt"
DASK_STAMP = "lockstep-dask"
PYCUDA_STAMP = "lockstep-pycuda.json"
OLDEST_PYTHON = (3, 11)


class SetupError(Exception):
    """Setup cannot continue; the message states the reason and the remedy."""


def print_line(line: str) -> None:
    """Print one line, and flush standard output."""
    print(f"lockstep: {line}", flush=True)


def venv_python(venv: Path) -> Path:
    """Return the path of a virtual environment's Python."""
    return venv / "Scripts" / "python.exe" if platform.system() == "Windows" else venv / "bin" / "python"


def apt_install(packages: Sequence[str], prefix: Sequence[str] | None) -> bool:
    """Install system packages by apt-get; return whether it succeeded, False without `prefix`.

    Parameters
    ----------
    packages : sequence of str
        Names of Debian packages.
    prefix : sequence of str or None
        The command with which apt-get may be run, such as sudo; None if the user may not run it.
    """
    if prefix is None:
        return False
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    # A minimal container has no package lists. If the update fails, existing lists may suffice.
    subprocess.run([*apt, "update"], capture_output=True, check=False)
    command = [*apt, "install", "-y", "--no-install-recommends", *packages]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if process.returncode != 0:
        errors = [line for line in process.stdout.splitlines() if line.startswith("E:")]
        print_line(f"apt-get could not install them: {errors[0] if errors else 'see its output when run by hand'}")
    return process.returncode == 0


def venv_fingerprint(requirements: bytes, python_version: str) -> str:
    """Return a hash of the requirements and Python version; if it changes, a virtual environment is out of date."""
    return hashlib.sha256(requirements + b"\0" + python_version.encode()).hexdigest()


def ensure_venv(venv: Path = VENV) -> Path:
    """Create the virtual environment if it is missing or broken; return the path of its Python."""
    python = venv_python(venv)
    is_active = Path(sys.prefix).resolve() == venv.resolve()
    if importlib.util.find_spec("pip") if is_active else _is_runnable(python, "-m", "pip", "--version"):
        return python
    print_line(f"creating {venv.name} with Python {platform.python_version()}")
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        packages = [f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"]
        if shutil.which("apt-get"):
            print_line(f"installing {packages[0]}")
        if not apt_install(packages, probe.find_apt_prefix()):
            raise SetupError(f"Python's venv module is incomplete. Run: {system_libraries.apt_command(packages)}")
    # If this is a broken environment's Python, its base interpreter recreates the environment.
    base_python = getattr(sys, "_base_executable", sys.executable)
    process = subprocess.run(
        [base_python, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True, check=False
    )
    if process.returncode != 0 or not python.exists():
        errors = (process.stdout + process.stderr).strip().splitlines()
        raise SetupError(f"{venv.name} could not be created: {errors[-1] if errors else 'python -m venv failed'}")
    return python


def _is_runnable(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def ensure_packages(python: Path, venv: Path = VENV, requirements: Sequence[Path] = RUN_REQUIREMENTS) -> None:
    """Install the requirements files that have changed since their last installation.

    Raises
    ------
    SetupError
        If pip fails.
    """
    stamps = {}
    for file in requirements:
        stamp, fingerprint = (
            venv / f"lockstep-{file.stem}",
            venv_fingerprint(file.read_bytes(), platform.python_version()),
        )
        if not stamp.exists() or stamp.read_text("utf-8") != fingerprint:
            stamps[file] = stamp, fingerprint
    if not stamps:
        return
    print_line(f"downloading {_list_packages(*stamps)} from PyPI, if missing; the first time takes about a minute")
    if not _install_requirements(python, *stamps):
        raise SetupError(
            "The Python packages could not be installed; see pip's output above. Is there a network connection?"
        )
    for stamp, fingerprint in stamps.values():
        stamp.write_text(fingerprint, "utf-8")


def _list_packages(*requirements: Path) -> str:
    """Return the names of the packages that requirements files list."""
    lines = [line for file in requirements for line in file.read_text("utf-8").splitlines()]
    return ", ".join(name[0] for line in lines if (name := re.match(r"[A-Za-z][\w.-]*", line)))


def _install_requirements(python: Path, *requirements: Path) -> bool:
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    files = [word for file in requirements for word in ("-r", str(file))]
    # Python compiles each module at its first import. Compiling all modules, most of them unused, takes seconds.
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", *files]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def ensure_dask(
    python: Path, venv: Path = VENV, requirements: Path = DASK_REQUIREMENTS, *, retry: bool = False
) -> None:
    """Install Dask, which runs patterns on several GPUs and machines; print a failure and continue.

    Parameters
    ----------
    python : Path
        The virtual environment's interpreter.
    venv : Path
        The virtual environment, in which the state of the installation is stored.
    requirements : Path
        The requirements file of Dask.
    retry : bool
        Whether to try again if the same installation has failed before.
    """
    stamp = venv / DASK_STAMP
    fingerprint = venv_fingerprint(requirements.read_bytes(), platform.python_version())
    last = stamp.read_text("utf-8") if stamp.exists() else ""
    if last == fingerprint or (last == f"{fingerprint} failed" and not retry):
        return
    print_line(f"downloading {_list_packages(requirements)} from PyPI, if missing")
    failed = not _install_requirements(python, requirements)
    stamp.write_text(f"{fingerprint} failed" if failed else fingerprint, "utf-8")
    if failed:
        print_line("no Dask, which several GPUs need: see pip's output above (`make setup` tries again)")


def ensure_qt_libraries(libraries: Mapping[str, str], purpose: str) -> None:
    """Install the system libraries that Qt needs.

    Raises
    ------
    SetupError
        If they cannot be installed; the message has the command to run.
    """
    packages = probe.missing_qt_packages(libraries)
    if not packages:
        return
    if not shutil.which("apt-get"):
        names = ", ".join(library for library, package in libraries.items() if package in packages) or "a font"
        raise SetupError(f"{purpose} needs {names}: install them with this system's package manager.")
    prefix = probe.find_apt_prefix()
    if prefix is not None:
        print_line(f"installing Qt's system libraries: {' '.join(packages)}")
    if not apt_install(packages, prefix):
        raise SetupError(
            f"{purpose} needs system libraries that are missing. Run: {system_libraries.apt_command(packages)}"
        )


def ensure_pycuda(python: Path, venv: Path = VENV, *, retry: bool = False) -> None:
    """Install PyCUDA if there is an NVIDIA driver; print a failure and continue."""
    driver = probe.driver_cuda_version()
    if driver is None or platform.system() != "Linux":
        return
    stamp = venv / PYCUDA_STAMP
    key = f"{driver} {platform.python_version()} {venv_fingerprint(CUDA_REQUIREMENTS.read_bytes(), '')}"
    last = json.loads(stamp.read_text("utf-8")) if stamp.exists() else {}
    if last.get("key") == key and not (retry and last.get("failure")):
        if last["failure"]:
            print_line(f"no PyCUDA: {last['failure']}; kernels run on the simulator (`make setup` tries again)")
        return
    failure = _install_pycuda(python, venv, driver)
    stamp.write_text(json.dumps({"key": key, "failure": failure}), "utf-8")
    if failure:
        print_line(f"PyCUDA could not be installed: {failure}; kernels run on the simulator")


def _install_pycuda(python: Path, venv: Path, driver: tuple[int, int]) -> str:
    if _is_runnable(python, "-c", "import pycuda.driver"):
        return ""
    missing = probe.missing_build_packages()
    if missing and (prefix := probe.find_apt_prefix()) is not None:
        print_line(f"installing packages to build PyCUDA: {' '.join(missing)}")
        apt_install(missing, prefix)
        missing = probe.missing_build_packages()
    plan = gpu_support.plan_build(driver, probe.find_toolkits(), missing)
    if plan.obstacle:
        return plan.obstacle + (
            f" (run: {system_libraries.apt_command(missing)})" if missing and shutil.which("apt-get") else ""
        )
    source = f"the CUDA toolkit in {plan.toolkit.folder}" if plan.toolkit else "CUDA's compiler from PyPI"
    packages = _list_packages(CUDA_REQUIREMENTS)
    print_line(f"downloading {packages} from PyPI and building PyCUDA with {source}; this takes two minutes, once")
    return gpu_support.install(python, CUDA_REQUIREMENTS, plan, probe.driver_library(), venv)


def ensure_pycuda_files(python: Path, venv: Path = VENV, *, retry: bool = False) -> None:
    """Fetch the files that PyCUDA scripts need on the simulator; print a failure and continue."""
    if not python_files.files_folder(venv).exists():
        print_line("downloading PyCUDA's source from PyPI for its Python files, which scripts on the simulator use")
    if failure := python_files.ensure_files(python, venv, retry=retry):
        print_line(f"no PyCUDA scripts on the simulator: {failure} (`make setup` tries again)")


def prepare(*, window: bool, requirements: Sequence[Path] = RUN_REQUIREMENTS, retry: bool = False) -> Path:
    """Install all missing dependencies; return the path of the virtual environment's Python.

    Parameters
    ----------
    window : bool
        Whether the window needs to open, not only Qt's offscreen platform.
    requirements : sequence of Path
        Requirements files of the packages.
    retry : bool
        Whether to retry optional installations that failed before.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(f"Python 3.11 or newer is needed; this is {platform.python_version()}.")
    python = ensure_venv()
    ensure_packages(python, requirements=requirements)
    if window:
        ensure_qt_libraries(system_libraries.WINDOW_LIBRARIES, "The window")
    else:
        ensure_qt_libraries(system_libraries.OFFSCREEN_LIBRARIES, "Qt")
    ensure_pycuda(python, retry=retry)
    # These would delay the first window: `run` leaves Dask to `make setup`, and a script fetches PyCUDA's files.
    if requirements != RUN_REQUIREMENTS:
        ensure_dask(python, retry=retry)
        ensure_pycuda_files(python, retry=retry)
    return python


def start(python: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replace this process by the program; on Windows, run the program and return its exit status."""
    command = [str(python), *arguments]
    if platform.system() != "Windows":
        os.chdir(ROOT)
        os.execve(python, command, dict(environment))
    return subprocess.run(command, env=dict(environment), cwd=ROOT, check=False).returncode


def run(arguments: Sequence[str]) -> int:
    """Open the window; without a display, save pictures of it instead."""
    if not probe.has_display():
        print_line("no display found: saving pictures of the window in tour/ instead")
        return tour(arguments)
    return start(prepare(window=True), ["main.py", *arguments], os.environ)


def tour(arguments: Sequence[str]) -> int:
    """Save pictures of the window."""
    return _headless("main.py", "tour", *(arguments or ["tour"]))


def bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks."""
    return _headless("main.py", "bench", *arguments)


def test(arguments: Sequence[str]) -> int:
    """Run every test of the first tier on every core; with arguments, run pytest with them."""
    if arguments:
        return _headless("-m", "pytest", *arguments, requirements=TEST_REQUIREMENTS)
    return _run_tier("not sweep")


def sweep(arguments: Sequence[str]) -> int:
    """Run the exhaustive tier: products of cases, then mutants, fuzzing, kills, barriers, flaky tests, lessons."""
    if arguments:
        return _headless("-m", "pytest", "-m", "sweep", *arguments, requirements=TEST_REQUIREMENTS)
    codes = [_run_tier("sweep")]
    tools = ("mutants", "lesson_mutants", "fuzz", "kills", "barriers", "flaky")
    commands = [["-m", f"tools.{tool}", *(("--times", "3") if tool == "flaky" else ())] for tool in tools]
    codes += [
        subprocess.run([venv_python(VENV), *command], env=_offscreen(), cwd=ROOT, check=False).returncode
        for command in (*commands, ["main.py", "lessons", "check"])
    ]
    return max(codes)


def _run_tier(marker: str) -> int:
    """Run the tests of a tier, then compare the executed with the collected cases; return the exit status."""
    python = prepare(window=False, requirements=TEST_REQUIREMENTS)
    # A file's tests stay in one process, since they share built kernels and other slow fixtures. There is one worker
    # more than cores, since many tests wait for another process.
    parallel = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile", "--no-loadscope-reorder")
    # The patterns' tests run on the simulator. The first tier tests the simulated GPU driver once per variant, and the
    # exhaustive tier with all sizes.
    twins = "" if marker == "sweep" else "tests/gpu/patterns/"

    def run(*command: str) -> int:
        return subprocess.run((python, "-m", *command), env=_offscreen(), cwd=ROOT, check=False).returncode

    with tempfile.TemporaryDirectory(prefix="lockstep-ledger-") as folder:
        ledger = f"--ledger={folder}"
        codes = [run("pytest", *parallel, "-m", f"{marker} and not alone", ledger)]
        files = _find_marked_files(Path(folder), "alone")
        codes.append(run("pytest", "-m", f"{marker} and alone", "--reruns", "2", *files, ledger))
        files = [
            file
            for file in _find_marked_files(Path(folder), "gpu")
            if file.startswith("tests/gpu/") and not (twins and file.startswith(twins))
        ]
        codes.append(run("pytest", *parallel, "-m", "gpu and not hardware", "--driver", "simulator", *files, ledger))
        if marker == "not sweep":
            codes.append(run("tests.ledger", folder))
    return max(0 if code == _NO_TESTS else code for code in codes)


def _find_marked_files(ledger: Path, marker: str) -> list[str]:
    """Return the test files with a marker that the first pass collected: to collect all of them takes ten seconds."""
    files = set()
    for path in ledger.glob("collected-*.json"):
        cases = json.loads(path.read_text("utf-8"))
        files |= {case.partition("::")[0] for case, markers in cases.items() if marker in markers}
    return sorted(files)


_NO_TESTS = 5
"""Pytest's exit status if it selects no tests."""


def _offscreen() -> dict[str, str]:
    return os.environ | {"QT_QPA_PLATFORM": "offscreen"}


def _headless(*arguments: str, requirements: Sequence[Path] = RUN_REQUIREMENTS) -> int:
    return start(prepare(window=False, requirements=requirements), arguments, _offscreen())


def setup(_arguments: Sequence[str]) -> int:
    """Install everything, with the packages of tests and linters, and retry what failed before."""
    python = prepare(window=probe.has_display(), requirements=DEV_REQUIREMENTS, retry=True)
    print_line(f"ready: {shlex.quote(os.path.relpath(python))} main.py opens the window")
    return 0


def packages(_arguments: Sequence[str]) -> int:
    """Install only the Python packages, with those of tests and linters."""
    ensure_packages(ensure_venv(), requirements=DEV_REQUIREMENTS)
    return 0


COMMANDS = {command.__name__: command for command in (setup, run, test, sweep, tour, bench, packages)}


def main(arguments: Sequence[str]) -> int:
    """Run one command; return its exit status."""
    if not arguments or arguments[0] not in COMMANDS:
        print_line(f"python -m tools.setup takes one of {', '.join(COMMANDS)}")
        return 2
    try:
        return COMMANDS[arguments[0]](arguments[1:])
    except SetupError as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
