"""The command `pycuda`: a script that uses PyCUDA, run on the simulator, with what its launches did wrong and cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu.cli import launches
from gpu.cli.exit_codes import FAILED, OK
from gpu.errors import InputError
from gpu.files import opening
from gpu.schedules import HELP, NAMES, ROUND_ROBIN, Schedule

EPILOG = """\
Everything from SCRIPT.py, or from -m, on is the script's own. It runs as `python SCRIPT.py` would, on PyCUDA's own
Python files; only its compiled module and nvcc are the simulator's. Times between events are this processor's.

exit codes: the script's own; with --check 1 where it ends with 0 and a launch made a mistake; 2 where nothing was run
"""
USAGE = "lockstep pycuda [options] (SCRIPT.py | -m MODULE) [ARGS ...]"

_WITH_VALUE = ("--report", "--schedule", "--trace")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser; the script and what is its own are taken off before."""
    parser.add_argument(
        "--check", action="store_true", help="say what each launch does wrong and what it costs; 1 if there is anything"
    )
    parser.add_argument("--report", metavar="FILE.json", type=Path, help="save findings and counts of every launch")
    parser.add_argument("--schedule", metavar="|".join(NAMES), default=ROUND_ROBIN, help=HELP)
    parser.add_argument(
        "--trace", metavar="FOLDER", type=Path, help="record every step of every launch, each in a file that opens"
    )


def program_apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's own words, and those from the script, or from -m, on; of other commands there are none."""
    words = list(arguments)
    place = 1
    while words[:1] == ["pycuda"] and place < len(words):
        if words[place] == "-m" or not words[place].startswith("-"):
            return words[:place], words[place:]
        place += 2 if words[place] in _WITH_VALUE else 1
    return words, []


def run(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run the script; return the exit code."""
    if not program or program == ["-m"]:
        raise InputError("There is no script to run.", advice=f"The usage is: {USAGE}")
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise InputError(f"There is no script {program[0]!r}.")
    Schedule.of(options.schedule)
    if options.report is not None:
        opening.check_target(options.report)
    if options.trace is not None:
        launches.make_folder(options.trace)
    from gpu.driver.journal import Journal, begin
    from gpu.pycuda import driver
    from gpu.pycuda.script import run_script

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    begin(journal)
    driver.install()
    code = run_script(program)
    sys.stdout.flush()
    if journal.entries:
        print("\n".join(launches.summary(journal)), file=sys.stderr)
    if options.report is not None:
        with opening.replacing(options.report) as file:
            file.write(launches.as_json(journal, program).encode())
    wrong = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and wrong else code
