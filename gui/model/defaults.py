"""Defaults that depend on the device: larger inputs on a GPU, so that its times are meaningful."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu.declaration.pattern import Pattern
from gpu.engines.base import Device
from gui.model.records import Settings


def apply_device_defaults(
    patterns: Mapping[str, Pattern], settings: Mapping[str, Settings], device: Device | None
) -> list[str]:
    """Set the unchosen sizes to the defaults of their variants and the device; return the patterns that changed."""
    changed = []
    for name, pattern in patterns.items():
        parameter, current = pattern.device_sized_parameter, settings[name]
        if parameter is None or parameter.name in current.chosen:
            continue
        default = pattern.default_size(pattern.variant(current.variant), device)
        if current.params[parameter.name] == default:
            continue
        current.params[parameter.name] = default
        changed.append(name)
    return changed


def store_params(pattern: Pattern, settings: Settings, params: Mapping[str, Any]) -> None:
    """Store parameters; a size that changes counts as chosen by the user from now on."""
    growing = pattern.device_sized_parameter
    if growing is not None and params[growing.name] != settings.params[growing.name]:
        settings.chosen.add(growing.name)
    settings.params = dict(params)


def select_params_to_save(pattern: Pattern, settings: Settings) -> dict[str, Any]:
    """Return the parameters to save: all but a size that the user has not chosen."""
    growing = pattern.device_sized_parameter
    return {
        name: value
        for name, value in settings.params.items()
        if growing is None or name != growing.name or name in settings.chosen
    }
