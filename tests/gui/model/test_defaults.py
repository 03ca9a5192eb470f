"""Defaults of parameters depend on the device and the selected variant."""

from __future__ import annotations

from gpu.engines.base import Device
from gpu.patterns import find_pattern
from gui.model.defaults import apply_device_defaults
from gui.model.records import Settings

GPU = Device("cuda", "some GPU", "gpu", 1024, 49152, 132)


def test_a_quadratic_variant_has_a_smaller_default_size_on_a_gpu():
    sort = find_pattern("sort")
    settings = {"sort": Settings(sort.first_rung.name, sort.check({}))}
    assert sort.first_rung.max_default_size
    assert apply_device_defaults({"sort": sort}, settings, GPU) == []
    assert settings["sort"].params["n"] == sort.first_rung.max_default_size
    settings["sort"].variant = "radix"
    assert apply_device_defaults({"sort": sort}, settings, GPU) == ["sort"]
    assert settings["sort"].params["n"] > 2**20
    settings["sort"].variant = sort.first_rung.name
    assert apply_device_defaults({"sort": sort}, settings, GPU) == ["sort"]
    assert settings["sort"].params["n"] == sort.first_rung.max_default_size


def test_a_chosen_value_is_kept():
    sort = find_pattern("sort")
    settings = {"sort": Settings(sort.first_rung.name, sort.check({"n": 2**20}))}
    settings["sort"].chosen.add("n")
    assert apply_device_defaults({"sort": sort}, settings, GPU) == []
    assert settings["sort"].params["n"] == 2**20
