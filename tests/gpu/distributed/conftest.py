"""One cluster of simulator workers for all tests here: to start one takes longer than any of them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import forkserver
from typing import Any

import pytest

from tests.engine_forks import separate_socket_folder

HAS_DASK = importlib.util.find_spec("distributed") is not None
# Without requirements-dask.txt there is nothing to try but what is said then.
DASK = ("distributed_run", "faults", "command", "streaming", "cluster_simulation", "sort", "nbody")
IN_FOLDERS = ["cluster/test_worker.py", "data/test_chunk_pipeline.py"]
collect_ignore = [] if HAS_DASK else [*(f"test_{each}.py" for each in DASK), *IN_FOLDERS]

ENGINE = "tests.gpu.distributed.lockstep_engines:LockstepEngine"
PLAIN = "tests.gpu.distributed.lockstep_engines:PlainEngine"


_MODULES = [
    "distributed.nanny",
    "gpu.distributed.cluster.worker",
    "gpu.patterns",
    "tests.gpu.distributed.lockstep_engines",
    "zarr",
]
"""What workers import: most of the time of their start."""


@contextmanager
def open_forked_cluster(workers: int) -> Iterator[Any]:
    """Open a cluster whose workers compile nothing: for arrays this small that takes longer than all else.

    Where the system can, they are forked from a process that has imported their modules. `test_command.py` starts them
    as the product does.
    """
    from gpu.distributed.cluster.dask_cluster import open_cluster
    from gpu.distributed.cluster.dask_import import load_dask
    from gpu.distributed.cluster.settings import ClusterSettings

    load_dask()
    with (
        _fork_workers() if sys.platform.startswith("linux") else nullcontext(),
        open_cluster(ClusterSettings(workers=workers), ENGINE) as opened,
    ):
        yield opened


@contextmanager
def _fork_workers() -> Iterator[None]:
    import dask

    server = forkserver.ForkServer()  # not the one that forks engines, which has imported other modules
    server.set_forkserver_preload(_MODULES)
    with (
        separate_socket_folder(),
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
    ):
        patch.setattr(forkserver, "connect_to_new_process", server.connect_to_new_process)
        patch.setattr("distributed.utils._forkserver_preload_set", True)
        yield
        server._stop()


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    with open_forked_cluster(4) as four:
        yield four
