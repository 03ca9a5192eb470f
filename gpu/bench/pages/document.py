"""The benchmark page and its data files: a run replaces one data file, and the page is written from all of them."""

from __future__ import annotations

import datetime
from pathlib import Path

from gpu.base.errors import InputError
from gpu.bench.pages import page, sections
from gpu.bench.pages.sections import ResultSection
from gpu.files import file_access


def data_folder(path: Path) -> Path:
    """Return the folder of a page's data files, such as docs/benchmarks/ for docs/benchmarks.md."""
    return path.with_suffix("")


def write_section(path: Path, name: str, device: str, body: str) -> None:
    """Write a section's data file, and the page from all data files.

    Parameters
    ----------
    path : Path
        The page; created if it does not exist.
    name : str
        Name of the section, such as "GPU". The section with this name is replaced.
    device : str
        Name of the device that was measured.
    body : str
        The method and all figures, as Markdown.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    sections.save_section(data_folder(path), sections.parse_section(name, device, today, body))
    write_page(path)


def write_page(path: Path) -> None:
    """Write the page from its data files."""
    text = page.render(sections.load_sections(data_folder(path)))
    with file_access.replace_file(path) as file:
        file.write(text.encode())


def find_sections(path: Path, name: str) -> list[ResultSection]:
    """Find sections by a part of their names, ignoring case; a full name selects one section.

    Raises
    ------
    InputError
        There are no results, or no such section; the message lists the names.
    """
    known = sections.load_sections(data_folder(path))
    if not known:
        raise InputError(
            f"There are no benchmark results in {data_folder(path)}.",
            advice="A checkout of Lockstep has those of docs/benchmarks.md; --document names another page.",
        )
    wanted = name.strip().lower()
    exact = [section for section in known if section.name.lower() == wanted]
    found = exact or [section for section in known if wanted in section.name.lower()]
    if not found:
        names = ", ".join(section.name for section in known)
        raise InputError(f"There are no benchmark results named {name!r}. Choose one of: {names}.")
    return found
