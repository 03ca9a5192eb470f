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
        for name in re.findall(r"^class ([^\W_]\w*)", path.read_text("utf-8"), re.MULTILINE):
            where[name].append(str(path.relative_to(ROOT)))
    # The tools know nothing of the program, as they set it up.
    shared = {name: files for name, files in where.items() if len([file for file in files if file[0] == "g"]) > 1}
    assert shared == {}


def test_the_map_names_what_is_there() -> None:
    text = MAP.read_text("utf-8")
    named = set(re.findall(r"`((?:gpu|gui|kernels|tools)/[\w/.*{},]+)`", text))
    named = {each for each in named if "*" not in each and "{" not in each and "NAME" not in each}
    assert len(named) > 25
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def read_paths() -> list[str]:
    """Return the paragraphs of the map that follow a path through the code."""
    text = MAP.read_text("utf-8").partition("## Three paths through the code\n")[2].partition("\n## ")[0]
    return [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]


def find_missing_files(paragraph: str) -> list[str]:
    """Return the file names of a paragraph that are in no folder that it has named before them."""
    folders: set[Path] = set()
    missing = []
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", paragraph):
        if "/" in name:
            path = ROOT / name
            folders.add(path.parent if name.endswith(".py") else path)
            found = path.exists()
        else:
            found = any((folder / name).is_file() for folder in folders)
        if not found:
            missing.append(name)
    return missing


def test_each_file_of_a_path_is_in_a_folder_that_the_path_has_named() -> None:
    paths = read_paths()
    assert len(paths) == 3
    assert [find_missing_files(paragraph) for paragraph in paths] == [[], [], []]
    assert find_missing_files("`gpu/run/verification.py`, `repetition.py`, `recorder.py`, `gpu/no/`") == [
        "recorder.py", "gpu/no/",
    ]  # fmt: skip


def test_each_class_of_a_path_is_a_message() -> None:
    named = {name for paragraph in read_paths() for name in re.findall(r"`([A-Z]\w+)(?:\.\w+)?`", paragraph)}
    messages = {
        node.name
        for path in (ROOT / "gpu" / "messages").rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    assert len(named) >= 4
    assert named - messages == set()


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
