"""What is known of the model's errors: read from data, counted by hand."""

from __future__ import annotations

import dataclasses
import json

import pytest

from gpu.base.errors import InputError
from gpu.timing import validation
from gpu.timing.gpus import UNSCALED, GpuScaling, find_gpu, list_gpu_keys
from gpu.timing.validation import EXTERNAL, OURS, ValidatedCase, Validation


def make_validation(*errors: float, group: str = OURS, of: str = "scan") -> Validation:
    cases = tuple(ValidatedCase(group, of, f"v{n}", "n", 100.0, 100 * (1 + error)) for n, error in enumerate(errors))
    return Validation("h200", "NVIDIA H200", "2026-11-22", "sass", cases)


def test_nine_of_ten_are_within_the_ninth_largest_error() -> None:
    errors = [0.01, -0.02, 0.03, -0.04, 0.05, -0.06, 0.07, -0.08, 0.241, -0.9]
    found = make_validation(*errors).find_error_bound("scan")
    assert found is not None
    assert found.relative_error == pytest.approx(0.241)
    assert (found.cases, found.pattern, found.text) == (10, "scan", "within 25% for 9 of 10 kernels tried")


def test_a_pattern_with_too_few_cases_has_the_errors_of_kernels_from_elsewhere() -> None:
    few = make_validation(0.5, 0.5)
    others = make_validation(*[0.1] * 10, group=EXTERNAL, of="memory.cu")
    found = dataclasses.replace(few, cases=few.cases + others.cases).find_error_bound("scan")
    assert found is not None
    assert (found.pattern, found.percent) == ("", 10)
    assert few.find_error_bound("scan") is None


def test_a_variant_that_was_not_tried_is_told() -> None:
    tried = make_validation(*[0.1] * 10)
    found = [tried.find_error_bound("scan", variant) for variant in ("v3", "newer")]
    assert [each.text if each else "" for each in found] == [
        "within 10% for 9 of 10 kernels tried",
        "within 10% for 9 of 10 kernels tried, not this one",
    ]
    others = dataclasses.replace(tried, cases=make_validation(*[0.1] * 10, group=EXTERNAL, of="memory.cu").cases)
    elsewhere = others.find_error_bound("scan", "newer")
    assert elsewhere is not None
    assert elsewhere.includes_variant


def test_what_is_written_is_read(tmp_path) -> None:
    path = tmp_path / "h200-sass.json"
    validation.write_validation(path, make_validation(0.1, 0.2))
    assert validation.read_validation(path) == make_validation(0.1, 0.2)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"cases": []}', '{"cases": [{"group": "ours"}]}'])
def test_what_is_no_comparison_is_refused(tmp_path, text) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"x\.json is not a valid comparison"):
        validation.read_validation(path)


@pytest.mark.parametrize("time", [0, 10**400])
def test_a_time_that_is_none_is_refused(tmp_path, time) -> None:
    path = tmp_path / "x.json"
    validation.write_validation(path, make_validation(0.1))
    data = json.loads(path.read_text())
    data["cases"][0]["measured_us"] = time
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"a time is not a positive number|int too large"):
        validation.read_validation(path)


def test_every_gpu_that_is_called_validated_has_its_errors_as_data() -> None:
    for key in list_gpu_keys():
        found = validation.find_validation(key, "sass")
        assert (found is not None) == find_gpu(key).validated
        if found is not None:
            assert found.gpu == key
            assert found.device == find_gpu(key).name
            assert all(found.find_error_bound(pattern) for pattern in ("reduction", "scan", ""))


def test_a_gpu_that_is_supposed_is_not_one_that_was_compared() -> None:
    gpu = find_gpu("h200")
    assert UNSCALED.scale_gpu(gpu) is gpu
    twice = GpuScaling(bandwidth=2, registers=0.5).scale_gpu(gpu)
    assert (twice.memory_gb_s, twice.registers, twice.validated) == (2 * gpu.memory_gb_s, gpu.registers // 2, False)
