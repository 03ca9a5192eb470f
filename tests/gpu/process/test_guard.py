"""What remains when the window's process ends, however it ends: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpu.base.paths import ROOT
from tests import needs
from tests.gpu.process.host_listener import is_alive, list_guards, wait_until

posix = needs.posix

PARENT = """
import multiprocessing, sys, time
from tests.gpu.process.host_listener import Listener

if __name__ == "__main__":
    try:
        listener = Listener("tests.gpu.fake_engines:FakeEngine")
        listener.run_action(sys.argv[1])
        listener.wait_for_progress(sys.argv[1])
        print(multiprocessing.active_children()[0].pid, listener.host.folder.path, flush=True)
        time.sleep({seconds})
    except KeyboardInterrupt:
        sys.exit(130)
"""


def start_parent(tmp_path: Path, seconds: int, deed: str = "endless"):
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(seconds=seconds))
    root = ROOT
    environment = {**os.environ, "PYTHONPATH": str(root)}
    parent = subprocess.Popen(
        [sys.executable, str(script), deed],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    child, folder = parent.stdout.readline().split()
    return parent, int(child), Path(folder)


@posix
@pytest.mark.parametrize("deed", ["endless", "endless-outside-python", "endless-with-python-locked"])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_no_process_and_no_file_outlives_a_killed_parent(tmp_path: Path, deed: str, name: str):
    parent, child, folder = start_parent(tmp_path, 600, deed)
    with parent:
        assert is_alive(child)
        assert folder.exists()
        parent.send_signal(getattr(signal, name))
        assert wait_until(lambda: not is_alive(child), 2)
        assert wait_until(lambda: not folder.exists(), 2)
        assert wait_until(lambda: not list_guards(folder), 2)


@posix
def test_no_file_outlives_a_parent_and_an_engine_that_are_killed_together(tmp_path: Path):
    parent, child, folder = start_parent(tmp_path, 600)
    with parent:
        os.kill(child, signal.SIGKILL)
        parent.kill()
        assert wait_until(lambda: not folder.exists(), 2)


@posix
def test_no_process_and_no_file_outlives_a_parent_that_forgets_to_close(tmp_path: Path):
    parent, child, folder = start_parent(tmp_path, 0)
    with parent:
        assert parent.wait(30) == 0
        assert parent.stderr is not None
        assert parent.stderr.read() == ""
        assert not is_alive(child)
        assert not folder.exists()
        assert not list_guards(folder)


@posix
def test_ctrl_c_in_the_terminal_prints_nothing_from_the_engine(tmp_path: Path):
    parent, child, folder = start_parent(tmp_path, 600)
    with parent:
        os.killpg(parent.pid, signal.SIGINT)
        assert parent.wait(30) == 130
        assert parent.stderr is not None
        assert parent.stderr.read() == ""
        assert not is_alive(child)
        assert not folder.exists()
        assert not list_guards(folder)
