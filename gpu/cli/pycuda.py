"""The command `pycuda`: a script that uses PyCUDA, run on the simulator, with what its launches did wrong and cost."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from gpu.cli import launches
from gpu.cli.exit_codes import FAILED, OK, REFUSED
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
    Schedule.of(options.schedule)
    if options.report is not None:
        opening.check_target(options.report)
    if options.trace is not None:
        launches.make_folder(options.trace)
    from gpu.driver.journal import Journal, begin
    from gpu.pycuda import driver

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    begin(journal)
    driver.install()
    code = _run(program)
    sys.stdout.flush()
    if journal.entries:
        print("\n".join(launches.summary(journal)), file=sys.stderr)
    if options.report is not None:
        with opening.replacing(options.report) as file:
            file.write(launches.as_json(journal, program).encode())
    wrong = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and wrong else code


def _run(program: Sequence[str]) -> int:
    """Run a script, or a module, as Python would; return its exit code."""
    is_module = program[0] == "-m"
    words = list(program[1:] if is_module else program)
    path = Path(words[0])
    if not is_module and not path.is_file():
        print(f"lockstep: There is no script {words[0]!r}.", file=sys.stderr)
        return REFUSED
    # Where this program was started from is no place of the script's to import from.
    here = str(Path(__file__).parents[2])
    sys.path[:] = [folder for folder in sys.path if folder not in ("", here)]
    sys.path.insert(0, str(Path.cwd()) if is_module else str(path.resolve().parent))
    sys.argv = words
    if is_module and not _is_there(words[0]):
        print(f"lockstep: There is no module {words[0]!r}.", file=sys.stderr)
        return REFUSED
    try:
        if is_module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or OK
        print(end.code, file=sys.stderr)
        return FAILED
    except Exception as error:
        print(_traceback(error), end="", file=sys.stderr)
        return FAILED
    return OK


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        return error.name is None or not f"{module}.".startswith(f"{error.name}.")
    except (ImportError, ValueError):
        return False
    except Exception:  # what it is in fails by itself, and says so when it runs
        return True


def _traceback(error: Exception) -> str:
    """Return the traceback as a script sees it on a GPU: without what started it, and the inside of the driver."""
    shown = traceback.TracebackException.from_exception(error)
    ours = str(Path(__file__).parents[1])
    each: traceback.TracebackException | None = shown
    while each is not None:
        each.stack[:] = [
            frame for frame in each.stack if not frame.filename.startswith(ours) and "runpy" not in frame.filename
        ]
        each = each.__cause__ or each.__context__
    return "".join(shown.format())
