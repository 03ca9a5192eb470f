"""Settings that mean harm or are just broken."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from gpu.patterns import all_patterns
from gui.model.settings import SavedSettings

_KEYS = (
    "theme", "text_size", "engine", "histogram_scale", "pattern", "image", "recent", "geometry",
    "convolution/page/sizes",
    *(f"patterns/{name}/{key}" for name in all_patterns() for key in ("variant", "params", "step_params", "schedule")),
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, -1, 2**63, 10**400, 1e308, "", "light", "a\0b", "/" * 70_000, "\ud800", "NaN", [], {}, [[]],
    [[1, 2], [3]],
    [[["x"]]], ["a"] * 100, ["\0", "/dev/zero", "x" * 5000], {"": []}, [-(2**40)], [10**9, 1],
)  # fmt: skip


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read settings of which some are odd, or whose text was changed, and put others in their place."""
    path = folder / "settings.json"
    settings: dict[str, Any] = {}
    for key in random.choice(_KEYS, 5).tolist():
        settings[key] = _draw_odd_params(random, key) if key.endswith("params") else _draw_odd_value(random)
    data = bytearray(json.dumps(settings).encode())
    if random.random() < 0.3:
        for place in random.integers(len(data), size=int(random.integers(1, 4))).tolist():
            data[place] = int(random.integers(256))
    path.write_bytes(data)
    read_all_settings(SavedSettings(path))


def read_all_settings(settings: SavedSettings) -> None:
    """Ask for everything that is remembered, as the window does, and remember something else."""
    for pattern in all_patterns().values():
        assert pattern.check(settings.params(pattern)).keys() == {each.name for each in pattern.parameters}
        assert settings.variant(pattern) in {variant.name for variant in pattern.variants}
        settings.step(pattern)
    assert settings.theme in ("dark", "light")
    assert isinstance(settings.text_size + settings.engine + settings.scale + settings.pattern, str)
    for path in filter(None, (settings.image, *settings.recent)):
        assert not os.path.isfile(path)
    assert all(0 <= size < 2**31 for size in settings.sizes("convolution/page"))
    assert settings.geometry is None or settings.geometry.size() < 2**10
    settings.theme = "light"
    settings.write()


def _draw_odd_value(random: np.random.Generator) -> Any:
    return _VALUES[int(random.integers(len(_VALUES)))]


def _draw_odd_params(random: np.random.Generator, key: str) -> Any:
    if random.random() < 0.2:
        return _draw_odd_value(random)
    parameters = all_patterns()[key.split("/")[1]].parameters
    return {each.name: _draw_odd_value(random) for each in parameters if random.random() < 0.5}
