"""Dask, which need not be there."""

from __future__ import annotations

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
