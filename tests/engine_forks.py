"""Fork the engine's processes from one that has imported their modules: imports take 0.4 s of CPU time each.

Tests of the window fork them all. In `tests/gpu/process` those that start many do, and others start them as the product
does.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any

import pytest

from gpu.base.paths import ROOT

_MODULES = [
    "gpu.engines.checking_engine",
    "gpu.engines.counting_engine",
    "gpu.engines.simulator",
    "gpu.engines.tracing_engine",
    "gpu.lessons.handlers",
    "gpu.process.engine_process",
    "gpu.run.handlers.execution",
    "gpu.simulator.checkers.trials",
    "gpu.simulator.frontend.editor_diagnostics",
    "scipy.ndimage",
    "scipy.special",
]


class _Context:
    """The part of a `multiprocessing` context that the host of an engine uses."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_MODULES)
        self.Pipe = self._context.Pipe

    def Process(self, *, target: Callable[..., object], args: tuple[Any, ...], **options: Any) -> ForkServerProcess:
        """Return a process with the present environment, as a spawned one has it, not with the server's."""
        with chdir(ROOT):  # the server finds the modules in its folder
            forkserver.ensure_running()
        return self._context.Process(target=_run, args=(dict(os.environ), target, args), **options)


def _run(environment: Mapping[str, str], target: Callable[..., object], args: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*args)


@contextmanager
def separate_socket_folder() -> Iterator[None]:
    """Let a server that forks processes have a folder of its own for its socket.

    This process's folder would be removed when it exits, after the session's folder.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(multiprocessing.current_process()._config, "tempdir", folder)
        yield


@pytest.fixture(scope="session")
def engine_context() -> Iterator[_Context | None]:
    """What forks engines' processes, where the system can; end the process that forks them after the session."""
    if not sys.platform.startswith("linux"):
        yield None
        return
    with separate_socket_folder():
        yield _Context()
        forkserver._forkserver._stop()


@contextmanager
def fork_engines(context: _Context | None) -> Iterator[None]:
    """Have engines' processes forked by what `engine_context` returns."""
    with pytest.MonkeyPatch.context() as patch:
        if context is not None:
            patch.setattr("gpu.process.engine_host._SPAWN", context)
        yield
