"""Measure a GPU, and compare the timing model with it: `python -m tools.model_bench`."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpu.base.errors import LockstepError
from gpu.bench.command import PAGE
from gpu.files.file_access import check_target
from tools.model_bench import command


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or compare as the options say; return 2 if that is impossible."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.model_bench",
        description="Measures kernels on this machine's GPU, and compares the timing model with the measured times.",
    )
    parser.add_argument("--measure", metavar="FILE", type=Path, help="only measure, and write the times to FILE")
    parser.add_argument("--device", metavar="FILE", type=Path, help="only measure the GPU, and describe it in FILE")
    parser.add_argument("--profile", metavar="FILE", type=Path, help="launch each kernel once under a profiler")
    parser.add_argument(
        "--counters", metavar="FILE", type=Path,
        help="with --profile: compare Nsight Compute's counters in FILE with the model's, without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="from_file", metavar="FILE", type=Path,
        help="compare with the times of --measure in FILE, or with those of assets/modeled, without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--without-nvcc", action="store_true", help="with --from: model as without nvcc, with PTX from LLVM"
    )
    parser.add_argument("--gpu", metavar="NAME", help="GPU description to compare (default: the measured GPU's)")
    parser.add_argument(
        "--document", metavar="FILE", type=Path, default=PAGE, help="page to write (default: docs/benchmarks.md)"
    )
    parser.add_argument(
        "--data", metavar="FILE", type=Path, help="file for the error of each case (default: in assets/modeled/)"
    )
    parser.add_argument(
        "--repetitions", metavar="N", type=int, default=21, help="repetitions of each measurement (default: 21)"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of random inputs (default: a new one each time)")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error("--repetitions must be a whole number from 1")
    if options.counters is not None and options.profile is None:
        parser.error("--counters requires --profile FILE, which lists the launches that were counted")
    try:
        return _run(options)
    except LockstepError as error:
        print(error.message, error.advice, file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    for path in filter(None, (options.document, options.data)):
        check_target(path)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.device is not None:
        return command.measure_device(options.device)
    if options.counters is not None:
        return command.compare_counters(options.profile, options.counters, options.document, options.gpu)
    if options.profile is not None:
        return command.profile_launches(options.profile, seed)
    if options.from_file is not None:
        return command.compare_with_model(
            options.from_file, options.document, options.gpu, options.data, nvcc=not options.without_nvcc
        )
    if options.measure is not None:
        return command.measure_launches(options.measure, seed, options.repetitions)
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        command.measure_launches(times, seed, options.repetitions)
        return command.compare_with_model(times, options.document, options.gpu, options.data)


if __name__ == "__main__":
    sys.exit(main())
