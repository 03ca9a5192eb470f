"""Measure several devices and compare them with one, in the same run: `python -m tools.cluster_bench`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpu.base.errors import LockstepError
from gpu.bench.command import PAGE
from gpu.distributed.cluster.dask_import import load_dask
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.files.file_access import check_target
from tools.cluster_bench.sizes import parse_size


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure on a cluster of this machine's GPUs; return 1 if a result is wrong, 2 if nothing was measured."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.cluster_bench",
        description="Measures each pattern on one GPU of this machine and on all of them; on simulators without a GPU.",
    )
    parser.add_argument("--workers", metavar="N", type=int, default=0, help="number of workers (default: one per GPU)")
    parser.add_argument(
        "--size", metavar="NAME=N", type=parse_size, action="append", default=[],
        help="size of a benchmark, such as sort=2^31; 0 skips it. Names: nbody (bodies), matmul (rows), sort, scan, "
        "reduction, histogram, convolution (elements), overhead (elements), disk (bytes)",
    )  # fmt: skip
    parser.add_argument(
        "--folder", metavar="DIR", type=Path, default=Path(tempfile.gettempdir()),
        help="folder on a disk for an image (default: the temporary folder)",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", metavar="N", type=int, default=5, help="of each measurement (default and most: 5)"
    )
    parser.add_argument(
        "--document", metavar="FILE", type=Path, default=PAGE, help="page to write (default: docs/benchmarks.md)"
    )
    options = parser.parse_args(arguments)
    if options.workers < 0 or options.repetitions < 1:
        parser.error("--workers and --repetitions must be whole numbers from 1")
    try:
        check_target(options.document)
        load_dask()
        from tools.cluster_bench import command

        settings = ClusterSettings(workers=options.workers)
        return command.run(settings, dict(options.size), options.repetitions, options.document, options.folder)
    except LockstepError as error:
        print(error.message, error.advice, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
