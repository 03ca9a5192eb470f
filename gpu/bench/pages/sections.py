"""The benchmark's data files: one JSON file per section, with every measured row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.files import file_access

_MOST_BYTES = 2**25


@dataclass(frozen=True)
class ResultTable:
    """A table of a section.

    Parameters
    ----------
    numeric : tuple of bool
        Whether a column is right-aligned.
    rows : tuple of tuple of str
        The cells as printed: Markdown, so that a variant of ours is bold.
    """

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rule = ("--:" if right else "---" for right in self.numeric)
        return "\n".join("| " + " | ".join(cells) + " |" for cells in (self.columns, tuple(rule), *self.rows))


@dataclass(frozen=True)
class ResultSection:
    """The results of one benchmark.

    Parameters
    ----------
    name : str
        The benchmark, such as "GPU".
    device : str
        Name of the measured device.
    date : str
        Day of the measurement, as YYYY-MM-DD.
    blocks : tuple of str or ResultTable
        Paragraphs and tables, in order.
    """

    name: str
    device: str
    date: str
    blocks: tuple[str | ResultTable, ...]

    @property
    def title(self) -> str:
        return f"## {self.name}: {self.device}, {self.date}"

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(block for block in self.blocks if isinstance(block, str))

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ResultTable))

    def table(self, *columns: str) -> ResultTable | None:
        """Return the first table that begins with these columns, or None."""
        return next((table for table in self.tables if table.columns[: len(columns)] == columns), None)

    def markdown(self) -> str:
        """Return the whole section as Markdown."""
        parts = (block if isinstance(block, str) else block.markdown() for block in self.blocks)
        return "\n\n".join((self.title, *parts))


def parse_section(name: str, device: str, date: str, body: str) -> ResultSection:
    """Split the Markdown text of a section into paragraphs and tables.

    Parameters
    ----------
    name, device, date : str
        As in `ResultSection`.
    body : str
        Paragraphs and tables, separated by empty lines. Cells of tables contain no vertical bars.
    """
    blocks = (block.strip() for block in re.split(r"\n\s*\n", body))
    return ResultSection(name, device, date, tuple(_block(block) for block in blocks if block))


def _block(text: str) -> str | ResultTable:
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].startswith("|") or not re.fullmatch(r"[|\s:-]+", lines[1]):
        return text
    columns, rule, *rows = (tuple(cell.strip() for cell in line.strip()[1:-1].split("|")) for line in lines)
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"a row of the table {columns} has another number of cells")
    return ResultTable(columns, tuple(cell.endswith(":") for cell in rule), tuple(rows))


def file_of(folder: Path, name: str) -> Path:
    """Return the data file of a section, such as `timing-model-on-h200.json`."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", name.lower().replace("'", "")).strip("-") + ".json")


def save_section(folder: Path, section: ResultSection) -> None:
    """Write a section's data file; a row of a table is a line of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = ",\n".join(_lines(block) for block in section.blocks)
    head = "".join(f"{_json(key)}: {_json(getattr(section, key))},\n" for key in ("name", "device", "date"))
    with file_access.replace_file(file_of(folder, section.name)) as file:
        file.write(f'{{\n{head}"blocks": [\n{blocks}\n]\n}}\n'.encode())


def _lines(block: str | ResultTable) -> str:
    if isinstance(block, str):
        return _json(block)
    rows = ",\n".join(_json(row) for row in block.rows)
    return f'{{"columns": {_json(block.columns)},\n"numeric": {_json(block.numeric)},\n"rows": [\n{rows}\n]}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def load_sections(folder: Path) -> list[ResultSection]:
    """Load all data files of a folder, sorted by file name.

    Raises
    ------
    InputError
        A file is not a section.
    """
    return list(_load(folder)) if folder.is_dir() else []


def _load(folder: Path) -> Iterator[ResultSection]:
    for path in sorted(folder.glob("*.json")):
        try:
            data = json.loads(file_access.read_bytes(path, _MOST_BYTES))
            blocks = tuple(block if isinstance(block, str) else _table(block) for block in data["blocks"])
            yield ResultSection(data["name"], data["device"], data["date"], blocks)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path.name} is not a data file of the benchmark: {error!r}.") from None


def _table(data: Any) -> ResultTable:
    rows = tuple(tuple(row) for row in data["rows"])
    return ResultTable(tuple(data["columns"]), tuple(data["numeric"]), rows)
