"""Entries of the cache: changed, exchanged, cut off, or no files at all."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import numpy as np

from gpu.simulator import disk
from tests.odd_inputs import mutate_bytes


def attack(random: np.random.Generator, folder: Path) -> None:
    """Ask for an entry that somebody has touched: it is what was kept under that key, or none; then keep it again."""
    where = folder / "cache"
    with patch.dict(os.environ, {"LOCKSTEP_CACHE": str(where)}):
        kept = {name: random.bytes(int(random.integers(500))) for name in ("a", "b")}
        for name, content in kept.items():
            disk.write_entry(where / name, name, content)
        path = where / "a"
        _tamper_with(random, path)
        assert disk.read_entry(path, "a") in (None, kept["a"])
        assert disk.read_entry(where / "b", "b") == kept["b"]
        disk.write_entry(path, "a", b"new")
        assert disk.read_entry(path, "a") in (None, b"new")
        assert not [each for each in where.iterdir() if each.name.startswith("unfinished")]


def _tamper_with(random: np.random.Generator, path: Path) -> None:
    sealed = path.read_bytes()
    match int(random.integers(8)):
        case 0:
            path.write_bytes(path.with_name("b").read_bytes())
        case 1:
            path.unlink()
            os.mkfifo(path)
        case 2:
            path.unlink()
            path.symlink_to(str(random.choice(["/dev/zero", "b", "a", "/dev/null", "none"])))
        case 3:
            path.unlink()
            path.mkdir()
        case 4:
            path.chmod(0o666)
        case 5:
            os.truncate(path, int(random.choice([0, 31, 32, disk.MAX_ENTRY_BYTES + 1])))
        case _:
            path.write_bytes(mutate_bytes(random, sealed))
