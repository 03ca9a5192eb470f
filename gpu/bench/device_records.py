"""Recorded times of variants on named GPUs, as data files that the benchmark writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files import file_access

FOLDER = ASSETS / "recorded"

_MAX_BYTES = 2**23


@dataclass(frozen=True)
class RecordedRun:
    """Times of a variant at a size.

    Parameters
    ----------
    pattern, variant : str
        Names in the declaration.
    size : int
        Elements, columns or bodies; for images the pixels of a side.
    params : mapping
        Parameters other than the defaults.
    median_ms, min_ms, max_ms : float
        Kernel times over the repetitions.
    rate : float
        The pattern's work per second of the median, in `unit`, such as "Mpixel/s".
    least_bytes : int
        Minimum traffic of the pattern.
    verified : bool
        Whether the result equals the reference result; if not, nothing was timed.
    """

    pattern: str
    variant: str
    size: int
    params: Mapping[str, Any]
    median_ms: float
    min_ms: float
    max_ms: float
    repetitions: int
    rate: float
    unit: str
    least_bytes: int
    verified: bool


@dataclass(frozen=True)
class DeviceRecord:
    """All measurements on a GPU.

    Parameters
    ----------
    device : str
        The driver's name of the GPU.
    date : str
        Date of the measurement, such as "2026-11-22".
    driver : str
        The driver's version; "" if it was not recorded.
    method : str
        The method of measurement, in a sentence.
    """

    device: str
    date: str
    driver: str
    method: str
    runs: tuple[RecordedRun, ...]

    @property
    def label(self) -> str:
        """Label of all figures of the record."""
        article = "an" if re.match(r"NVIDIA|[AEIOU]", self.device) else "a"
        return f"recorded on {article} {self.device}, {self.date}"

    def verified_runs(self, pattern: str) -> tuple[RecordedRun, ...]:
        """Return the verified runs of a pattern."""
        return tuple(run for run in self.runs if run.pattern == pattern and run.verified)


def record_path(device: str) -> Path:
    """Return the data file of a GPU."""
    return FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')}.json"


def write_record(path: Path, record: DeviceRecord) -> None:
    """Write measurements to a file, one run per line."""
    about = {field.name: getattr(record, field.name) for field in fields(record) if field.name != "runs"}
    lines = ",\n".join("  " + json.dumps(asdict(run), allow_nan=False) for run in record.runs)
    head = json.dumps(about, indent=1).rstrip("\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_access.replace_file(path) as file:
        file.write(f'{head},\n "runs": [\n{lines}\n ]\n}}\n'.encode())


def read_record(path: Path) -> DeviceRecord:
    """Read measurements; raise InputError if the file does not contain any."""
    try:
        data = json.loads(file_access.read_bytes(path, _MAX_BYTES))
        recorded = DeviceRecord(**{**data, "runs": tuple(_parse_run(each) for each in data["runs"])})
        if not all(isinstance(value, str) for name, value in data.items() if name != "runs"):
            raise TypeError("a text is missing")
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(
            f"{file_access.format_path(path.name)} does not contain recorded measurements: "
            f"{file_access.format_path(str(error))}."
        ) from None
    return recorded


def _parse_run(data: dict[str, Any]) -> RecordedRun:
    times = [data.get(name, 1) for name in ("median_ms", "min_ms", "max_ms", "rate")]
    if not all(isinstance(time, int | float) and math.isfinite(time) and time > 0 for time in times):
        raise ValueError(f"a time of {data.get('variant')} is not a positive number")
    size = data.get("size", 1)
    if not isinstance(size, int) or size < 1 or size & (size - 1):
        raise ValueError(f"{size} is not a power of two")
    return RecordedRun(**data)


def read_records(folder: Path | None = None) -> Sequence[DeviceRecord]:
    """Return the measurements of every GPU, the newest first."""
    paths = sorted((folder or FOLDER).glob("*.json"))
    records = [_read_once(path, path.stat().st_mtime_ns if path.exists() else 0) for path in paths]
    return sorted(records, key=lambda recorded: recorded.date, reverse=True)


@lru_cache(maxsize=64)
def _read_once(path: Path, _written: int) -> DeviceRecord:
    """Read measurements that were not read since they were written: every Compare tab needs them."""
    return read_record(path)
