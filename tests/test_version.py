from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import gpu
from gpu.base import installation
from gpu.base.paths import ROOT
from tests import needs


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "main.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_changelog_dates_the_version():
    released = re.findall(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version, date = released[0]
    assert version == gpu.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)


def test_the_command_line_says_version_and_commit():
    said = run("--version")
    assert said.returncode == 0
    assert said.stdout == f"lockstep {installation.format_version()}\n"
    assert said.stdout.startswith(f"lockstep {gpu.__version__}")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a function that runs git in a small checkout, which has one commit."""

    def git(*arguments):
        names = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *names, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    monkeypatch.setattr(installation, "ROOT", tmp_path)
    monkeypatch.setattr(installation, "COMMIT_FILE", tmp_path / "commit.txt")
    return git


@needs.git
def test_a_checkout_knows_its_commit_and_whether_it_was_changed(checkout, tmp_path):
    assert installation.format_version() == gpu.__version__
    checkout("init", "-q")
    (tmp_path / "file").write_text("a")
    checkout("add", "file")
    checkout("commit", "-qm", "A")
    checkout("tag", "v1")
    commit = checkout("rev-parse", "HEAD")
    assert commit.startswith(installation.find_commit())
    assert len(installation.find_commit()) >= 7
    (tmp_path / "file").write_text("b")
    assert installation.format_version() == f"{gpu.__version__} (commit {commit[:7]}-dirty)"


def test_an_installed_package_has_its_commit_in_a_file(checkout, tmp_path):
    (tmp_path / "commit.txt").write_text("1a2b3c4\n")
    assert installation.format_version() == f"{gpu.__version__} (commit 1a2b3c4)"


@needs.linux
def test_where_names_the_folders(tmp_path):
    """The folders are those of the XDG base directory specification, and the variables of Lockstep's own."""
    unset = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"), "")
    own = {"LOCKSTEP_CACHE": str(tmp_path / "own cache"), "LOCKSTEP_SETTINGS": str(tmp_path / "own.json")}
    said = run("--where", HOME=str(tmp_path), **unset, **own)
    assert said.returncode == 0
    assert dict(re.split(r" {2,}", line) for line in said.stdout.splitlines()) == {
        "installation": str(ROOT),
        "settings": own["LOCKSTEP_SETTINGS"],
        "data": str(tmp_path / ".local" / "share" / "Lockstep"),
        "cache": own["LOCKSTEP_CACHE"],
    }
