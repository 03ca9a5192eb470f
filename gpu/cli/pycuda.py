"""The command `pycuda`: a script that uses PyCUDA, run on the simulator, with what its launches did wrong and cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu.cli import own_code
from gpu.errors import InputError

EPILOG = """\
Everything from SCRIPT.py, or from -m, on is the script's own. It runs as `python SCRIPT.py` would, on PyCUDA's own
Python files; only its compiled module and nvcc are the simulator's. Times between events are this processor's.

exit codes: the script's own; with --check 1 where it ends with 0 and a launch made a mistake; 2 where nothing was run;
124 where --max-seconds ended it
"""
USAGE = "lockstep pycuda [options] (SCRIPT.py | -m MODULE) [ARGS ...]"
ABOUT: dict[str, Any] = {
    "usage": USAGE,
    "description": "Runs a script that uses PyCUDA, as it is, on the simulator.",
    "epilog": EPILOG,
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "allow_abbrev": False,
}
"""What its parser is made with."""


def program_apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's own words, and those from the script, or from -m, on; of other commands there are none."""
    words = list(arguments)
    place = 1
    while words[:1] == ["pycuda"] and place < len(words):
        if words[place] == "-m" or not words[place].startswith("-"):
            return words[:place], words[place:]
        place += 2 if words[place] in own_code.WITH_VALUE else 1
    return words, []


def run(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run the script; return the exit code."""
    if not program or program == ["-m"]:
        raise InputError("There is no script to run.", advice=f"The usage is: {USAGE}")
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise InputError(f"There is no script {program[0]!r}.")
    own_code.check_options(options)
    from gpu.driver.journal import Journal, begin
    from gpu.pycuda import driver
    from gpu.pycuda.script import run_script

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    begin(journal)
    driver.install()
    own_code.hold(options, lambda: own_code.say(journal))
    code = run_script(program)
    sys.stdout.flush()
    return own_code.report(options, journal, program, code)
