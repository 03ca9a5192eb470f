"""The command `pycuda`: run a PyCUDA script on the simulator, and report the findings and cost of its launches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.cli.user_code import options as user_code

EPILOG = """\
SCRIPT.py, or -m, and everything after it belong to the script. It runs as with `python SCRIPT.py`, on PyCUDA's own
Python files; the simulator replaces PyCUDA's compiled module and nvcc. Times between device events are this
processor's.

exit codes: the script's own; with --check 1 if it ends with 0 and there are findings; 2 if nothing was run; 124 if
--max-seconds stopped it
"""
USAGE = "lockstep pycuda [options] (SCRIPT.py | -m MODULE) [ARGS ...]"
PARSER_OPTIONS: dict[str, Any] = {
    "usage": USAGE,
    "description": "Runs an unmodified PyCUDA script on the simulator.",
    "epilog": EPILOG,
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "allow_abbrev": False,
}
"""Keyword arguments of the command's parser."""


def split_program(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of `pycuda` into the command's own and the script's, which begin at its name or at -m."""
    words = list(arguments)
    index = 1
    while words[:1] == ["pycuda"] and index < len(words):
        if words[index] == "-m" or not words[index].startswith("-"):
            return words[:index], words[index:]
        index += 2 if words[index] in user_code.OPTIONS_WITH_VALUE else 1
    return words, []


def run(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run the script; return the exit code."""
    if not program or program == ["-m"]:
        raise InputError("There is no script to run.", advice=f"Usage: {USAGE}")
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise InputError(f"There is no script {program[0]!r}.")
    user_code.check_options(options)
    from gpu.hosts.driver.journal import Journal, set_current_journal
    from gpu.hosts.pycuda import driver
    from gpu.hosts.pycuda.script import run_script

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    set_current_journal(journal)
    driver.fetch_missing_files(lambda line: print(line, file=sys.stderr, flush=True))
    driver.install()
    user_code.apply_limits(options, lambda: user_code.print_summary(journal))
    code = run_script(program)
    sys.stdout.flush()
    return user_code.print_report(options, journal, program, code)
