"""The engines that kernels are tested on: the simulator always, a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu import engines
from gpu.engines.base import Engine

GPU = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.fixture(scope="session", params=["simulator", GPU])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of each kind, one for all tests: a context is dear, and built modules are kept in it.

    The simulator runs in lockstep: tests have small inputs and many sets of macros, and to make machine code for each
    of them takes a hundred times as long as to run it. What is compiled is tested in simulator/compiled/.
    """
    made = _create_engine(request.param, "lockstep")
    yield made
    made.close()


@pytest.fixture(scope="session", params=["simulator", GPU])
def fast_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The same for large inputs: the simulator compiles."""
    made = _create_engine(request.param, "compiled")
    yield made
    made.close()


def _create_engine(name: str, executor: str) -> Engine:
    return engines.create_engine(name, executor) if name == "simulator" else engines.create_engine(name)
