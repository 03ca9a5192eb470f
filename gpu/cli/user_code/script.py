"""The commands `pycuda` and `cupy`: run a script on the simulator, and report the findings and cost of its launches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu.base.errors import InputError
from gpu.cli.user_code import options as user_code

COMMANDS = {"pycuda": "PyCUDA", "cupy": "CuPy"}
"""The commands, and the names of their libraries."""
_LAYERS = {
    "pycuda": "on PyCUDA's own\nPython files; the simulator replaces PyCUDA's compiled module and nvcc.",
    "cupy": "with\nLockstep's replacement of CuPy: kernels run on the simulator, and NumPy computes the other"
    "\narray functions.",
}
_EPILOG = """\
SCRIPT.py, or -m, and everything after it belong to the script. It runs as with `python SCRIPT.py`, {layer}
Times between device events are this processor's.

exit codes: the script's own; with --check 1 if it ends with 0 and there are findings; 2 if nothing was run; 124 if
--max-seconds stopped it
"""


def _format_usage(command: str) -> str:
    return f"lockstep {command} [options] (SCRIPT.py | -m MODULE) [ARGS ...]"


def add_options(command: str, parser: argparse.ArgumentParser) -> None:
    """Add a command's description and options."""
    parser.usage = _format_usage(command)
    parser.description = f"Runs an unmodified {COMMANDS[command]} script on the simulator."
    parser.epilog = _EPILOG.format(layer=_LAYERS[command])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    user_code.add_options(parser)


def split_program(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of these commands into the command's own and the script's, which begin at its name or at -m."""
    words = list(arguments)
    index = 1
    while words and words[0] in COMMANDS and index < len(words):
        if words[index] == "-m" or not words[index].startswith("-"):
            return words[:index], words[index:]
        index += 2 if words[index] in user_code.OPTIONS_WITH_VALUE else 1
    return words, []


def run(command: str, options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run the script; return the exit code."""
    if not program or program == ["-m"]:
        raise InputError("There is no script to run.", advice=f"Usage: {_format_usage(command)}")
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise InputError(f"There is no script {program[0]!r}.")
    user_code.check_options(options)
    from gpu.hosts.driver.journal import Journal, set_current_journal
    from gpu.hosts.script import run_script

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    set_current_journal(journal)
    _install(command)
    user_code.apply_limits(options, lambda: user_code.print_summary(journal))
    code = run_script(program)
    sys.stdout.flush()
    if command == "cupy":
        from gpu.hosts.cupy.forwarding import format_forwarded_functions

        if line := format_forwarded_functions():
            print(line, file=sys.stderr)
    return user_code.print_report(options, journal, program, code)


def _install(command: str) -> None:
    if command == "cupy":
        from gpu.hosts.cupy import installation

        installation.install()
        return
    from gpu.hosts.pycuda import driver

    driver.fetch_missing_files(lambda line: print(line, file=sys.stderr, flush=True))
    driver.install()
