"""Options, limits and reports of the commands `pycuda` and `program`, which run the user's own code."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpu import bounds
from gpu.cli import launches
from gpu.cli.amounts import megabytes, seconds
from gpu.cli.exit_codes import FAILED, OK, TOO_LONG
from gpu.files import opening
from gpu.schedules import HELP, NAMES, ROUND_ROBIN, Schedule

if TYPE_CHECKING:
    from gpu.driver.journal import Journal

WITH_VALUE = ("--gpu", "--report", "--schedule", "--trace", "--max-seconds", "--max-memory")
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
    parser.add_argument("--max-seconds", metavar="S", type=seconds, help="time limit by the clock (default: none)")
    parser.add_argument(
        "--max-memory", metavar="MB", type=megabytes, help="memory limit, the simulator's included (default: none)"
    )


def check_options(options: argparse.Namespace) -> None:
    """Check the options before anything runs, and apply the chosen GPU description to the device.

    Raises
    ------
    InputError
        The schedule or the GPU is unknown, or a file or folder cannot be created.
    """
    Schedule.of(options.schedule)
    if options.gpu is not None:
        # These imports are slow and rarely needed.
        from gpu.driver.attributes import describe
        from gpu.timing.gpus import find_gpu

        describe(find_gpu(options.gpu))
    if options.report is not None:
        opening.check_target(options.report)
    if options.trace is not None:
        launches.make_folder(options.trace)


def hold(options: argparse.Namespace, said: Callable[[], None] = lambda: None) -> None:
    """Apply the time and memory limits in the options to this process.

    Parameters
    ----------
    options : argparse.Namespace
    said : callable
        Called after the message, before the process exits at the time limit.
    """
    if options.max_memory is not None:
        bounds.hold_memory(options.max_memory)
    if options.max_seconds is not None:
        timer = threading.Timer(options.max_seconds, _exit_at_limit, (options.max_seconds, said))
        timer.daemon = True
        timer.start()


def _exit_at_limit(limit: float, said: Callable[[], None]) -> None:
    print(f"lockstep: Stopped: it took longer than the {limit:g} s of --max-seconds.", file=sys.stderr)
    said()
    sys.stderr.flush()
    os._exit(TOO_LONG)


def report(options: argparse.Namespace, journal: Journal, words: Sequence[str], code: int) -> int:
    """Print and save the report on the launches; return the exit code, given the program's own."""
    say(journal)
    if options.report is not None:
        with opening.replacing(options.report) as file:
            file.write(launches.as_json(journal, words).encode())
    has_findings = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and has_findings else code


def say(journal: Journal) -> None:
    """Print the summary of the launches."""
    if journal.entries:
        print("\n".join(launches.summary(journal)), file=sys.stderr)
