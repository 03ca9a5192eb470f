"""Cases of the benchmark of clusters, on one simulator and on two: equal results, and the bytes exchanged."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.bench.pages.document import find_sections
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.distributed.cluster.worker import call_with_engine
from gpu.engines.base import Device
from gpu.messages.runs.distributed_run import WorkerStatus
from tests.gpu.distributed.conftest import PLAIN
from tools.cluster_bench import command, disk, measure, overhead, sizes
from tools.cluster_bench.__main__ import main
from tools.cluster_bench.cases import CASES, GeneratedInput, generate_elements
from tools.cluster_bench.resident_engine import ResidentEngine

SIZES = {"matmul": 24, "sort": 700, "scan": 1024, "reduction": 1024, "histogram": 1024, "convolution": 1024}


def test_cases_are_correct_on_one_worker_and_on_two(cluster):
    cases = [CASES[name](SIZES[name]) for name in ("matmul", "sort", "convolution")]
    cases.append(replace(CASES["scan"](1024), min_chunks=3))  # so that each worker scans several chunks
    rows = [*measure.measure(cluster.limit_workers(2), cases, 1, raise_error)]
    assert [row.workers for row in rows] == [1, 2] * len(cases)
    assert [row.work for row in rows if not row.correct] == []
    row_of = {(row.work.split()[0], row.workers): row for row in rows}
    assert row_of["sort,", 2].device_bytes == pytest.approx(700 * 4 / 2, rel=0.2), (
        "half of the keys change their worker"
    )
    assert row_of["matmul,", 2].device_bytes == 24 * 24 * 4, "each worker receives half of B"
    assert row_of["scan", 2].socket_bytes == 2 * 4, "the totals of the first worker's chunks"
    assert [*row_of["scan", 1].steps] == ["scan chunk"]
    assert {row.device_bytes + row.socket_bytes for row in rows if row.workers == 1} == {0}
    assert all(row.steps and row.median_device_ms > 0 for row in rows)
    assert not any(cluster.call_on_each_worker(call_with_engine, is_held)), "the engines of the workers are restored"


def test_bodies_are_transferred_to_the_devices_and_back(cluster):
    (row,) = measure.measure(cluster.limit_workers(1), [CASES["nbody"](32)], 1, raise_error)
    assert row.correct
    assert row.time_steps == 4
    assert f"; {row.median_wall_ms / 4:.4g} per time step by the clock" in " | ".join(command._cells(row, [row]))
    assert row.transfer_ms > 0


def raise_error(case, error):
    raise error


def is_held(engine):
    return isinstance(engine, ResidentEngine)


@pytest.mark.parametrize("name", [*SIZES])
def test_the_result_of_another_input_is_wrong(cluster, name):
    case = CASES[name](SIZES[name])
    other = {key: replace(generated, salt=generated.salt + 1) for key, generated in case.divided_inputs.items()}
    rows = measure.measure(cluster.limit_workers(1), [replace(case, divided_inputs=other)], 1, raise_error)
    assert [row.correct for row in rows] == [name in ("reduction", "sort", "histogram")], (
        "these compare with sums of the given input"
    )


def test_a_failing_case_is_reported_and_the_others_run(cluster):
    cases = [replace(CASES["reduction"](64), params={"dtype": "int32", "blocks": -1}), CASES["reduction"](64)]
    messages = []
    rows = measure.measure(cluster.limit_workers(1), cases, 1, lambda case, error: messages.append(error.message))
    assert [row.correct for row in rows] == [True]
    assert "blocks" in messages[0].lower()


def test_an_element_is_a_hash_of_its_index():
    generated = GeneratedInput(rows=1, row_shape=(), dtype="int32", bits=32)
    # The 32-bit finalizer of MurmurHash3 is a bijection.
    indices = np.arange(2**16)
    elements = generate_elements(generated, indices)
    assert len({*elements.tolist()}) == indices.size, "all elements differ"
    assert abs(int(elements.astype(np.int64).mean())) < 2**24
    few = generate_elements(replace(generated, bits=3, dtype="float32"), indices)
    assert np.bincount(few.astype(int)).min() > 7000
    assert few.max() == 7


def test_a_case_that_fits_one_device_also_runs_without_dask(cluster):
    rows = [*overhead.measure(cluster.limit_workers(2), overhead.make_overhead_works(64)[:1], 1, PLAIN)]
    assert all(row.correct for row in rows)
    assert rows[0].work == "Scan, 64 elements"
    assert all(min(row.local_s, row.one_worker_s, row.all_workers_s) > 0 for row in rows)


def test_an_image_on_a_disk_is_read_counted_and_filtered(cluster, tmp_path):
    rows = [*disk.measure(cluster.limit_workers(2), 5000, tmp_path)]
    assert [(row.operation, row.read_bytes, row.correct) for row in rows[1:]] == [
        ("read only", 70 * 71, True),
        ("read only", 70 * 71, True),
        ("copy only", 70 * 71, True),
        ("Histogram", 70 * 71, True),
        ("Convolution", 70 * 71, True),
    ]
    assert [row.written_bytes for row in rows[3:]] == [70 * 71, 0, 70 * 71]
    assert not [*tmp_path.iterdir()]


def test_a_run_on_simulators_is_labeled_and_not_saved(cluster, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "open_cluster", lambda settings, engine: nullcontext(cluster.limit_workers(1)))
    chosen_sizes, page = dict.fromkeys(sizes.NAMES, 0) | {"reduction": 256}, tmp_path / "page.md"
    assert command.run(ClusterSettings(), chosen_sizes, 1, page, tmp_path) == 0
    output = capsys.readouterr().out
    assert "simulated: their times are not a GPU's" in output
    assert re.search(r"reduction \(sum\), 256 int32 \| 1 .* \| verified", output)
    assert not page.exists()


def test_gpus_have_a_section_of_the_page(cluster, monkeypatch, tmp_path):
    gpus = cluster.limit_workers(2)
    gpus.workers = tuple(replace(each, device=replace(each.device, engine="cuda", name="H")) for each in gpus.workers)
    monkeypatch.setattr(command, "open_cluster", lambda settings, engine: nullcontext(gpus))
    chosen_sizes, page = dict.fromkeys(sizes.NAMES, 0) | {"scan": 64, "disk": 400}, tmp_path / "page.md"
    assert command.run(ClusterSettings(), chosen_sizes, 1, page, tmp_path) == 0
    saved = page.read_text("utf-8")
    assert "## Several devices: 2 x H, " in saved
    assert "## Streamed from a disk: 2 x H, " in saved
    text = "\n\n".join(section.markdown() for section in find_sections(page, ""))
    assert re.search(
        r"\| scan \(inclusive sum\), 64 int32 \| 2 \| .*reduce chunk .*, scan chunk .* \| 0 B \| 4 B \| verified \|",
        text,
    )
    assert re.search(r"\| Convolution \| 400 B \| 400 B \| .*% \| .*% \| .* \| verified \|", text)
    assert max(map(len, re.findall("^[A-Z].*$", text, re.MULTILINE))) <= 120


@pytest.mark.parametrize("text", ["sort", "sort=", "nothing=3", "sort=2^", "sort=-1", "sort=2^2^2"])
def test_a_size_has_a_name_and_a_number(text):
    with pytest.raises(ArgumentTypeError, match="NAME=N or NAME=2"):
        sizes.parse_size(text)
    assert sizes.parse_size("sort=2^31") == ("sort", 2**31)
    assert sizes.parse_size("disk=0") == ("disk", 0)


def test_workers_that_share_a_gpu_are_not_measured(tmp_path, monkeypatch):
    device = Device("cuda", "NVIDIA H200", "gpu", 1024, 49152, 132, place="0000:01:00.0")
    workers = tuple(WorkerStatus(str(n), f"tcp://127.0.0.1:{n}", "127.0.0.1", device) for n in (1, 2))
    monkeypatch.setattr(command, "open_cluster", lambda settings, engine: nullcontext(SimpleNamespace(workers=workers)))
    page = tmp_path / "page.md"
    with pytest.raises(InputError, match=r"2 workers on 1 x NVIDIA H200: .* do not show the speedup of several GPUs"):
        command.run(ClusterSettings(workers=2), {}, 1, page, tmp_path)
    assert not page.exists()


def test_the_options_lead_to_what_they_say(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(command, "run", lambda *given: asked.append(given) or 0)
    page = tmp_path / "page.md"
    assert main(["--workers", "2", "--size", "sort=2^9", "--folder", str(tmp_path), "--document", str(page)]) == 0
    assert asked == [(ClusterSettings(workers=2), {"sort": 512}, 5, page, tmp_path)]
    with pytest.raises(SystemExit):
        main(["--workers", "-1"])
    assert "whole numbers from 1" in capsys.readouterr().err
