"""The command `pycuda`: a script that uses PyCUDA, run on the simulator, with what its launches did wrong and cost."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpu.cli.exit_codes import FAILED, OK, REFUSED
from gpu.errors import InputError
from gpu.files import opening
from gpu.schedules import HELP, NAMES, ROUND_ROBIN, Schedule

if TYPE_CHECKING:
    from gpu.pycuda.journal import Journal, LaunchEntry
    from gpu.simulator.checkers.findings import Finding

EPILOG = """\
Everything from SCRIPT.py, or from -m, on is the script's own. It runs as `python SCRIPT.py` would, on PyCUDA's own
Python files; only its compiled module and nvcc are the simulator's. Times between events are this processor's.

exit codes: the script's own; with --check 1 where it ends with 0 and a launch made a mistake; 2 where nothing was run
"""
USAGE = "lockstep pycuda [options] (SCRIPT.py | -m MODULE) [ARGS ...]"

_WITH_VALUE = ("--report", "--schedule", "--trace")
_MOST_LINES = 60


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
        _make_folder(options.trace)
    from gpu.pycuda import driver
    from gpu.pycuda.journal import Journal, begin

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    begin(journal)
    driver.install()
    code = _run(program)
    sys.stdout.flush()
    if journal.entries:
        print("\n".join(_summary(journal)), file=sys.stderr)
    if options.report is not None:
        with opening.replacing(options.report) as file:
            file.write(as_json(journal, program).encode())
    wrong = options.check and any(entry.findings for entry in journal.entries)
    return FAILED if code == OK and wrong else code


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made: {(error.strerror or str(error)).lower()}.") from None


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


def _summary(journal: Journal) -> Iterator[str]:
    """Yield the lines that are said of all launches when the script has ended."""
    entries = journal.entries
    count = f"{len(entries):,} launch{'' if len(entries) == 1 else 'es'}"
    spent = sum(entry.simulated_ms for entry in entries)
    head = f"lockstep: {count} on the simulator, {spent:,.0f} ms of this processor's time"
    if not journal.checked and journal.traces is None:
        ended = sum(bool(entry.findings) for entry in entries)
        more = f"; {ended} ended by a mistake" if ended else ""
        yield f"{head}{more}. --check looks for races and other mistakes, and counts what each launch costs."
        return
    from gpu.cli.findings import finding_text
    from gpu.files.sources import Sources

    found = _told_once(entries)
    yield f"{head}; {len(found) or 'no'} finding{'' if len(found) == 1 else 's'}."
    yield from _table(entries)
    for number, (entry, finding) in enumerate(found[:_MOST_LINES], 1):
        yield ""
        yield f"{entry.kernel}, launched at {entry.place}:"
        yield finding_text(number, finding, Sources(Path("kernel.cu"), edited=journal.texts[entry.text]))
    if len(found) > _MOST_LINES:
        yield f"\nand {len(found) - _MOST_LINES:,} more, which --report holds"
    if journal.traces is not None:
        yield f"Recorded in {journal.traces}: each file opens in the window."


def _told_once(entries: Sequence[LaunchEntry]) -> list[tuple[LaunchEntry, Finding]]:
    """Return the findings, those of the same lines in launches of one text put together, with the first launch."""
    first: dict[tuple[object, ...], tuple[LaunchEntry, Finding]] = {}
    for entry in entries:
        for finding in entry.findings:
            key = entry.kernel, entry.text, finding.kind, finding.positions
            known, before = first.get(key, (entry, replace(finding, count=0)))
            first[key] = known, replace(before, count=before.count + finding.count)
    return list(first.values())


def _table(entries: Sequence[LaunchEntry]) -> Iterator[str]:
    """Yield a line for each kernel, place and shape."""
    alike: dict[tuple[object, ...], list[LaunchEntry]] = {}
    for entry in entries:
        alike.setdefault((entry.kernel, entry.place, entry.grid, entry.block), []).append(entry)
    yield f"{'times':>6}  {'ms':>8}  {'sect/req':>8}  {'lanes':>5}  {'findings':>8}  kernel"
    for group in list(alike.values())[:_MOST_LINES]:
        entry = group[0]
        sectors, lanes = _figures(entry)
        findings = sum(len(each.findings) for each in group)
        shape = f"<<<{_extent(entry.grid)}, {_extent(entry.block)}>>>"
        yield (
            f"{len(group):>6}  {sum(each.simulated_ms for each in group):>8.1f}  {sectors:>8}  {lanes:>5}  "
            f"{findings or '':>8}  {entry.kernel} {shape} at {entry.place}"
        )
    if len(alike) > _MOST_LINES:
        yield f"and {len(alike) - _MOST_LINES:,} more, which --report holds"


def _figures(entry: LaunchEntry) -> tuple[str, str]:
    """Return the sectors of a request to global memory, and the active lanes of a statement."""
    from gpu.kernel.figures import line_figures

    figures = line_figures(entry.counts)
    return (
        "" if figures.sectors is None else f"{figures.sectors:.1f}",
        f"{figures.lanes:.1f}" if figures.statements else "",
    )


def _extent(extent: Sequence[int]) -> str:
    needed = max((place for place, each in enumerate(extent, 1) if each != 1), default=1)
    return str(extent[0]) if needed == 1 else f"({', '.join(map(str, extent[:needed]))})"


def as_json(journal: Journal, program: Sequence[str]) -> str:
    """Return all that is known of the launches."""
    from gpu.cli.findings import findings_data

    return json.dumps(
        {
            "program": list(program),
            "schedule": journal.schedule,
            "launches": [
                {
                    "kernel": entry.kernel,
                    "place": entry.place,
                    "grid": entry.grid,
                    "block": entry.block,
                    "shared_bytes": entry.shared_bytes,
                    "simulated_ms": round(entry.simulated_ms, 3),
                    "source": entry.text,
                    "findings": findings_data(entry.findings),
                    "counters": entry.counts,
                    **({"trace": str(entry.trace)} if entry.trace is not None else {}),
                }
                for entry in journal.entries
            ],
            "sources": journal.texts,
        },
        indent=2,
        allow_nan=False,
    )
