"""The glossary's data, its page, and its terms in user-visible text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gpu.errors import LockstepError
from gpu.glossary import UnknownTermError, find_term, read_terms
from tools.glossary import PAGE, render_page

ROOT = Path(__file__).parents[1]
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
