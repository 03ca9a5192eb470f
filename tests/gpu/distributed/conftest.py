"""One cluster of simulator workers for all tests here: to start one takes longer than any of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

HAS_DASK = importlib.util.find_spec("distributed") is not None
# Without requirements-dask.txt there is nothing to try but what is said then.
DASK = ("distributed_run", "faults", "command", "streaming", "cluster_simulation", "sort", "nbody")
IN_FOLDERS = ["cluster/test_worker.py", "data/test_chunk_pipeline.py"]
collect_ignore = [] if HAS_DASK else [*(f"test_{each}.py" for each in DASK), *IN_FOLDERS]

ENGINE = "tests.gpu.distributed.lockstep_engines:LockstepEngine"
PLAIN = "tests.gpu.distributed.lockstep_engines:PlainEngine"


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """Four workers that compile nothing: for arrays this small that takes longer than all else."""
    from gpu.distributed.cluster.dask_cluster import open_cluster
    from gpu.distributed.cluster.dask_import import load_dask
    from gpu.distributed.cluster.settings import ClusterSettings

    load_dask()
    with open_cluster(ClusterSettings(workers=4), ENGINE) as four:
        yield four
