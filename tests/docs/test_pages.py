"""Links between README, the handbook and its images resolve, and the handbook's index lists every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpu.base.paths import DOCS, ROOT
from gpu.lessons.lesson_reader import LIBRARY, read_all_lessons
from tools import docs_pages

INDEX = DOCS / "index.md"
PAGES = sorted((*DOCS.glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))))

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """Return a page's text without fenced code."""
    return _FENCE.sub("", page.read_text("utf-8"))


def link_targets(page: Path) -> list[str]:
    """Return the targets of a page's relative links and images."""
    found = _LINK.findall(_CODE.sub("", prose(page)))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub generates for a page's headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for target in link_targets(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_index_lists_every_page() -> None:
    listed = {target.partition("#")[0] for target in link_targets(INDEX)}
    assert {page.name for page in DOCS.glob("*.md")} - {INDEX.name} <= listed


def test_the_site_has_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": ([\w-]+\.md)$", nav, re.MULTILINE)
    assert sorted(listed) == sorted([*(page.name for page in DOCS.glob("*.md")), *docs_pages.PAGES.values()])


def test_links_to_files_outside_the_handbook_are_links_within_the_site() -> None:
    text = "[a](../README.md#install) [b](clusters.md) [c](#here) [d](../LICENSE) [e](https://x.org/y) ![f](a/b.png)"
    assert docs_pages.site_links(text, "docs/index.md") == (
        "[a](introduction.md#install) [b](clusters.md) [c](#here) [d](files/LICENSE) [e](https://x.org/y) ![f](a/b.png)"
    )
    assert docs_pages.site_links("[a](docs/learn.md) [b](CONTRIBUTING.md)", "README.md") == (
        "[a](learn.md) [b](contributing.md)"
    )
    assert docs_pages.repository_path("introduction.md") == "README.md"


def test_learn_lists_every_lesson_and_their_durations() -> None:
    text = (DOCS / "learn.md").read_text("utf-8")
    lessons = read_all_lessons(LIBRARY)
    minutes = [lesson.minutes for lesson in lessons]
    assert f"A lesson takes {min(minutes)} to {max(minutes)} minutes." in text
    rows = [(int(first), int(last)) for first, last in re.findall(r"^\| (\d+) to (\d+) \|", text, re.MULTILINE)]
    assert [number for first, last in rows for number in range(first, last + 1)] == [
        int(lesson.name.partition("-")[0]) for lesson in lessons
    ]
