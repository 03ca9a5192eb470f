"""Fixtures of the tests of processes."""

from __future__ import annotations

import pytest

from tests.gpu.process.host_listener import EARLIER_CHILDREN, children


@pytest.fixture(autouse=True)
def _earlier_children() -> None:
    EARLIER_CHILDREN.clear()
    EARLIER_CHILDREN.update(children())
