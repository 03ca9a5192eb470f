"""The glossary: terms of the window, the documentation and the code, read from `assets/glossary.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from gpu.base.errors import LockstepError
from gpu.base.paths import ASSETS

FILE = ASSETS / "glossary.toml"


class UnknownTermError(LockstepError, LookupError):
    """The glossary does not define a term."""


@dataclass(frozen=True)
class GlossaryTerm:
    """A term and its definition.

    Parameters
    ----------
    name : str
        The term in lower case, except for names such as GPU.
    group : str
        Heading under which the term is listed.
    definition : str
        One or two sentences; code in them is between backticks.
    code : str
        Path, relative to the project's root, of a folder or kernel file that uses the term.
    avoid : tuple of str
        Wording that the term replaces.
    """

    name: str
    group: str
    definition: str
    code: str
    avoid: tuple[str, ...] = ()


@cache
def read_terms() -> tuple[GlossaryTerm, ...]:
    """Return all terms in the file's order."""
    entries = tomllib.loads(FILE.read_text("utf-8"))["term"]
    return tuple(GlossaryTerm(**{**entry, "avoid": tuple(entry.get("avoid", ()))}) for entry in entries)


@cache
def _terms_by_name() -> dict[str, GlossaryTerm]:
    return {term.name: term for term in read_terms()}


def find_term(name: str) -> GlossaryTerm:
    """Return the term with a name.

    Raises
    ------
    UnknownTermError
        If the glossary does not define the name.
    """
    terms = _terms_by_name()
    if name not in terms:
        similar = " or ".join(f'"{close_match}"' for close_match in get_close_matches(name, terms, 2))
        raise UnknownTermError(
            f'The glossary has no term "{name}".', advice=f"Did you mean {similar}?" if similar else ""
        )
    return terms[name]
