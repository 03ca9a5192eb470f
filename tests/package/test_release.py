"""What a release publishes agrees with itself: version, dates, desktop entry and file types."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET

import gpu
from gpu.base.paths import ROOT
from gui.user_kernel.user_file import RECORDING_SUFFIXES

LINUX = ROOT / "package" / "linux"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_citation_is_of_the_last_release():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    [(version, date)] = re.findall(r"^version: (\S+)\ndate-released: \"(\S+)\"$", text, re.MULTILINE)
    assert version == gpu.__version__
    assert f"## [{version}] - {date}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_release_is_of_the_checked_package():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    commands = [
        "= \"v$(python -c 'import gpu; print(gpu.__version__)')\"",
        "tools.installation.wheel_check --keep dist",
    ]
    steps = [*commands, "attest-build-provenance", "gh release create"]
    assert [text.index(step) for step in steps] == sorted(text.index(step) for step in steps)


def test_the_recipe_for_conda_is_of_this_package():
    """Version, commands, and requirements under their names on conda-forge."""
    text = (ROOT / "package" / "conda" / "recipe.yaml").read_text("utf-8")
    assert f"\n  version: {gpu.__version__}\n" in text
    assert f'\n  python_min: "{PROJECT["project"]["requires-python"].removeprefix(">=")}"\n' in text
    commands = {**PROJECT["project"]["scripts"], **PROJECT["project"]["gui-scripts"]}
    assert dict(re.findall(r"^      - (\S+) = (\S+)$", text, re.MULTILINE)) == commands
    required = {}
    for file in ("requirements-run.txt", "pyproject.toml"):
        lines = (ROOT / file).read_text("utf-8")
        lines = lines.partition("requires = [")[2].partition("]")[0].replace(", ", "\n") if ".toml" in file else lines
        required |= dict(re.findall(r'^"?([A-Za-z][\w-]*)((?:>=|==)[\d.]+)', lines, re.MULTILINE))
    names = {name.lower(): version for name, version in required.items()}
    # Its Python files are in another package there; a build of either version has a further number.
    names |= {"python-clang": names["libclang"]}
    named = re.findall(r"^    - ([\w-]+) (>=)?([\d.]+)(\.\*)?$", text, re.MULTILINE)
    assert {name: f"{operator or '=='}{version}" for name, operator, version, _ in named} == names


def test_the_desktop_entry_opens_recordings():
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(LINUX / "lockstep.desktop", "utf-8")
    [section] = [entry[name] for name in entry.sections()]
    command, argument = section["Exec"].split()
    assert command in PROJECT["project"]["gui-scripts"]
    assert argument == "%f", "main.py opens one file"
    types = ET.parse(LINUX / "lockstep.xml").getroot()
    names = {"m": "http://www.freedesktop.org/standards/shared-mime-info"}
    [kind] = types.findall("m:mime-type", names)
    assert section["MimeType"] == f"{kind.get('type')};"
    patterns = {glob.get("pattern") for glob in kind.findall("m:glob", names)}
    assert patterns == {f"*{suffix}" for suffix in RECORDING_SUFFIXES} - {"*.html"}, "browsers open players"
    shared = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert all((ROOT / source).is_file() for source in shared)
    assert f"share/icons/hicolor/scalable/apps/{section['Icon']}.svg" in shared.values()
    # In a new process: in this one a test may have created the application before.
    command = "from gui.app import application; print(application().desktopFileName())"
    said = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert f"share/applications/{said.stdout.strip()}.desktop" in shared.values()
