"""A thread with a large stack, where there is none to be had."""

from __future__ import annotations

import threading

import pytest

from gpu.simulator.frontend.clang.large_stack import run_with_large_stack


def test_a_stack_that_the_system_refuses_is_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(MemoryError, match="Not enough memory for a thread's stack"):
        run_with_large_stack(int)
    monkeypatch.undo()
    assert run_with_large_stack(int) == 0
