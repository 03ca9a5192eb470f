"""Dask, which need not be there."""

from __future__ import annotations

import asyncio
import sys

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.distributed.cluster.dask_import import load_dask


def test_without_dask_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    load_dask.cache_clear()
    with pytest.raises(EngineUnavailableError, match="is not installed") as refused:
        load_dask()
    assert "requirements-dask.txt" in refused.value.advice


def test_a_wait_that_a_closed_connection_leaves_behind_is_not_logged(caplog: pytest.LogCaptureFixture):
    """Tornado's waits with a time limit have the message "Timeout"; other errors that nobody retrieves are logged."""
    load_dask.cache_clear()
    load_dask()
    loop = asyncio.new_event_loop()
    for error in (TimeoutError("Timeout"), TimeoutError("another"), ValueError("Timeout")):
        future = loop.create_future()
        future.set_exception(error)
        del future
    loop.close()
    messages = [record.getMessage() for record in caplog.records]
    caplog.clear()
    assert len(messages) == 2
    assert "another" in messages[0]
    assert "ValueError" in messages[1]
