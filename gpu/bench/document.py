"""The benchmark page, with a section per kind of device; a run replaces its own section only."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

_HEAD = """# Benchmarks

`python main.py bench` measured every figure on this page and wrote it: our variants (bold) and the libraries that a
user could use instead, in one run. A variant is verified against the float64 reference result before it is timed. Times
are medians of device events (on the simulator, of a clock) around the kernels alone. Rates count the minimum traffic of
the task: each input read once, each result written once.
"""


def write_section(path: Path, name: str, device: str, body: str) -> None:
    """Write a device's section of the page, and keep the other sections.

    Parameters
    ----------
    path : Path
        The page; created if it does not exist.
    name : str
        Name of the section, such as "GPU".
    device : str
        Name of the device that was measured.
    body : str
        The method and the figures.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    section = f"## {name}: {device}, {today}\n\n{body}\n"
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    others = [other for other in sections if not other.startswith(f"## {name}:")]
    parts = [part.strip() + "\n" for part in (head, *sorted([*others, section]))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")
