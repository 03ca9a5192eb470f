"""`run --engine dask` as a user types it: on simulators that compile, in processes that are gone with it.

What does not depend on the processes runs on the workers that tests share.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

import numpy as np
import psutil
import pytest

from gpu.base.paths import ROOT
from gpu.cli.main import main
from tests.gpu.cli.no_desktop import NO_WINDOW


def lockstep(*arguments, **options):
    command = [sys.executable, "main.py", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, **options)


def test_a_run_tells_workers_and_what_they_exchanged(tmp_path):
    values, target = np.arange(1000, dtype=np.int32), tmp_path / "sum.npy"
    np.save(tmp_path / "in.npy", values)
    graph = tmp_path / "reduction.svg"
    files = ("--dtype", "int32", "--input", tmp_path / "in.npy", "--output", target, "--graph", graph, "--json")
    done = lockstep("run", "reduction", "--engine", "dask", "--workers", 2, "--chunks", "300,700", *files)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["verified"]
    assert (told["engine"], len(told["workers"])) == ("simulator", 2)
    assert told["exchanged_bytes"] == 4, "a total to the other worker"
    assert sum(worker["tasks"] for worker in told["workers"]) == 3
    assert told["scaling"]["ideal"] == 2
    assert np.load(target).tolist() == [values.sum()]
    assert done.stderr == "", "no bar where nobody looks"
    assert graph.read_text().count('class="cell') == 2 + 3, "chunks and tasks"


@pytest.fixture
def run_on_cluster(cluster, monkeypatch, capsys):
    """Return a function that runs a command on the first of the workers that tests share, and returns its output."""

    def open_shared(settings):
        return nullcontext(cluster.limit_workers(settings.workers))

    # Modules that import the function at their start come first.
    for module in ("cli.patterns.cluster", "cli.patterns.streaming", "distributed.cluster.dask_cluster"):
        monkeypatch.setattr(f"gpu.{module}.open_cluster", open_shared)

    def run(*arguments):
        assert main(["run", *map(str, arguments), "--engine", "dask"], NO_WINDOW) == 0
        return capsys.readouterr().out

    return run


def test_a_file_larger_than_a_chunk_is_streamed(run_on_cluster, tmp_path):
    values = np.arange(5000, dtype=np.float64)
    np.save(tmp_path / "in.npy", values)
    files = ("--input", tmp_path / "in.npy", "--stream", "--chunks", 6, "--output", tmp_path / "sum.npy")
    output = run_on_cluster("reduction", "--workers", 1, *files)
    assert "not compared" in output
    assert "40000 bytes" in output
    assert np.load(tmp_path / "sum.npy").tolist() == [values.sum()]


def test_bodies_are_moved_and_saved(run_on_cluster, tmp_path, capsys):
    together, alone = tmp_path / "together.npy", tmp_path / "alone.npy"
    params = ("nbody", "--bodies", "40", "--steps", "2", "--dt", "0.01")
    report = json.loads(run_on_cluster(*params, "--workers", 2, "--output", together, "--json"))
    assert report["verified"]
    assert [worker["tasks"] > 0 for worker in report["workers"]] == [True, True]
    # The places of either chunk go to the other device, before the first step and in each; and what is conserved.
    assert 3 * 40 * 16 <= report["exchanged_bytes"] <= 3 * 40 * 16 + 2 * 64
    simulated = ("--engine", "simulator", "--executor", "lockstep", "--output", str(alone))
    assert main(["run", *params, *simulated, "--json"], NO_WINDOW) == 0
    same, other = report["simulation"], json.loads(capsys.readouterr().out)["simulation"]
    assert (same["steps"], same["time"], same["radius"]) == (2, other["time"], other["radius"])
    assert same["kernel_ms"] > 0
    assert same["conserved"]["total"] == pytest.approx(other["conserved"]["total"], rel=1e-5)
    assert same["conserved"]["drift"] == pytest.approx(other["conserved"]["drift"], abs=1e-5)
    np.testing.assert_allclose(np.load(together), np.load(alone), atol=1e-5)


def count_listening(processes):
    """Return how many of the processes accept connections, as workers do that have started."""
    count = 0
    for each in processes:
        with suppress(psutil.Error):
            count += any(connection.status == psutil.CONN_LISTEN for connection in each.net_connections("tcp"))
    return count


@pytest.mark.parametrize("count_started", [len, count_listening], ids=["starting", "running"])
def test_ctrl_c_ends_all_workers(tmp_path, count_started):
    target = tmp_path / "scan.npy"
    command = [
        sys.executable,
        "main.py",
        "run",
        "scan",
        "--engine",
        "dask",
        "--n",
        "100000000",
        "--output",
        str(target),
    ]
    run = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    process = psutil.Process(run.pid)
    end = time.monotonic() + 60
    while count_started(process.children(recursive=True)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    family = process.children(recursive=True)
    os.killpg(run.pid, signal.SIGINT)
    _, complaint = run.communicate(timeout=60)
    assert run.returncode == 130
    assert complaint.strip().endswith("lockstep: Stopped.")
    assert "Dask Worker" not in complaint, "a worker that was interrupted as well"
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert not target.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("scan", "--scheduler", "127.0.0.1:1"), "--scheduler has no effect without --engine dask."),
        (("scan", "--chunks", "4"), "--chunks has no effect without --engine dask."),
        (("scan", "--graph", "a.svg"), "--graph has no effect without --engine dask."),
        (("scan", "--engine", "dask", "--stream", "--graph", "a.svg"), "--graph has no effect with --stream"),
        (("scan", "--engine", "dask", "--executor", "lockstep"), "--executor has no effect with --engine dask"),
        (("scan", "--engine", "dask", "--scheduler", "127.0.0.1:1"), "No Dask scheduler answers at tcp://127.0.0.1:1."),
        (("scan", "--engine", "dask", "--scheduler", "nowhere"), "'nowhere' is not a scheduler's address."),
        (
            ("scan", "--engine", "dask", "--tls-ca", "ca.pem"),
            "--tls-ca, --tls-cert and --tls-key must be given together.",
        ),
        (("scan", "--engine", "dask", "--raw", "int32:4"), "--raw has no effect without --stream."),
        (("scan", "--stream"), "--stream has no effect without --engine dask."),
        (("scan", "--engine", "dask", "--stream"), "--stream needs an --input FILE"),
        (("nbody", "--engine", "dask", "--frames", "here"), "--frames draws the bodies of one device"),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments, sentence, capsys):
    assert main(["run", *arguments], NO_WINDOW) == 2
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert complaint.count("\n") == 1
