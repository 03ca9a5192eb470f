"""The commands `lessons` and `lessons check`: list the lessons, and check them."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu.cli.exit_codes import FAILED, OK
from gpu.cli.report import format_json


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options and actions."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_list_lessons, folder=None)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    check = actions.add_parser("check", help="check the lessons in a folder completely", allow_abbrev=False)
    check.add_argument("folder", metavar="DIR", nargs="?", help="a lesson, or several (default: Lockstep's own)")
    check.set_defaults(command=_check_lessons)


def _list_lessons(options: argparse.Namespace) -> int:
    from gpu.lessons.lesson_reader import read_all_lessons

    lessons = read_all_lessons()
    if options.json:
        print(
            format_json(
                {
                    "lessons": [
                        {
                            "name": lesson.name,
                            "title": lesson.title,
                            "minutes": lesson.minutes,
                            "needs": list(lesson.prerequisites),
                            "questions": len(lesson.questions),
                            "tasks": [task.name for task in lesson.tasks],
                        }
                        for lesson in lessons
                    ]
                }
            )
        )
        return OK
    for lesson in lessons:
        print(f"{lesson.name}: {lesson.title}")
        tasks = ", ".join(task.name for task in lesson.tasks) or "none"
        about = f"{lesson.minutes} minutes, {len(lesson.questions)} questions; tasks: {tasks}"
        print(f"    {about}")
    return OK


def _check_lessons(options: argparse.Namespace) -> int:
    from gpu.lessons.lesson_reader import LIBRARY, read_lessons
    from gpu.lessons.validation import find_faults, find_warnings

    lessons, errors = read_lessons(Path(options.folder) if options.folder else LIBRARY)
    for error in errors:
        print(f"{error.message} {error.advice}".strip())
    count = len(errors)
    for lesson in lessons:
        lesson_faults = [*find_faults(lesson)]
        for fault in lesson_faults:
            print(fault)
        for warning in find_warnings(lesson) if not lesson_faults else ():
            print(f"warning: {warning}")
        counts = {
            "step": len(lesson.steps),
            "question": len(lesson.questions),
            "task": len(lesson.tasks),
            "mistake": sum(len(task.mistakes) for task in lesson.tasks),
        }
        contents = ", ".join(_format_count(number, noun) for noun, number in counts.items())
        print(f"{lesson.name}: {contents}: {_format_count(len(lesson_faults), 'fault')}", flush=True)
        count += len(lesson_faults)
    return FAILED if count else OK


def _format_count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
