"""Each case of `bench cluster` on one simulator and on two: the same result, and what was exchanged by which way."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpu.bench.cluster import command, disk, measure, overhead, sizes
from gpu.bench.cluster.cases import CASES, GeneratedInput, generate_elements
from gpu.bench.cluster.resident_engine import ResidentEngine
from gpu.bench.document import find_sections
from gpu.distributed.cluster_settings import ClusterSettings
from gpu.distributed.worker import call_with_engine
from gpu.engines.base import Device
from gpu.errors import InputError
from gpu.messages.distributed_run import WorkerStatus
from tests.gpu.distributed.conftest import PLAIN

SIZES = {"matmul": 24, "sort": 700, "scan": 1024, "reduction": 1024, "histogram": 1024, "convolution": 1024}


def test_cases_are_right_on_one_and_on_two(cluster):
    cases = [CASES[name](SIZES[name]) for name in ("matmul", "sort", "convolution")]
    cases.append(replace(CASES["scan"](1024), min_chunks=3))  # of which each worker scans several
    rows = [*measure.measure(cluster.limit_workers(2), cases, 1, raise_error)]
    assert [row.workers for row in rows] == [1, 2] * len(cases)
    assert [row.work for row in rows if not row.correct] == []
    of = {(row.work.split()[0], row.workers): row for row in rows}
    assert of["sort,", 2].device_bytes == pytest.approx(700 * 4 / 2, rel=0.2), "all but what each has already"
    assert of["matmul,", 2].device_bytes == 24 * 24 * 4, "to each worker half of B"
    assert of["scan", 2].socket_bytes == 2 * 4, "the totals of the first worker's chunks"
    assert [*of["scan", 1].steps] == ["scan chunk"]
    assert {row.device_bytes + row.socket_bytes for row in rows if row.workers == 1} == {0}
    assert all(row.steps and row.median_device_ms > 0 for row in rows)
    assert not any(cluster.call_on_each_worker(call_with_engine, is_held)), "they go on as they were"


def test_bodies_are_brought_to_the_devices_and_back(cluster):
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
def test_a_result_of_another_input_is_wrong(cluster, name):
    case = CASES[name](SIZES[name])
    other = {key: replace(made, salt=made.salt + 1) for key, made in case.divided_inputs.items()}
    rows = measure.measure(cluster.limit_workers(1), [replace(case, divided_inputs=other)], 1, raise_error)
    assert [row.correct for row in rows] == [name in ("reduction", "sort", "histogram")], "these know sums of any input"


def test_what_cannot_be_run_is_told_and_the_others_go_on(cluster):
    cases, told = [replace(CASES["reduction"](64), params={"dtype": "int32", "blocks": -1}), CASES["reduction"](64)], []
    rows = measure.measure(cluster.limit_workers(1), cases, 1, lambda case, error: told.append(error.message))
    assert [row.correct for row in rows] == [True]
    assert "blocks" in told[0].lower()


def test_an_element_is_made_of_its_place():
    made = GeneratedInput(rows=1, row_shape=(), dtype="int32", bits=32)
    # MurmurHash3's last step, by its author's own numbers of 64 bits cut down.
    places = np.arange(2**16)
    found = generate_elements(made, places)
    assert len({*found.tolist()}) == places.size, "each stands for another"
    assert abs(int(found.astype(np.int64).mean())) < 2**24
    few = generate_elements(replace(made, bits=3, dtype="float32"), places)
    assert np.bincount(few.astype(int)).min() > 7000
    assert few.max() == 7


def test_what_fits_one_device_is_run_without_dask_too(cluster):
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


def test_simulators_are_told_of_and_written_nowhere(cluster, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "open_cluster", lambda asked, engine: nullcontext(cluster.limit_workers(1)))
    asked, page = dict.fromkeys(sizes.NAMES, 0) | {"reduction": 256}, tmp_path / "page.md"
    assert command.run(ClusterSettings(), asked, 1, page, tmp_path) == 0
    said = capsys.readouterr().out
    assert "simulated: their times are not a GPU's" in said
    assert re.search(r"reduction \(sum\), 256 int32 \| 1 .* \| verified", said)
    assert not page.exists()


def test_gpus_have_a_section_of_the_page(cluster, monkeypatch, tmp_path):
    gpus = cluster.limit_workers(2)
    gpus.workers = tuple(replace(each, device=replace(each.device, engine="cuda", name="H")) for each in gpus.workers)
    monkeypatch.setattr(command, "open_cluster", lambda asked, engine: nullcontext(gpus))
    asked, page = dict.fromkeys(sizes.NAMES, 0) | {"scan": 64, "disk": 400}, tmp_path / "page.md"
    assert command.run(ClusterSettings(), asked, 1, page, tmp_path) == 0
    shown = page.read_text("utf-8")
    assert "## Several devices: 2 x H, " in shown
    assert "## Streamed from a disk: 2 x H, " in shown
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


def test_workers_that_take_turns_on_a_gpu_are_not_measured(tmp_path, monkeypatch):
    device = Device("cuda", "NVIDIA H200", "gpu", 1024, 49152, 132, place="0000:01:00.0")
    workers = tuple(WorkerStatus(str(n), f"tcp://127.0.0.1:{n}", "127.0.0.1", device) for n in (1, 2))
    monkeypatch.setattr(command, "open_cluster", lambda asked, engine: nullcontext(SimpleNamespace(workers=workers)))
    page = tmp_path / "page.md"
    with pytest.raises(InputError, match=r"2 workers on 1 x NVIDIA H200: .* do not show the speedup of several GPUs"):
        command.run(ClusterSettings(workers=2), {}, 1, page, tmp_path)
    assert not page.exists()
