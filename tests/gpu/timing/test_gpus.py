"""Descriptions of GPUs: each number has a source, and what is wrong in a file is said."""

from __future__ import annotations

import re

import pytest

from gpu.base.errors import InputError
from gpu.timing.gpus import FOLDER, find_gpu, list_gpu_keys, read_gpu


def test_the_gpus_that_students_meet_are_described() -> None:
    data_center, others = {"b200", "h200", "h100", "a100", "l4", "t4"}, {"jetson-orin"}
    assert data_center | others | {"rtx-3060", "rtx-3080", "rtx-4090", "rtx-5090"} <= set(list_gpu_keys())
    assert [key for key in list_gpu_keys() if find_gpu(key).validated] == ["h100", "h200"]


@pytest.mark.parametrize("key", list_gpu_keys())
def test_every_number_has_a_source(key) -> None:
    gpu = find_gpu(key)
    assert all(gpu.sources.values())
    assert gpu.memory_gb_s < gpu.last_cache_gb_s
    assert gpu.shared_cycles < gpu.last_cache_cycles < gpu.memory_cycles


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("t4", "t4"),
        ("NVIDIA GeForce RTX 3080", "rtx-3080"),
        ("NVIDIA B200", "b200"),
    ],
)
def test_a_gpu_is_found_by_the_drivers_name_too(name, key) -> None:
    assert find_gpu(name).key == key


@pytest.mark.parametrize(
    ("key", "tflops", "share_of_float32"),
    [
        ("rtx-3080", 29.8, 1),
        ("rtx-5090", 104.8, 1),
        ("b200", 74.4, 1),
        ("rtx-3080", 0.465, 1 / 64),
        ("b200", 37.2, 1 / 2),
    ],
)
def test_lanes_and_clock_give_the_data_sheets_rate(key, tflops, share_of_float32) -> None:
    gpu = find_gpu(key)
    lanes = gpu.float_lanes if share_of_float32 == 1 else gpu.double_lanes
    assert 2 * lanes * gpu.multiprocessors * gpu.clock_ghz / 1e3 == pytest.approx(tflops, rel=0.01)
    assert lanes == share_of_float32 * gpu.float_lanes


def test_an_unknown_gpu_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(InputError, match="There is no GPU description for 'voodoo'") as caught:
        find_gpu("voodoo")
    assert "rtx-4090" in caught.value.advice


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"clock_ghz = .*", "", "has no value for clock_ghz"),
        (r"clock_ghz = .*", "clock_ghz = 1.5", "clock_ghz has no source"),
        (r"clock_ghz = .*", 'clock_ghz = { value = -1, source = "x" }', "must be above 0"),
        (r"clock_ghz = .*", 'clock_ghz = { value = "fast", source = "x" }', "which has the wrong type"),
        (r"clock_ghz = .*", "clock_ghz = { value = 1.5 }", "a value and a source, and nothing else"),
        (r"validated = .*", "validated = 7", "which has the wrong type"),
        (r"\Z", 'color = "green"\n', "has a value for color, which the timing model does not use"),
        (r"\Z", "= =", "is not a GPU description: line 50"),
        (r"\Z", "x = " + "[" * 100_000, "nested too deep"),
        (r"\Z", "x = " + "9" * 5000, "is not a GPU description: line 1: Exceeds the limit"),
        (r"clock_ghz = .*", 'clock_ghz = { value = inf, source = "x" }', "at most 1e"),
        (r"clock_ghz = .*", f'clock_ghz = {{ value = 1{"0" * 400}, source = "x" }}', "at most 1e"),
        (r"warps = .*", f'warps = {{ value = 0x{"f" * 5000}, source = "x" }}', "warps is a value that is too long"),
        (r"validated = .*", f'validated = "{"x" * 5000}"', "validated is 'xxx.*…"),
    ],
)
def test_what_is_wrong_in_a_description_is_said(tmp_path, old, new, said) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(re.sub(old, new, (FOLDER / "h200.toml").read_text("utf-8"), count=1), "utf-8")
    with pytest.raises(InputError, match=said):
        read_gpu(path)


def test_a_description_of_ones_own_is_taken_by_its_path(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((FOLDER / "t4.toml").read_text("utf-8"), "utf-8")
    assert find_gpu(str(path)).multiprocessors == 40
