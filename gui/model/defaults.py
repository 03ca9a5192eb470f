"""Defaults that go by the device, of what nobody has chosen: on a GPU more work, so that its times mean something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu.declaration.pattern import Pattern
from gpu.engines.base import Device
from gui.model.records import Settings


def suit(patterns: Mapping[str, Pattern], settings: Mapping[str, Settings], device: Device | None) -> list[str]:
    """Let what nobody has chosen suit the variant and a device, or none; return the patterns whose settings changed."""
    changed = []
    for name, pattern in patterns.items():
        suited = (pattern if device is None else pattern.on(device)).growing
        of = settings[name]
        if suited is None or suited.name in of.chosen:
            continue
        default = min(suited.default, pattern.variant(of.variant).most or suited.default)
        if of.params[suited.name] == default:
            continue
        of.params[suited.name] = default
        changed.append(name)
    return changed


def choose(pattern: Pattern, settings: Settings, params: Mapping[str, Any]) -> None:
    """Take settings; where they change what goes by the device, that is chosen from now on."""
    growing = pattern.growing
    if growing is not None and params[growing.name] != settings.params[growing.name]:
        settings.chosen.add(growing.name)
    settings.params = dict(params)


def worth_keeping(pattern: Pattern, settings: Settings) -> dict[str, Any]:
    """Return what is to be remembered: not what goes by the device and nobody has chosen."""
    growing = pattern.growing
    return {
        name: value
        for name, value in settings.params.items()
        if growing is None or name != growing.name or name in settings.chosen
    }
