"""Results of a long run that a later run continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class SavedResults:
    """Results of earlier runs, with new ones added; in memory only without a folder.

    Parameters
    ----------
    name : str
        Name of the file, without suffix.
    """

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = folder / f"{name}.json" if folder is not None else None
        has = self._path is not None and self._path.is_file()
        self.results: dict[str, Any] = json.loads(self._path.read_text("utf-8")) if has and self._path else {}

    def add(self, key: str, value: object) -> None:
        """Add a result and save."""
        self.results[key] = value
        self.save()

    def save(self) -> None:
        """Write all results, atomically."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self.results, indent=1), "utf-8")
            new.replace(self._path)
