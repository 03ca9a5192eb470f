"""What every test gets: no screen, settings of its own, and a failure when something complains in the log."""

from __future__ import annotations

import gc
import importlib
import itertools
import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from gpu.base.child_processes import ONE_THREAD
from gpu.base.paths import ROOT
from tests import needs
from tests.command_server import CommandServer
from tests.engine_forks import engine_context  # noqa: F401 - a fixture
from tests.ledger import LedgerPlugin
from tests.leftovers import LeftoversPlugin

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Before NumPy is imported. There is a worker per core, and threads of BLAS that wait for each other spin.
os.environ.update(ONE_THREAD)
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Without it each of hundreds of processes compiles every module again, and pytest rewrites every test file.
    sys.dont_write_bytecode = False
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In a shell's background Ctrl+C is ignored, and so it would be by every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time: a change is judged by what it did. `--hypothesis-profile=default` looks for new ones.
# None has a deadline: the first one compiles a kernel, on a machine that others may use.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

# Thousands of tests keep much alive, built modules above all: to look through it all the time takes a tenth of the run.
gc.set_threshold(20_000, 20, 100)

_COUNT_DEVICES = "import pycuda.driver as cuda; cuda.init(); print(cuda.Device.count())"


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker:
        leftovers = LeftoversPlugin()
        config.pluginmanager.register(leftovers)
        # For fixtures of a module too, which are there before those of a test; workers and all processes inherit it.
        os.environ["LOCKSTEP_CACHE"] = str(_make_cache(leftovers.folder))
    if (folder := config.getoption("--ledger")) is not None:
        config.pluginmanager.register(LedgerPlugin(Path(folder), worker))
    if config.getoption("--driver") == "simulator":
        from gpu.hosts.pycuda import driver
        from gpu.run import repetition

        if not driver.explain_unavailable():
            driver.install()
        repetition.MAX_REPETITIONS = repetition.MIN_REPETITIONS = 1  # the times mean nothing


@cache
def _explain_missing_gpu(driver: str | None) -> str:
    """Return why GPU tests cannot run, or "". Another process looks, so that none of CUDA stays in this one."""
    if driver == "simulator":
        from gpu.hosts.pycuda.driver import explain_unavailable

        return explain_unavailable()
    try:
        looked = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _COUNT_DEVICES], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no CUDA device: {error}"
    if looked.returncode == 0 and looked.stdout.strip() not in ("", "0"):
        return ""
    explain_unavailable = looked.stderr.strip().splitlines()
    return f"no CUDA device: {explain_unavailable[-1] if explain_unavailable else 'none was found'}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have each worker import another part of the test files first, so that it compiles that part.

    In a new checkout no module is compiled. Workers that collect in the same order compile all of them at the same
    time. In different orders, each reads from the disk what the others have compiled.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    arguments = [Path(argument.partition("::")[0]) for argument in session.config.args]
    files = sorted({file for path in arguments for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        with suppress(Exception, pytest.skip.Exception):  # collection reports it
            importlib.import_module(".".join(file.resolve().relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    # Pytest collects garbage five times in the end, each time through all that the tests have kept: seconds.
    gc.freeze()


@pytest.fixture
def only_new_garbage() -> None:
    """Let `gc.collect` look only through what the test makes, not through all that earlier tests have kept."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-gpu", action="store_true", help="fail, rather than skip, the GPU tests without a GPU")
    parser.addoption(
        "--driver", choices=["simulator"], help="have the GPU tests run on what stands in for PyCUDA's driver"
    )
    parser.addoption("--ledger", metavar="FOLDER", help="write the collected and executed cases there: tests/ledger.py")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and the tests of each, in another order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (seed := config.getoption("--shuffle")) is not None:
        # A file's tests stay together: they share what took long to prepare.
        items.sort(key=lambda item: random.Random(f"{seed} {item.nodeid}").random())
        items.sort(key=lambda item: random.Random(f"{seed} {item.nodeid.partition('::')[0]}").random())
    else:
        # Files of a window take longest: they begin first, so that all workers end together.
        items.sort(key=lambda item: not item.nodeid.startswith("tests/gui/"))
    wanted = [item for item in items if item.get_closest_marker("gpu")]
    if not wanted or config.getoption("--require-gpu"):
        return
    driver = config.getoption("--driver")
    complaint = _explain_missing_gpu(driver)
    for item in wanted:
        if complaint or (driver and item.get_closest_marker("hardware")):
            item.add_marker(pytest.mark.skip(reason=needs.skip_reason(needs.GPU)))


@pytest.fixture(autouse=True)
def _no_unexpected_log(caplog: pytest.LogCaptureFixture):
    """Fail a test that logs a warning or worse. One that means to looks at `caplog` and then calls `caplog.clear()`."""
    yield
    complaints = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    assert not complaints, f"unexpected log messages: {complaints}"


@pytest.fixture(scope="session")
def command_server() -> Iterator[CommandServer]:
    """Run Lockstep's commands without importing their modules each time."""
    server = CommandServer()
    yield server
    server.close()


_SETTINGS_FOLDERS = itertools.count()


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's settings out of the tests, and the tests out of them."""
    # `mktemp` would list all folders for each new one: 3 ms after 6,000 tests. Who saves settings creates the folder.
    folder = tmp_path_factory.getbasetemp() / "settings" / str(next(_SETTINGS_FOLDERS))
    # For the processes that a test starts.
    monkeypatch.setenv("LOCKSTEP_SETTINGS", str(folder / "settings.json"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))


def _make_cache(other_folder: Path) -> Path:
    """Return the cache of all tests, whichever process they run in: machine code is made once.

    An entry's key changes with the compiler's source, LLVM and the processor, so that the next run has it too.
    """
    kept = ROOT / ".pytest_cache" / "compiled"
    try:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # the checkout may not be written to
        return other_folder / "compiled"
    return kept
