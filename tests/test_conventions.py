"""What is said of the house is so: names stand for one thing each, and the map names files that are there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from gpu.base.paths import DOCS, ROOT

MAP = DOCS / "architecture.md"
LARGEST_BYTES = 1_500_000
PRIVATE_WORDS = re.compile(r"\b(gangs?|strands?|aside)\b", re.IGNORECASE)


def modules() -> list[Path]:
    return [path for room in ("gpu", "gui", "tools") for path in sorted((ROOT / room).rglob("*.py"))]


def test_every_class_has_a_name_of_its_own() -> None:
    where = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(ROOT)))
    # The tools know nothing of the program, as they set it up.
    shared = {name: files for name, files in where.items() if len([file for file in files if file[0] == "g"]) > 1}
    assert shared == {}


def test_the_map_names_what_is_there() -> None:
    text = MAP.read_text("utf-8")
    named = set(re.findall(r"`((?:gpu|gui|kernels|tools)/[\w/.*{},]+)`", text))
    named = {each for each in named if "*" not in each and "{" not in each and "NAME" not in each}
    assert len(named) > 25
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def test_every_room_is_on_the_map() -> None:
    text = MAP.read_text("utf-8")
    rooms = [
        path.name for house in ("gpu", "gui") for path in (ROOT / house).iterdir() if (path / "__init__.py").exists()
    ]
    assert [room for room in rooms if f" {room}/" not in text and f"  {room}/" not in text] == []


def test_the_map_fits_a_screen_and_a_half() -> None:
    lines = MAP.read_text("utf-8").splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 120


def test_no_word_that_only_this_project_knew_comes_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in modules()
        for line in path.read_text("utf-8").splitlines()
        if PRIVATE_WORDS.search(line)
    ]
    assert found == []


def test_nothing_large_is_kept() -> None:
    """A package that was downloaded to look into it, say, would stay in every clone for ever."""
    top = [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name != "tour"]
    kept = [path for each in top for path in (each.rglob("*") if each.is_dir() else (each,)) if path.is_file()]
    assert len(kept) > 1000
    assert [path.name for path in kept if path.stat().st_size > LARGEST_BYTES] == []
