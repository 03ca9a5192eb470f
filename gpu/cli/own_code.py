"""What the commands `pycuda` and `program` share: code that is the user's own, watched, held to limits and reported."""

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
"""The options that the next word belongs to."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add to a command's parser what any code of the user's own is run with."""
    parser.add_argument(
        "--check", action="store_true", help="say what each launch does wrong and what it costs; 1 if there is anything"
    )
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        help="have the device say that it is this GPU, or that of a .toml file: its multiprocessors, clock, caches and "
        "limits; kernels are compiled as ever",
    )
    parser.add_argument("--report", metavar="FILE.json", type=Path, help="save findings and counts of every launch")
    parser.add_argument("--schedule", metavar="|".join(NAMES), default=ROUND_ROBIN, help=HELP)
    parser.add_argument(
        "--trace", metavar="FOLDER", type=Path, help="record every step of every launch, each in a file that opens"
    )
    parser.add_argument(
        "--max-seconds", metavar="S", type=seconds, help="by the clock, after which it is ended (any time)"
    )
    parser.add_argument(
        "--max-memory", metavar="MB", type=megabytes, help="memory that it may take, the simulator's included (any)"
    )


def check_options(options: argparse.Namespace) -> None:
    """Complain before anything runs of what it could not end with, and let the device be the GPU that is wanted.

    Raises
    ------
    InputError
        The order has another name, no such GPU is described, or a file or folder cannot be made.
    """
    Schedule.of(options.schedule)
    if options.gpu is not None:
        # Slow to import, and few ask for it.
        from gpu.driver.attributes import describe
        from gpu.timing.gpus import find_gpu

        describe(find_gpu(options.gpu))
    if options.report is not None:
        opening.check_target(options.report)
    if options.trace is not None:
        launches.make_folder(options.trace)


def hold(options: argparse.Namespace, said: Callable[[], None] = lambda: None) -> None:
    """Hold this process to the time and the memory that the options give it.

    Parameters
    ----------
    options : argparse.Namespace
    said : callable
        What is told besides where the time is up.
    """
    if options.max_memory is not None:
        bounds.hold_memory(options.max_memory)
    if options.max_seconds is not None:
        watching = threading.Timer(options.max_seconds, _end, (options.max_seconds, said))
        watching.daemon = True
        watching.start()


def _end(allowed: float, said: Callable[[], None]) -> None:
    print(f"lockstep: It took longer than the {allowed:g} s of --max-seconds, and was ended.", file=sys.stderr)
    said()
    sys.stderr.flush()
    os._exit(TOO_LONG)


def report(options: argparse.Namespace, journal: Journal, words: Sequence[str], code: int) -> int:
    """Say what its launches did, save that where it is wanted, and return the exit code for the program's own."""
    say(journal)
    if options.report is not None:
        with opening.replacing(options.report) as file:
            file.write(launches.as_json(journal, words).encode())
    wrong = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and wrong else code


def say(journal: Journal) -> None:
    """Say what the launches did."""
    if journal.entries:
        print("\n".join(launches.summary(journal)), file=sys.stderr)
