"""Run the tests repeatedly in random orders, and list those that fail sometimes: python -m tools.flaky.

Unknown arguments are passed to pytest: `python -m tools.flaky --times 20 tests/gui -x`. `pytest --shuffle SEED` repeats
the order of one run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from gpu.base.paths import ROOT

_DEFAULT_ARGUMENTS = ("-n", "auto", "--dist", "loadfile", "-m", "not alone")


def read_failed_tests(report: Path) -> list[str]:
    """Return the failed tests of a pytest report in JUnit format."""
    cases = ElementTree.parse(report).iter("testcase")
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests repeatedly; return 0 if none failed in any run."""
    parser = argparse.ArgumentParser(prog="python -m tools.flaky", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="number of runs (default: 20)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the first run's order; each further run uses the next number"
    )
    options, pytest_arguments = parser.parse_known_args(arguments)
    seeds = range(options.seed, options.seed + options.times)
    failures: dict[str, list[int]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            report = Path(folder) / f"{seed}.xml"
            command = [sys.executable, "-m", "pytest", *(pytest_arguments or _DEFAULT_ARGUMENTS), "--tb=short"]
            process = subprocess.run(
                [*command, f"--shuffle={seed}", f"--junitxml={report}"],
                cwd=ROOT, env=os.environ | {"QT_QPA_PLATFORM": "offscreen"}, check=False,
            )  # fmt: skip
            if process.returncode not in (0, 1):
                return process.returncode
            for name in read_failed_tests(report):
                failures[name].append(seed)
    for name, orders in sorted(failures.items(), key=lambda failure: -len(failure[1])):
        print(f"{len(orders)} of {len(seeds)} failed: {name} (--shuffle {', '.join(map(str, orders))})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
