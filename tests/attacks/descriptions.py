"""What Lockstep knows of GPUs that are not here: descriptions in TOML, measurements and comparisons in JSON."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np

from gpu.bench import recorded
from gpu.timing import gpus, occupancy, validation
from tests.odd_inputs import ODD_VALUES, answer, as_toml, changed, mutated


@cache
def _whole() -> tuple[Path, ...]:
    return tuple(
        path for folder in (gpus.FOLDER, recorded.FOLDER, validation.FOLDER) for path in sorted(folder.glob("*.[tj]*"))
    )


@cache
def _text(path: Path) -> bytes:
    """Return a file, of a long one only its first entries."""
    if path.suffix == ".toml":
        return path.read_bytes()
    whole = json.loads(path.read_bytes())
    return json.dumps({name: value[:3] if isinstance(value, list) else value for name, value in whole.items()}).encode()


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read such a file after some of its bytes, or one of its values, were changed, and use what it says."""
    whole = _whole()[int(random.integers(len(_whole())))]
    path = folder / whole.name
    data = _text(whole)
    if random.random() < 0.4:
        data = mutated(random, data)
    else:
        read = tomllib.loads if whole.suffix == ".toml" else json.loads
        written = as_toml if whole.suffix == ".toml" else json.dumps
        data = written(changed(random, read(data.decode()), ODD_VALUES)).encode(errors="surrogatepass")
    path.write_bytes(data)
    if path.suffix == ".toml":
        _use(answer(lambda: gpus.read(path)))
    elif whole.parent == recorded.FOLDER:
        found = answer(lambda: recorded.read(path))
        assert found is None or all(0 < run.median_ms < math.inf and run.size > 0 for run in found.runs)
        assert found is None or isinstance(found.words, str)
    else:
        compared = answer(lambda: validation.read(path))
        if compared is not None:
            assert all(0 < case.measured_us < math.inf for case in compared.cases)
            known = compared.error("reduction")
            assert known is None or known.words


def _use(gpu: gpus.GpuDescription | None) -> None:
    if gpu is None:
        return
    for field in fields(gpu):
        value = getattr(gpu, field.name)
        assert not isinstance(value, float) or 0 < value < math.inf, field.name
    found = occupancy.occupancy(gpu, 256, 32, 1024)
    assert found.blocks >= 0
