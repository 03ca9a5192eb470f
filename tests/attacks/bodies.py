"""Files of bodies: tables, tipsy and .npy, changed in a few bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpu.patterns.nbody.files import FORMATS, MAX_BODIES, read_bodies, write_bodies
from tests.odd_inputs import mutate_bytes, read_or_none


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read bodies of which some bytes were changed."""
    ending = str(random.choice(FORMATS))
    path = folder / f"x{ending}"
    bodies = random.standard_normal((int(random.integers(1, 20)), 7)).astype(np.float32)
    bodies[:, 6] = np.abs(bodies[:, 6])
    write_bodies(path, bodies)
    data = path.read_bytes()
    path.write_bytes(mutate_bytes(random, data, head=120) if random.random() < 0.95 else random.bytes(200))
    found = read_or_none(lambda: read_bodies(path))
    if found is not None:
        assert found.dtype == np.float32
        assert found.ndim == 2
        assert found.shape[1] == 7
        assert 1 <= len(found) <= MAX_BODIES
        assert np.isfinite(found).all()
        assert (found[:, 6] >= 0).all()
        assert found.nbytes <= 16 * path.stat().st_size
