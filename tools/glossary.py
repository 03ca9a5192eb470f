"""Write docs/glossary.md from the glossary's data: `python -m tools.glossary`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gpu.base.glossary import GlossaryTerm, read_terms
from gpu.base.paths import DOCS

PAGE = DOCS / "glossary.md"
_INTRODUCTION = """# Glossary

Terms of the window, the documentation and the code. `python -m tools.glossary` writes this page from
`assets/glossary.toml`; the window shows the same definitions in tooltips.
"""


def render_page(terms: Sequence[GlossaryTerm]) -> str:
    """Return the page in Markdown: a section per group, a list item per term."""
    sections = [
        f"## {group}\n\n" + "".join(f"- **{term.name}**: {term.definition} (`{term.code}`)\n" for term in members)
        for group, members in groupby(terms, lambda term: term.group)
    ]
    return "\n".join([_INTRODUCTION, *sections])


if __name__ == "__main__":
    PAGE.write_text(render_page(read_terms()), "utf-8")
