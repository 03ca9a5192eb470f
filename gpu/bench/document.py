"""The page of figures, a section for each kind of device; a run replaces its own section and leaves the others."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

_HEAD = """# Benchmarks

Every figure on this page was measured by `python main.py bench`, which writes it: our variants (bold) and the libraries
that a user would take instead, in one run. A variant is verified against the float64 reference before it is timed.
Times are medians of device events (on the simulator, of a clock) around the kernels alone. Rates count the least
traffic that the task needs: each input read once, each result written once.
"""


def write_section(path: Path, name: str, device: str, body: str) -> None:
    """Write a device's section of the page, and keep the others.

    Parameters
    ----------
    path : Path
        The page; made where it does not exist.
    name : str
        The section, such as "GPU".
    device : str
        What the rows were measured on.
    body : str
        How it was measured, and the figures.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    section = f"## {name}: {device}, {today}\n\n{body}\n"
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    others = [other for other in sections if not other.startswith(f"## {name}:")]
    kept = [part.strip() + "\n" for part in (head, *sorted([*others, section]))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(kept), encoding="utf-8")
