"""The engines that kernels are tested on: the simulator always, a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu import engines
from gpu.engines.base import Engine


@pytest.fixture(scope="session", params=["simulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of each kind, one for all tests: a context is dear, and compiled modules are kept in it."""
    made = engines.create(request.param)
    yield made
    made.close()
