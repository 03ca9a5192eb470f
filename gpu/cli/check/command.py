"""Options of `check`, and its run from paths to exit code."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpu.base.devices.processor import count_cores
from gpu.cli.check import formats
from gpu.cli.check.findings import read_baseline, write_baseline
from gpu.cli.check.runner import UnitResult, UnitRunner
from gpu.cli.check.units import find_units
from gpu.cli.exit_codes import FAILED, OK, REFUSED
from gpu.cli.user_code.amounts import parse_count, parse_seconds
from gpu.cli.user_code.options import add_preprocessor_options
from gpu.files.file_access import check_target, replace_file
from gpu.files.scratch import ScratchFolder

DESCRIPTION = """\
Runs CUDA programs, kernels, and scripts of PyCUDA and CuPy on the simulator, without a GPU, and reports the checkers'
findings. Host code runs on this machine with your rights: check code that you trust.
"""
EPILOG = """\
Checked are .cu files with a main function, Python scripts that import pycuda or cupy, and lines such as these in a
file, each of which is a command line without the file's name:
  // lockstep: simulate saxpy --grid 4 --block 256 --arg 1000 --arg 2.0 --arg random:1000 --arg zeros:1000
  // lockstep: program -l m -- 1024
  # lockstep: pycuda --size 1024

exit codes:
  0    no findings, or only known ones; what could not be checked is listed
  1    new findings, or a program or script that fails
  2    nothing was checked, or a file named on the command line could not be
  130  stopped by Ctrl+C
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="files, or folders to search")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON")
    parser.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0, which GitHub shows next to the lines")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML, a test case per program, kernel or script")
    parser.add_argument("--baseline", metavar="FILE", help="known findings: they are not reported again")
    parser.add_argument("--write-baseline", metavar="FILE", help="write all findings as a baseline")
    parser.add_argument(
        "--jobs", metavar="N", type=parse_count, default=count_cores(), help="runs at once (default: cores)"
    )
    parser.add_argument(
        "--max-seconds",
        metavar="S",
        type=parse_seconds,
        default=300.0,
        help="limit on the time of each run, by the clock (default: 300)",
    )
    add_preprocessor_options(parser)


def run(options: argparse.Namespace) -> int:
    """Check everything, print findings as they come, write the reports; return the exit code."""
    began = time.monotonic()
    for target in filter(None, (options.json, options.sarif, options.junit, options.write_baseline)):
        check_target(target)
    known = read_baseline(options.baseline) if options.baseline else frozenset()
    compiler_options = [
        *(word for folder in options.include_dirs for word in ("-I", str(folder))),
        *(word for define in options.defines for word in ("-D", define)),
    ]
    units, skipped = find_units(options.paths, compiler_options)
    scratch = ScratchFolder()
    results: list[UnitResult] = []
    try:
        runner = UnitRunner(Path(scratch.path), options.max_seconds, options.include_dirs)
        for result in runner.run(units, options.jobs):
            results.append(_mark_known(result, known))
            if text := formats.format_result(results[-1]):
                print(text, flush=True)
    finally:
        scratch.close()
    report = formats.CheckReport(results, skipped, options.baseline is not None)
    print(formats.format_summary(report, time.monotonic() - began))
    _write_reports(options, report)
    return _choose_exit_code(report, options.paths)


def _mark_known(result: UnitResult, known: frozenset[str]) -> UnitResult:
    findings = (replace(finding, is_known=finding.fingerprint in known) for finding in result.findings)
    return replace(result, findings=tuple(findings))


def _write_reports(options: argparse.Namespace, report: formats.CheckReport) -> None:
    for target, data in (
        (options.json, formats.format_json),
        (options.sarif, formats.format_sarif),
        (options.junit, formats.format_junit),
    ):
        if target:
            text = data(report)
            with replace_file(target) as file:
                file.write(text.encode() if isinstance(text, str) else text)
    if options.write_baseline:
        write_baseline(options.write_baseline, report.findings)


def _choose_exit_code(report: formats.CheckReport, paths: Sequence[str]) -> int:
    if report.new_findings or any(result.failure for result in report.results):
        return FAILED
    named = {Path(path) for path in paths}
    is_named_refused = any(file.is_named for file in report.skipped) or any(
        result.refusal and result.unit.file in named for result in report.results
    )
    is_nothing_checked = all(result.refusal for result in report.results)
    return REFUSED if is_named_refused or is_nothing_checked else OK
