"""The workflow on GitHub types what README tells a newcomer to type."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_it_sets_up_as_readme_says():
    commands = re.findall(r"^    (.+?)(?:   .*)?$", section("Start"), re.MULTILINE)
    tests = re.findall(r"`([^`]+ -m pytest)`", section("Start"))
    assert len(commands) == 8
    assert len(tests) == 2
    # A window wants a screen, and Windows' py takes the newest Python, whichever is to be tested.
    opening = {"make run", r".venv\Scripts\python main.py", ".venv/bin/python main.py"}
    for command in {*commands, *tests} - opening:
        assert command.replace("py -m venv", "python -m venv") in WORKFLOW


def test_it_runs_readmes_commands():
    shown = re.findall(r"^    python main.py (run .+|atomics .+)$", section("Commands"), re.MULTILINE)
    given = [command for command in shown if "PATTERN" not in command]
    assert len(given) == 6
    for command in given:
        # The galaxies are for a faster machine.
        small = command.replace("--bodies 10000 --steps 100", "--bodies 1000 --steps 10")
        assert f"python main.py {small}\n" in WORKFLOW


def test_it_tests_the_pythons_that_readme_names():
    [oldest] = re.findall(r"Python 3\.(\d+) or newer", section("Start"))
    assert f'"3.{oldest}"' in WORKFLOW
