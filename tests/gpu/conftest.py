"""The engines that kernels are tested on: the simulator always, a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu import engines
from gpu.engines.base import Engine

GPU = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.fixture(scope="session")
def cuda_engine() -> Iterator[Engine]:
    """The GPU's engine, one for all tests, since creating a CUDA context is slow."""
    made = engines.create_engine("cuda")
    yield made
    made.close()


@pytest.fixture(scope="module", params=["simulator", GPU])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of each kind, one per test file: it keeps the modules that it has built.

    Kept for the session, the simulator's modules of all files took gigabytes, and garbage collections seconds.

    The simulator runs in lockstep: tests have small inputs and many sets of macros, and compiling machine code for each
    of them takes a hundred times as long as running it. Tests of compiled code are in simulator/compiled/.
    """
    yield from _open_engine(request, "lockstep")


@pytest.fixture(scope="module", params=["simulator", GPU])
def fast_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The same for large inputs: the simulator compiles."""
    yield from _open_engine(request, "compiled")


def _open_engine(request: pytest.FixtureRequest, executor: str) -> Iterator[Engine]:
    if request.param == "cuda":
        yield request.getfixturevalue("cuda_engine")
        return
    made = engines.create_engine("simulator", executor)
    yield made
    made.close()
