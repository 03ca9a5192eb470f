"""The command `grade`: a class's submissions for a lesson's task, judged, and reported for people and for programs."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from gpu.cli.exit_codes import FAILED, OK
from gpu.cli.report import as_json
from gpu.errors import InputError
from gpu.files.opening import check_target, name_of, replacing
from gpu.process.grader import Graded, grade, left_out, submitted

_TOLD = 10
"""Files that are no submissions, of which it is told."""
_COLUMNS = ("submission", "accepted", "verdict", "smallest input", "lines", "limits", "told")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("task", metavar="TASK", help="LESSON/NAME, where LESSON is a folder or the name of one of ours")
    parser.add_argument("submissions", metavar="SUBMISSION", nargs="+", help=".cu files, or folders of such")
    parser.add_argument("--seed", type=int, default=0, help="what hidden inputs grow from; one seed, one verdict (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--junit", metavar="FILE", help="write a report as JUnit's, which CI services show")
    parser.add_argument("--csv", metavar="FILE", help="write a table, one line for each submission")


def run(options: argparse.Namespace) -> int:
    """Grade, and return the exit code: OK where all are accepted."""
    lesson, task = _task(options.task)
    for target in filter(None, (options.junit, options.csv)):
        check_target(target)
    paths = submitted(options.submissions)
    graded = []
    for each in grade(lesson, task, paths, seed=options.seed):
        graded.append(each)
        if not options.json:
            print(_as_text(each), flush=True)
    accepted, others = sum(each.accepted for each in graded), left_out(options.submissions)
    if options.json:
        print(
            as_json(
                {
                    "task": options.task,
                    "accepted": accepted,
                    "submissions": [asdict(each) for each in graded],
                    "left_out": others,
                }
            )
        )
    else:
        print(f"{accepted} of {len(graded)} accepted.")
        if others:
            more = f" and {len(others) - _TOLD} more" if len(others) > _TOLD else ""
            print(f"Not graded, as the names do not end in .cu: {', '.join(others[:_TOLD])}{more}.")
    if options.junit:
        _write(options.junit, junit(options.task, graded))
    if options.csv:
        _write(options.csv, table(graded))
    return OK if accepted == len(graded) else FAILED


def _task(text: str) -> tuple[Path, str]:
    """Return a lesson's folder and the name of its task; InputError where there are none such."""
    from gpu.lessons.reading import FILE, LIBRARY, read_lesson

    folder, slash, name = text.rstrip("/").rpartition("/")
    if not slash:
        raise InputError(f"{text!r} is no task: it is LESSON/NAME, as in 01-threads-and-indices/add.")
    for place in (Path(folder), LIBRARY / folder):
        with suppress(OSError):  # a name that is too long
            if (place / FILE).is_file():
                read_lesson(place).task(name)
                return place, name
    raise InputError(f"There is no lesson {name_of(folder)!r}: `lessons` lists those that there are.")


def _as_text(graded: Graded) -> str:
    lines = [f"{graded.name}: {'accepted' if graded.accepted else graded.words}"]
    shown = graded.sentences if graded.accepted else graded.sentences[1:]
    return "\n".join([*lines, *(f"    {sentence}" for sentence in shown)])


def table(graded: Sequence[Graded]) -> str:
    """Return submissions as CSV: spreadsheets take no cell of it for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for each in graded:
        judgment = each.judgment
        case = judgment.get("case")
        lines = sorted({line for mistake in judgment.get("check", {}).get("mistakes", []) for line in mistake["lines"]})
        limits = "; ".join(f"{limit['counter']} {limit['counted']:g}/{limit['most']:g}"
                           for limit in judgment.get("limits", []))  # fmt: skip
        seen = f"n = {case['n']}, {case['kind']}" if case else ""
        row = (each.name, "yes" if each.accepted else "no", each.words, seen,
               " ".join(map(str, lines)), limits, " ".join(each.sentences))  # fmt: skip
        writer.writerow([f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell for cell in row])
    return text.getvalue()


def junit(task: str, graded: Sequence[Graded]) -> str:
    """Return submissions as JUnit's XML: a test case each."""
    failures = sum(not each.accepted for each in graded)
    head = f'<testsuite name={quoteattr(_legal(task))} tests="{len(graded)}" failures="{failures}">'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head]
    for each in graded:
        name = f"  <testcase classname={quoteattr(_legal(task))} name={quoteattr(_legal(each.name))}"
        if each.accepted:
            lines.append(f"{name}/>")
            continue
        told = escape(_legal("\n".join(each.sentences)))
        lines += [f"{name}>", f"    <failure message={quoteattr(_legal(each.words))}>{told}</failure>", "  </testcase>"]
    return "\n".join([*lines, "</testsuite>", ""])


def _legal(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


def _write(path: str, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
