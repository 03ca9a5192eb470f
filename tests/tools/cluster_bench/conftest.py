"""The cluster of the tests of `gpu.distributed`; without Dask, nothing is collected."""

from __future__ import annotations

from tests.gpu.distributed.conftest import HAS_DASK, cluster  # noqa: F401 - a fixture

collect_ignore = [] if HAS_DASK else ["test_command.py"]
