"""Fixtures of the tests of processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine_forks import fork_engines
from tests.gpu.process.host_listener import EARLIER_CHILDREN, children


@pytest.fixture(autouse=True)
def _earlier_children() -> None:
    EARLIER_CHILDREN.clear()
    EARLIER_CHILDREN.update(children())


@pytest.fixture
def engine_forks(engine_context) -> Iterator[None]:
    """Have engines' processes forked, for a test of what follows their start."""
    with fork_engines(engine_context):
        yield
