"""Figures in the lessons' texts equal those that the project has measured; variants have their titles."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from gpu.base.paths import ASSETS
from gpu.lessons.lesson_reader import read_lesson
from gpu.patterns import find_pattern
from gpu.timing.gpus import find_gpu


def test_the_rate_of_atomics_on_one_address_is_the_h200s():
    text = " ".join((ASSETS / "lessons" / "13-histogram" / "lesson.md").read_text("utf-8").split())
    billions = 1 / find_gpu("h200").atomic_same_ns
    assert f"an H200 completes {billions:.1f} billion per second on one address" in text


def test_the_bytes_in_flight_are_rate_times_latency_of_the_h200():
    text = " ".join((ASSETS / "lessons" / "14-occupancy" / "lesson.md").read_text("utf-8").split())
    gpu = find_gpu("h200")
    latency_ns = gpu.memory_cycles / gpu.clock_ghz
    kilobytes = gpu.memory_gb_s * latency_ns / 1000
    assert f"An H200 reads {gpu.memory_gb_s:,.0f} GB per second from DRAM" in text
    assert f"a load takes {latency_ns:.0f} ns. So {kilobytes:,.0f} KB must be in flight" in text
    assert f"or {kilobytes / gpu.multiprocessors:.1f} KB per multiprocessor" in text
    assert f"Its {gpu.warps} warps have {gpu.warps * 32 * 4 / 1000:.1f} KB in flight" in text


def test_the_arrays_do_not_fit_into_the_l2_of_the_gpus_that_dram_limits():
    steps = {step.title: step for step in read_lesson(ASSETS / "lessons" / "14-occupancy").steps}
    question = steps["With many warps"].question
    caches = [find_gpu(name).last_cache_bytes / 1e6 for name in question.options["gpu"]]
    arrays = 4 * question.options["n"][0] / 1e6
    assert question.hints[-1] == (
        f"The arrays have {arrays:.1f} MB each. "
        f"The L2 caches of these GPUs have {min(caches):.1f} to {max(caches):.1f} MB."
    )


def test_the_rate_of_double_additions_is_that_of_the_descriptions():
    text = " ".join((ASSETS / "lessons" / "22-float-sums" / "lesson.md").read_text("utf-8").split())
    h200, t4 = (find_gpu(name).float_lanes / find_gpu(name).double_lanes for name in ("h200", "t4"))
    assert (
        f"An H200 starts 1/{h200:g} as many double additions per cycle as float additions, and a T4 1/{t4:g}." in text
    )


def test_vectors_have_the_bytes_in_flight_that_the_h200_needs():
    text = " ".join((ASSETS / "lessons" / "23-vector-loads" / "lesson.md").read_text("utf-8").split())
    gpu = find_gpu("h200")
    needed = gpu.memory_gb_s * gpu.memory_cycles / gpu.clock_ghz / gpu.multiprocessors / 1000
    floats, vectors = (gpu.warps * 32 * size / 1000 for size in (4, 16))
    assert f"an H200 needs {needed:.1f} KB in flight per multiprocessor" in text
    assert f"{gpu.warps} warps with one float per lane have {floats:.1f} KB, with a `float4` {vectors:.1f} KB" in text


def test_the_scores_of_attention_do_not_fit_into_the_l2_of_the_h200():
    text = " ".join((ASSETS / "lessons" / "25-attention" / "lesson.md").read_text("utf-8").split())
    queries, cache = 16_384, find_gpu("h200").last_cache_bytes
    assert queries**2 * 4 > cache
    assert f"For {queries:,} queries and as many keys, the scores are {queries**2 * 4 / 1e9:.2f} GB." in text
    assert f"an H200's L2 holds {cache / 1e6:.1f} MB" in text
    assert f"2,048 times 2,048 scores are {2048**2 * 4 / 1e6:.1f} MB" in text
    assert f"expf overflows above {int(np.log(np.finfo(np.float32).max) * 10) / 10}" in text


@pytest.mark.parametrize(
    ("lesson", "pattern", "size", "sentence"),
    [
        (
            "15-convolution",
            "convolution",
            2048,
            "an H200 took {tiled:.1f} µs with a tile, and {constant:.1f} µs without",
        ),
        (
            "18-n-body",
            "nbody",
            16384,
            "an H200 took {naive:,.0f} µs with loads from global memory, and {tiled:.0f} µs with tiles",
        ),
        (
            "20-stencil",
            "stencil",
            256,
            "{naive:.1f} µs with *Naive*, {tiled:.1f} µs with cubes, and {vectors:.1f} µs with four points",
        ),
    ],
)
def test_times_on_the_h200_are_the_recorded_ones(lesson, pattern, size, sentence):
    text = " ".join((ASSETS / "lessons" / lesson / "lesson.md").read_text("utf-8").split())
    runs = json.loads((ASSETS / "recorded" / "nvidia-h200.json").read_text("utf-8"))["runs"]
    times = {
        run["variant"]: run["median_ms"] * 1000 for run in runs if (run["pattern"], run["size"]) == (pattern, size)
    }
    assert sentence.format(**times) in text


def test_the_time_between_starts_of_blocks_is_the_h200s():
    text = " ".join((ASSETS / "lessons" / "26-host-launches" / "lesson.md").read_text("utf-8").split())
    assert f"an H200 starts one every {find_gpu('h200').block_ns:.2f} ns" in text


@pytest.mark.parametrize(
    ("lesson", "pattern", "variants"),
    [
        ("08-reduction", "reduction", ("neighbored", "neighbored-less", "interleaved")),
        ("16-matrix-product", "matmul", ("coalesced", "tiled", "halves", "warpgroups")),
        ("19-softmax", "softmax", ("online",)),
        ("20-stencil", "stencil", ("naive", "tiled", "registers", "vectors")),
        ("24-merge-and-segments", "spmv", ("balanced",)),
    ],
)
def test_variants_are_named_by_their_titles(lesson, pattern, variants):
    text = " ".join((ASSETS / "lessons" / lesson / "lesson.md").read_text("utf-8").split())
    titles = {each.name: each.title for each in find_pattern(pattern).variants}
    for variant in variants:
        assert f"*{titles[variant]}*" in text
    assert not re.search(r"\b(?:first|second|third|fourth|fifth|fastest) variant\b", text)
