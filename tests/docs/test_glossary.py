"""The glossary's data, its page, and its terms in user-visible text."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gpu.base.errors import LockstepError
from gpu.base.glossary import UnknownTermError, find_term, read_terms
from gpu.base.paths import ROOT
from tools.glossary import PAGE, render_page

LONGEST_DEFINITION = 240


def test_read_terms_returns_all_terms():
    terms = read_terms()
    assert 60 <= len(terms) <= 120
    assert terms[0].name == "kernel"
    assert read_terms() is terms


def test_terms_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        read_terms()[0].name = "another"


def test_names_and_avoided_phrases_are_unique():
    terms = read_terms()
    names = [term.name for term in terms]
    avoided = [phrase for term in terms for phrase in term.avoid]
    assert len(set(names)) == len(names)
    assert len(set(avoided)) == len(avoided)
    assert set(avoided).isdisjoint(names)


def test_each_group_is_contiguous():
    groups = [term.group for term in read_terms()]
    changes = [group for group, before in zip(groups, [None, *groups], strict=False) if group != before]
    assert len(changes) == len(set(changes)) > 5


@pytest.mark.parametrize("term", read_terms(), ids=lambda term: term.name)
def test_definition_is_short_and_code_exists(term):
    assert term.definition[0].isupper() or term.definition[0].isdigit()
    assert term.definition.endswith(".")
    assert len(term.definition) <= LONGEST_DEFINITION
    assert term.definition.count("`") % 2 == 0
    assert (ROOT / term.code).exists()
    assert term.code.endswith("/") == (ROOT / term.code).is_dir()


def test_find_term():
    assert find_term("sector").definition.startswith("32 consecutive bytes")


def test_unknown_term_is_an_error_with_a_sentence():
    with pytest.raises(UnknownTermError, match=r'^The glossary has no term "sectr"\.$') as caught:
        find_term("sectr")
    assert isinstance(caught.value, LockstepError)
    assert isinstance(caught.value, LookupError)
    assert caught.value.advice == 'Did you mean "sector"?'


def test_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == render_page(read_terms()), "run python -m tools.glossary"


def test_page_lists_every_term_once():
    page = PAGE.read_text("utf-8")
    assert [term.name for term in read_terms() if page.count(f"- **{term.name}**: ") != 1] == []


def program_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string in Python source, except docstrings. A placeholder's text is "{}"."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            skipped.update(id(part) for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def find_phrases(texts: Iterator[tuple[int, str]], phrases: Sequence[str]) -> list[tuple[int, str]]:
    """Return the line of each text that contains a phrase, and the phrase; line breaks count as spaces."""
    pattern = re.compile(
        r"\b(?:" + "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases) + r")\b", re.IGNORECASE
    )
    return [
        (line + text.count("\n", 0, found.start()), " ".join(found.group().lower().split()))
        for line, text in texts
        for found in pattern.finditer(text)
    ]


def avoided_wording(root: Path, phrases: Sequence[str]) -> list[str]:
    """Return the file, line and phrase of each avoided phrase in user-visible text below `root`."""
    programs = [path for folder in ("gpu", "gui", "tools") for path in (root / folder).rglob("*.py")]
    pages = [*(root / "docs").glob("*.md"), *(root / "assets" / "lessons").rglob("*.md")]
    files = [*programs, root / "main.py", root / "README.md", *(page for page in pages if page.name != "benchmarks.md")]
    found = []
    for path in sorted(files):
        text = path.read_text("utf-8")
        lowered = text.lower()
        if not any(all(word in lowered for word in phrase.split()) for phrase in phrases):
            continue  # parsing a thousand files takes seconds
        texts = program_texts(text) if path.suffix == ".py" else iter([(1, text)])
        name = path.relative_to(root).as_posix()
        found += [f"{name}:{line}: {phrase}" for line, phrase in find_phrases(texts, phrases)]
    return found


def test_text_uses_the_glossary_terms():
    phrases = {phrase: term.name for term in read_terms() for phrase in term.avoid}
    found = avoided_wording(ROOT, tuple(phrases))
    assert [f"{each}: write {phrases[each.rpartition(': ')[2]]!r}" for each in found] == []


def write_file(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, "utf-8")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return a folder with the files that the test reads, without avoided wording."""
    for name in ("main.py", "README.md"):
        write_file(tmp_path, name, "")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("gpu/run/some.py", 'TEXT = "The meeting point"\n', "gpu/run/some.py:1: meeting point"),
        ("gui/some.py", 'n = 1\nTEXT = f"{n} Meeting  points, meeting {n} point, meeting point"\n', "gui/some.py:2: "),
        ("gui/some.py", 'TEXT = "The meeting " "point"\n', "gui/some.py:1: meeting point"),
        (
            "gui/some.py",
            "TEXT = f\"{len(['meeting point'])}\"\n",
            "gui/some.py:1: ",
        ),
        ("tools/some.py", 'TEXT = """One\ntwo meeting\npoint."""\n', "tools/some.py:2: meeting point"),
        ("main.py", 'print("MEETING POINT")\n', "main.py:1: meeting point"),
        ("README.md", "# Title\n\nA meeting\npoint.\n", "README.md:3: meeting point"),
        ("docs/some.md", "A meeting point\n", "docs/some.md:1: meeting point"),
        ("assets/lessons/01-some/lesson.md", "`meeting point`\n", "assets/lessons/01-some/lesson.md:1: meeting point"),
    ],
)
def test_avoided_wording_finds_planted_text(planted, name, text, expected):
    write_file(planted, name, text)
    (found,) = avoided_wording(planted, ("meeting point", "scratchpad"))
    assert found == (expected + "meeting point" if expected.endswith(" ") else expected)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu/some.py", '"""A meeting point."""\nx = 1\n"""Another meeting point."""\n'),
        ("gui/some.py", 'def meet():\n    """Return a meeting point."""\n    return 1  # the meeting point\n'),
        ("gui/some.py", 'TEXT = "meeting_point, meeting points, scratchpads"\n'),
        ("docs/benchmarks.md", "A meeting point\n"),
        ("assets/some.md", "A meeting point\n"),
    ],
)
def test_avoided_wording_skips_other_text(planted, name, text):
    write_file(planted, name, text)
    assert avoided_wording(planted, ("meeting point", "scratchpad")) == []
