"""MkDocs hook: make links from the handbook to files outside docs/ work on the site, as they do on GitHub.

README, CONTRIBUTING and others become pages of the site. Other files that a page links to are copied to the site.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from typing import Any

from gpu.base.paths import DOCS, ROOT

PAGES = {
    # MkDocs would make README.md the start page, which is the handbook's index.
    "README.md": "introduction.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "assets/images/README.md": "sample-images.md",
}
"""Pages outside docs/, from the repository's root, and their names on the site."""
FILES = "files/"
"""Folder of the site for copies of other files."""

_LINK = re.compile(r"(\]\()([^()\s#]+)((?:#[^()\s]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside docs/, and the files that any page links to."""
    make = importlib.import_module("mkdocs.structure.files").File.generated
    for name, page in PAGES.items():
        files.append(make(config, page, content=(ROOT / name).read_text("utf-8")))
    for name in sorted(_linked_files()):
        files.append(make(config, FILES + name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the links of a page by links within the site."""
    return site_links(markdown, repository_path(page.file.src_uri))


def repository_path(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    outside = {site: name for name, site in PAGES.items()}
    return outside.get(page, f"docs/{page}")


def site_links(markdown: str, path: str) -> str:
    """Replace relative links by links within the site.

    Parameters
    ----------
    path : str
        The page's path in the repository.
    """

    def replace(link: re.Match[str]) -> str:
        target = link[2]
        if re.match(r"[a-z]+:", target):
            return link[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        return link[1] + _site_path(name) + link[3]

    # All pages of the site are in one folder, so a path on the site is also a relative link.
    return _LINK.sub(replace, markdown)


def _site_path(name: str) -> str:
    """Return the path on the site of a file of the repository."""
    if name in PAGES:
        return PAGES[name]
    return name.removeprefix("docs/") if name.startswith("docs/") else FILES + name


def _linked_files() -> set[str]:
    """Return the files outside docs/, other than pages, that pages link to."""
    found = set()
    for path in (*PAGES, *(f"docs/{page.name}" for page in DOCS.glob("*.md"))):
        text = site_links((ROOT / path).read_text("utf-8"), path)
        found |= {link[2].removeprefix(FILES) for link in _LINK.finditer(text) if link[2].startswith(FILES)}
    return found
