"""The command `grade`: grade submissions for a lesson's task; print a report, or write it as JSON, JUnit XML or CSV."""

from __future__ import annotations

import argparse
import csv
import io
import re
import secrets
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from gpu.base.errors import InputError
from gpu.cli.exit_codes import FAILED, OK
from gpu.cli.report import format_json
from gpu.cli.xml_text import replace_illegal
from gpu.files.file_access import check_target, format_path, write_file
from gpu.process.grader import GradedSubmission, grade_submissions
from gpu.process.submission_files import find_submissions

_MAX_OTHERS = 10
"""Most files listed that are not submissions."""
_FORMULA_START = re.compile(r"((?:^|[;|\t\r\n])[^\w;|\t\r\n]*?)(?=[=+\-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻])")
"""Where a spreadsheet would read a formula: at the beginning of a cell, or behind another separator of cells, also
after blanks and invisible characters, which a spreadsheet may drop."""
_COLUMNS = ("submission", "accepted", "verdict", "smallest input", "lines", "limits", "report")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("task", metavar="TASK", help="LESSON/NAME; LESSON is a folder, or a lesson of Lockstep's")
    parser.add_argument("submissions", metavar="SUBMISSION", nargs="+", help=".cu files, or folders with .cu files")
    parser.add_argument(
        "--seed",
        metavar="N",
        type=int,
        help="seed of hidden inputs; a seed always gives the same verdict (default: a random seed, which is printed)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit XML report, which CI services show")
    parser.add_argument("--csv", metavar="FILE", help="write a table with one line per submission")


def run(options: argparse.Namespace) -> int:
    """Grade the submissions; return the exit code, which is OK if all are accepted."""
    lesson, task = _find_task(options.task)
    for target in filter(None, (options.junit, options.csv)):
        check_target(target)
    files = find_submissions(options.submissions)
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    graded: list[GradedSubmission] = []
    try:
        with closing(grade_submissions(lesson, task, files.paths, seed=seed)) as results:
            for each in results:
                graded.append(each)
                _write_reports(options, graded)
                if not options.json:
                    print(_format_graded(each), flush=True)
    except (KeyboardInterrupt, InputError):
        if graded:
            _print_summary(options, graded, seed, files.ignored)
        raise
    _print_summary(options, graded, seed, files.ignored)
    return OK if all(each.accepted for each in graded) else FAILED


def _print_summary(
    options: argparse.Namespace, graded: Sequence[GradedSubmission], seed: int, ignored: Sequence[str]
) -> None:
    accepted, failed = sum(each.accepted for each in graded), sum(not each.graded for each in graded)
    if options.json:
        submissions = [asdict(each) for each in graded]
        print(
            format_json(
                {
                    "task": options.task,
                    "seed": seed,
                    "accepted": accepted,
                    "submissions": submissions,
                    "left_out": list(ignored),
                }
            )
        )
        return
    print(f"{accepted} of {len(graded)} accepted{f', {failed} not graded' if failed else ''}.")
    print(f"Seed of the hidden inputs: {seed}; --seed {seed} gives the same verdicts.")
    if ignored:
        more = f" and {len(ignored) - _MAX_OTHERS} more" if len(ignored) > _MAX_OTHERS else ""
        print(f"Not graded: {', '.join(ignored[:_MAX_OTHERS])}{more}. The names do not end in .cu.")


def _write_reports(options: argparse.Namespace, graded: Sequence[GradedSubmission]) -> None:
    """Write the report files with the results so far, which remain however the command ends."""
    if options.junit:
        write_file(options.junit, format_junit(options.task, graded))
    if options.csv:
        write_file(options.csv, format_csv(graded))


def _find_task(text: str) -> tuple[Path, str]:
    """Return a lesson's folder and its task's name; raise InputError if there is no such task."""
    from gpu.lessons.lesson_reader import LESSON_FILE, LIBRARY, read_lesson

    def find_lesson(folder: str) -> Path | None:
        for path in (Path(folder), LIBRARY / folder):
            with suppress(OSError):  # the name is too long
                if (path / LESSON_FILE).is_file():
                    return path
        return None

    folder, slash, name = text.rstrip("/").rpartition("/")
    if (path := find_lesson(folder) if slash else None) is not None:
        read_lesson(path).task(name)
        return path, name
    if (lesson := find_lesson(text.rstrip("/"))) is not None:
        names = ", ".join(task.name for task in read_lesson(lesson).tasks)
        raise InputError(f"{text!r} is a lesson: give LESSON/NAME with the name of a task: {names or 'it has none'}.")
    if not slash:
        raise InputError(f"{text!r} is not a task: give LESSON/NAME, such as 01-threads-and-indices/add.")
    raise InputError(f"There is no lesson {format_path(folder)!r}: `lessons` lists them.")


def _format_graded(graded: GradedSubmission) -> str:
    lines = [f"{graded.name}: {'accepted' if graded.accepted else graded.words}"]
    shown = graded.sentences if graded.accepted else graded.sentences[1:]
    return "\n".join([*lines, *(f"    {sentence}" for sentence in shown)])


def format_csv(graded: Sequence[GradedSubmission]) -> str:
    """Return graded submissions as CSV, with cells quoted that a spreadsheet would evaluate as formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for each in graded:
        judgment = each.judgment
        case = judgment.get("case")
        lines = sorted({line for mistake in judgment.get("check", {}).get("mistakes", []) for line in mistake["lines"]})
        limits = "; ".join(f"{limit['counter']} {limit['counted']:g}/{limit['most']:g}"
                           for limit in judgment.get("limits", []))  # fmt: skip
        smallest = f"n = {case['n']}, {case['kind']}" if case else ""
        accepted = "yes" if each.accepted else "no" if each.graded else "not graded"
        row = (each.name, accepted, each.words, smallest,
               " ".join(map(str, lines)), limits, " ".join(each.sentences))  # fmt: skip
        writer.writerow([_FORMULA_START.sub(r"\1'", cell) for cell in row])
    return text.getvalue()


def format_junit(task: str, graded: Sequence[GradedSubmission]) -> str:
    """Return graded submissions as JUnit XML, one test case per submission."""
    failures, errors = (
        sum(not each.accepted and each.graded for each in graded),
        sum(not each.graded for each in graded),
    )
    counts = f'tests="{len(graded)}" failures="{failures}" errors="{errors}"'
    head = f"<testsuite name={quoteattr(replace_illegal(task))} {counts}>"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head]
    for each in graded:
        name = f"  <testcase classname={quoteattr(replace_illegal(task))} name={quoteattr(replace_illegal(each.name))}"
        if each.accepted:
            lines.append(f"{name}/>")
            continue
        kind = "failure" if each.graded else "error"
        detail = escape(replace_illegal("\n".join(each.sentences)))
        lines += [
            f"{name}>",
            f"    <{kind} message={quoteattr(replace_illegal(each.words))}>{detail}</{kind}>",
            "  </testcase>",
        ]
    return "\n".join([*lines, "</testsuite>", ""])
