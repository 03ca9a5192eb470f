"""The cluster of the tests here; without Dask, nothing is collected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gpu.distributed.conftest import HAS_DASK, open_forked_cluster

collect_ignore = [] if HAS_DASK else ["test_command.py"]


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    with open_forked_cluster(2) as two:
        yield two
