"""Options, limits and reports of the commands `pycuda` and `program`, which run the user's own code."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpu.base import resource_limits
from gpu.base.schedules import HELP, NAMES, ROUND_ROBIN, Schedule
from gpu.cli.exit_codes import FAILED, OK, TOO_LONG
from gpu.cli.user_code import launches
from gpu.cli.user_code.amounts import parse_megabytes, parse_seconds
from gpu.files import file_access
from gpu.files.sources import RELAXED_CONSTEXPR

if TYPE_CHECKING:
    from gpu.hosts.driver.journal import Journal

OPTIONS_WITH_VALUE = ("--gpu", "--report", "--schedule", "--trace", "--max-seconds", "--max-memory")
"""Options that take the next word as their value."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that runs the user's own code."""
    parser.add_argument(
        "--check", action="store_true", help="check each launch and count its work; exit code 1 if there are findings"
    )
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="name of a GPU description, or a .toml file with one; the device reports its multiprocessors, clock, "
        "caches and limits; kernels are compiled as without this option",
    )
    parser.add_argument("--report", metavar="FILE.json", type=Path, help="save findings and counts of every launch")
    parser.add_argument("--schedule", metavar="|".join(NAMES), default=ROUND_ROBIN, help=HELP)
    parser.add_argument(
        "--trace", metavar="DIR", type=Path, help="record every step of every launch, in one file per launch"
    )
    parser.add_argument(
        "--max-seconds", metavar="S", type=parse_seconds, help="time limit by the clock (default: none)"
    )
    parser.add_argument(
        "--max-memory",
        metavar="MB",
        type=parse_megabytes,
        help="memory limit, the simulator's included (default: none)",
    )


def add_preprocessor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for include folders and macros."""
    parser.add_argument(
        "-I",
        metavar="DIR",
        dest="include_dirs",
        action="append",
        type=Path,
        default=[],
        help="search this folder for include files",
    )
    parser.add_argument(
        "-D",
        metavar="NAME=VALUE",
        dest="defines",
        action="append",
        default=[],
        help="define a macro; -D NAME defines it as 1",
    )
    parser.add_argument(
        "--expt-relaxed-constexpr",
        dest="defines",
        action="append_const",
        const=RELAXED_CONSTEXPR,
        help="let device code call constexpr host functions such as std::max, as this option of nvcc does",
    )


def check_options(options: argparse.Namespace) -> None:
    """Check the options before anything runs, and apply the chosen GPU description to the device.

    Raises
    ------
    InputError
        The schedule or the GPU is unknown, or a file or folder cannot be created.
    """
    Schedule.parse(options.schedule)
    if options.gpu is not None:
        # These imports are slow and rarely needed.
        from gpu.hosts.driver.attributes import emulate_gpu_attributes
        from gpu.timing.gpus import find_gpu

        emulate_gpu_attributes(find_gpu(options.gpu))
    if options.report is not None:
        file_access.check_target(options.report)
    if options.trace is not None:
        launches.make_folder(options.trace)


def apply_limits(options: argparse.Namespace, on_limit: Callable[[], None] = lambda: None) -> None:
    """Apply the time and memory limits in the options to this process.

    Parameters
    ----------
    on_limit : callable
        Called after the message, before the process exits at the time limit.
    """
    if options.max_memory is not None:
        resource_limits.lower_memory_limit(options.max_memory)
    if options.max_seconds is not None:
        timer = threading.Timer(options.max_seconds, _exit_at_limit, (options.max_seconds, on_limit))
        timer.daemon = True
        timer.start()


def _exit_at_limit(limit: float, on_limit: Callable[[], None]) -> None:
    print(f"lockstep: Stopped: it took longer than the {limit:g} s of --max-seconds.", file=sys.stderr)
    on_limit()
    sys.stderr.flush()
    os._exit(TOO_LONG)


def print_report(options: argparse.Namespace, journal: Journal, program_arguments: Sequence[str], code: int) -> int:
    """Print and save the report on the launches; return the exit status.

    Parameters
    ----------
    options : argparse.Namespace
        `report` is the file for the report, or None; `check` is whether findings count as a failure.
    journal : Journal
        The launches and their findings.
    program_arguments : sequence of str
        The user's command, for the report.
    code : int
        The exit status of the user's program.

    Returns
    -------
    int
        `FAILED` if the program succeeded but the checkers found something, otherwise `code`.
    """
    print_summary(journal)
    if options.report is not None:
        with file_access.replace_file(options.report) as file:
            file.write(launches.format_json(journal, program_arguments).encode())
    has_findings = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and has_findings else code


def print_summary(journal: Journal) -> None:
    """Print the summary of the launches."""
    if journal.entries:
        print("\n".join(launches.format_summary(journal)), file=sys.stderr)
