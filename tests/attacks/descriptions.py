"""What Lockstep knows of GPUs that are not here: descriptions in TOML, measurements and comparisons in JSON."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np

from gpu.bench import device_records
from gpu.timing import gpus, occupancy, validation
from tests.odd_inputs import ODD_VALUES, format_toml, mutate_bytes, mutate_values, read_or_none


@cache
def _list_files() -> tuple[Path, ...]:
    return tuple(
        path
        for folder in (gpus.FOLDER, device_records.FOLDER, validation.FOLDER)
        for path in sorted(folder.glob("*.[tj]*"))
    )


@cache
def _read_excerpt(path: Path) -> bytes:
    """Return a file, of a long one only its first entries."""
    if path.suffix == ".toml":
        return path.read_bytes()
    whole = json.loads(path.read_bytes())
    return json.dumps({name: value[:3] if isinstance(value, list) else value for name, value in whole.items()}).encode()


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read such a file after some of its bytes, or one of its values, were changed, and use what it says."""
    whole = _list_files()[int(random.integers(len(_list_files())))]
    path = folder / whole.name
    data = _read_excerpt(whole)
    if random.random() < 0.4:
        data = mutate_bytes(random, data)
    else:
        read = tomllib.loads if whole.suffix == ".toml" else json.loads
        written = format_toml if whole.suffix == ".toml" else json.dumps
        data = written(mutate_values(random, read(data.decode()), ODD_VALUES)).encode(errors="surrogatepass")
    path.write_bytes(data)
    if path.suffix == ".toml":
        _check_description(read_or_none(lambda: gpus.read_gpu(path)))
    elif whole.parent == device_records.FOLDER:
        found = read_or_none(lambda: device_records.read_record(path))
        assert found is None or all(0 < run.median_ms < math.inf and run.size > 0 for run in found.runs)
        assert found is None or isinstance(found.label, str)
    else:
        compared = read_or_none(lambda: validation.read_validation(path))
        if compared is not None:
            assert all(0 < case.measured_us < math.inf for case in compared.cases)
            known = compared.find_error_bound("reduction")
            assert known is None or known.text


def _check_description(gpu: gpus.GpuDescription | None) -> None:
    if gpu is None:
        return
    for field in fields(gpu):
        value = getattr(gpu, field.name)
        assert not isinstance(value, float) or 0 < value < math.inf, field.name
    found = occupancy.compute_occupancy(gpu, 256, 32, 1024)
    assert found.blocks >= 0
