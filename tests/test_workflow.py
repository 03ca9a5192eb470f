"""The workflow on GitHub runs the commands that README shows to a newcomer."""

from __future__ import annotations

import re

from gpu.base.paths import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def commands() -> list[str]:
    """Return README's complete commands: those without a placeholder such as PATTERN, [options] or gpu|simulator."""
    lines = re.sub(r"\\\n *", "", README)
    shown = re.findall(r"^    python main\.py (\S.*?)(?:   .*)?$", lines, re.MULTILINE)
    return [command for command in shown if not re.search(r"\b[A-Z]{2,}|[\[|]", command)]


def test_it_sets_up_as_readme_says():
    commands = re.findall(r"^    (.+?)(?:   .*)?$", section("Install"), re.MULTILINE)
    tests = re.findall(r"`([^`]+ -m pytest)`", section("Install"))
    assert len(commands) == 7
    assert len(tests) == 1
    # A window needs a display, and Windows' py starts the newest Python, not the one to test.
    opening = {"make run", r".venv\Scripts\python main.py", "lockstep"}
    for command in {*commands, *tests} - opening:
        assert command.replace("py -m venv", "python -m venv") in WORKFLOW


def test_it_runs_readmes_commands():
    # What finds a race exits with 1; tests/gpu/cli/user_code/test_simulate.py runs it.
    given = [command for command in commands() if not command.startswith("simulate ")]
    assert len(given) == 9
    for command in given:
        # The galaxies need a faster machine.
        small = command.replace("--bodies 10000 --steps 100", "--bodies 1000 --steps 10")
        assert f"python main.py {small}\n" in WORKFLOW


def test_it_tests_the_pythons_that_readme_names():
    [oldest] = re.findall(r"Python 3\.(\d+) or newer", section("Install"))
    assert f'"3.{oldest}"' in WORKFLOW
