"""Workers that die, schedulers that are gone, addresses that are none."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from gpu.base.errors import EngineUnavailableError, InputError
from gpu.base.paths import ROOT
from gpu.distributed import tasks
from gpu.distributed.cluster import dask_cluster as cluster_module
from gpu.distributed.cluster.dask_cluster import Cluster, open_cluster
from gpu.distributed.cluster.dask_import import load_dask
from gpu.distributed.cluster.settings import ClusterSettings, Tls
from gpu.distributed.distributed_run import run_distributed
from gpu.patterns import find_pattern
from gpu.run.workload import Workload
from tests import needs
from tests.gpu.distributed.conftest import PLAIN
from tests.gpu.distributed.lockstep_engines import LOSE, REFUSE


@pytest.mark.parametrize("ended", ["SIGKILL", "SIGSTOP"])
def test_a_worker_that_is_no_use_any_more_is_told_and_done_without(cluster, ended):
    pattern = find_pattern("scan")
    params = pattern.check({"n": 2**18, "dtype": "int32"})
    inputs = pattern.prepare_inputs({}, params, 3)
    victim = cluster.client.run(os.getpid)
    told, killed = [], []

    def report(progress):
        if progress.fraction and not killed:  # its chunks' scans lie in its memory, and somebody still wants them
            first = cluster.workers[0].address
            os.kill(victim[first], getattr(signal, ended))
            killed.append(first)
        if "was lost" in progress.message:
            told.append(progress.message)

    outcome, done = run_distributed(
        cluster, Workload(pattern, pattern.variant("three-kernels"), inputs, params), report, chunks=(16,)
    )
    assert killed
    assert outcome.report.verified
    assert np.array_equal(outcome.outputs["result"], np.cumsum(inputs["values"], dtype=np.int32))
    (address,) = killed
    assert [lost.address for lost in done.lost_workers] == [address]
    assert address in told[0]
    assert not psutil.pid_exists(victim[address])


def test_what_does_not_come_from_worker_to_worker_ends_the_run(cluster, monkeypatch):
    monkeypatch.setattr(tasks, "_TRANSFER_S", 0.1)
    pattern = find_pattern("sort")
    params = pattern.check({"n": 64, "dtype": "int32"})
    variant, inputs = pattern.variant(pattern.default_variant), pattern.prepare_inputs({}, params, 3)
    with pytest.raises(EngineUnavailableError, match=r"cannot be transferred between workers: no such memory\.$"):
        run_distributed(
            cluster, Workload(pattern, variant, inputs, params, sources={REFUSE: ""}), lambda progress: None
        )
    outcome, _ = run_distributed(cluster, Workload(pattern, variant, inputs, params), lambda progress: None)
    assert outcome.report.verified


def test_an_engine_that_is_lost_takes_its_worker_along_and_no_result(cluster, tmp_path):
    pattern = find_pattern("reduction")
    params = pattern.check({"n": 5000, "dtype": "int32"})
    inputs = pattern.prepare_inputs({}, params, 4)
    marker = tmp_path / "once"
    marker.touch()
    variant = pattern.variant(pattern.default_variant)
    outcome, done = run_distributed(
        cluster,
        Workload(pattern, variant, inputs, params, sources={LOSE: str(marker)}),
        lambda progress: None,
        chunks=(5,),
    )
    assert outcome.report.verified
    assert not marker.exists()
    assert len(done.lost_workers) == 1


def test_it_listens_on_this_machine_alone(cluster):
    cluster.client.wait_for_workers(3)  # on a busy machine Dask can fail to start the one again that a test has killed
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [
        each.laddr.ip
        for process in family
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 5
    assert {*listening} == {"127.0.0.1"}


def test_nobody_at_an_address_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with (
        pytest.raises(EngineUnavailableError, match=f"No Dask scheduler answers at tcp://127.0.0.1:{port}"),
        open_cluster(ClusterSettings(scheduler=f"127.0.0.1:{port}")),
    ):
        pass


@contextlib.contextmanager
def _patient_dask() -> Iterator[None]:
    """Let Dask wait longer than a test may take: only a limit of Lockstep's own ends a connection in time."""
    load_dask()
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1h"}):
        yield


@pytest.mark.parametrize(
    ("says", "detail"),
    [
        (None, ""),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "The first message claims 3,543,824,036,068,086,856 bytes."),
        (b"\0\0\0\0\0\0\0\x40" * 4, "The first message claims 4,611,686,018,427,387,904 bytes."),
        ((564_000_000).to_bytes(8, sys.byteorder) + bytes(10_000), "The first message claims 564,000,000 bytes."),
    ],
)
def test_who_is_no_scheduler_is_not_waited_for(monkeypatch, says, detail):
    monkeypatch.setattr(cluster_module, "IDENTIFICATION_TIMEOUT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        called = []

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    called.append(server.accept()[0])
                    called[-1].sendall(says or b"")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        with (
            _patient_dask(),
            pytest.raises(
                EngineUnavailableError, match=f"No Dask scheduler answers at tcp://127.0.0.1:{port}"
            ) as caught,
            open_cluster(ClusterSettings(scheduler=f"127.0.0.1:{port}")),
        ):
            pass
        assert detail in caught.value.detail, "the claimed size was believed"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert called
    for each in called:
        each.close()


@pytest.fixture
def scheduler(tmp_path) -> Iterator[tuple[str, subprocess.Popen]]:
    with _start_by_hand(tmp_path) as started:
        yield started


@contextlib.contextmanager
def _start_by_hand(folder: Path, *tls: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """A scheduler and a worker as somebody starts them by hand, in Lockstep's folder."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    host, _, port = address.partition(":")
    here = ("--host", host, "--dashboard-address", f"{host}:0")
    options = {"cwd": ROOT, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    dask = [sys.executable, "-m"]
    protocol = ("--protocol", "tls") if tls else ()
    scheduler = [*dask, "distributed.cli.dask_scheduler", "--port", port, *here, *tls, *protocol]
    started = [subprocess.Popen(scheduler, **options)]
    to = f"tls://{address}" if tls else address
    own = ("--local-directory", str(folder), "--nthreads", "1", "--memory-limit", "0", *tls, *protocol)
    started.append(subprocess.Popen([*dask, "distributed.cli.dask_worker", to, *here, *own], **options))
    try:
        yield address, started[0]
    finally:
        for process in started[::-1]:
            process.terminate()
        for process in started:
            process.wait(30)


def test_a_scheduler_that_goes_away_is_one_sentence(scheduler):
    address, process = scheduler
    pattern = find_pattern("scan")
    params = pattern.check({"n": 2**20, "dtype": "int32"})
    inputs = pattern.prepare_inputs({}, params, 3)

    def report(progress):
        if progress.fraction:
            process.kill()

    variant = pattern.variant("three-kernels")
    with _connect_to(ClusterSettings(scheduler=address)) as there:
        assert [each.device.engine for each in there.workers] == ["simulator"]
        with pytest.raises(EngineUnavailableError, match=r"The scheduler is gone\.") as gone:
            run_distributed(there, Workload(pattern, variant, inputs, params), report, chunks=(64,))
    assert "nothing was written" in gone.value.advice


@contextlib.contextmanager
def _connect_to(asked):
    """Connect as soon as the scheduler and its worker are there."""
    end = time.monotonic() + 60
    while True:
        try:
            with open_cluster(asked, PLAIN) as there:
                yield there
            return
        except EngineUnavailableError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _make_certificate(folder: Path, name: str, *authority: str) -> Path:
    """Make a key and a certificate, signed by an authority's or by itself."""
    openssl = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")
    subprocess.run([*openssl, *files, *authority], check=True, capture_output=True)
    return folder / f"{name}.pem"


@needs.openssl
def test_a_protected_scheduler_is_reached_by_whom_it_trusts_alone(tmp_path):
    ca = _make_certificate(tmp_path, "authority")
    signed = ("-CA", str(ca), "-CAkey", str(tmp_path / "authority.key"))
    for name in ("server", "user"):
        _make_certificate(tmp_path, name, *signed, "-addext", "basicConstraints=critical,CA:FALSE")
    stranger = _make_certificate(tmp_path, "stranger")
    options = ("--tls-ca-file", ca, "--tls-cert", tmp_path / "server.pem", "--tls-key", tmp_path / "server.key")
    mine = Tls(str(ca), str(tmp_path / "user.pem"), str(tmp_path / "user.key"))
    with _start_by_hand(tmp_path, *map(str, options)) as (address, _):
        with _connect_to(ClusterSettings(scheduler=f"tls://{address}", tls=mine)) as there:
            assert there.workers[0].address.startswith("tls://")
            pattern = find_pattern("scan")
            params = pattern.check({"n": 1000, "dtype": "int32"})
            inputs = pattern.prepare_inputs({}, params, 3)
            variant = pattern.variant(pattern.default_variant)
            outcome, _ = run_distributed(
                there, Workload(pattern, variant, inputs, params), lambda progress: None, chunks=(3,)
            )
            assert outcome.report.verified
        for asked, said in (
            (ClusterSettings(scheduler=address), "A TLS scheduler needs tls://"),
            (
                ClusterSettings(scheduler=address, tls=Tls(str(ca), str(stranger), str(tmp_path / "stranger.key"))),
                "does not trust",
            ),
            (ClusterSettings(scheduler=address, tls=Tls(str(stranger), mine.cert, mine.key)), "does not trust"),
        ):
            with (
                _patient_dask(),
                pytest.raises(EngineUnavailableError, match="No Dask scheduler answers") as refused,
                open_cluster(asked),
            ):
                pass
            assert said in refused.value.advice


def test_a_worker_with_several_threads_is_refused():
    class Client:
        def scheduler_info(self, n_workers):
            return {"workers": {"tcp://10.0.0.7:1": {"nthreads": 8}}}

    with pytest.raises(EngineUnavailableError, match=r"tcp://10.0.0.7:1 has 8 threads") as refused:
        Cluster(Client(), "auto")
    assert "--nthreads 1" in refused.value.advice


@pytest.mark.parametrize("address", ["here", "http://host:8786", "tcp://host:0", "tcp://host:99999", "inproc://1"])
def test_what_is_no_address_is_refused(address):
    with (
        pytest.raises(InputError, match="is not a scheduler's address"),
        open_cluster(ClusterSettings(scheduler=address)),
    ):
        pass


def test_certificates_and_addresses_go_together(tmp_path):
    missing = Tls(*(str(tmp_path / name) for name in ("ca.pem", "cert.pem", "key.pem")))
    with (
        pytest.raises(InputError, match="needs a CA certificate, a certificate and a private key"),
        open_cluster(ClusterSettings(scheduler="tls://host:8786")),
    ):
        pass
    with (
        pytest.raises(InputError, match="There is no file"),
        open_cluster(ClusterSettings(scheduler="host:8786", tls=missing)),
    ):
        pass
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text("nothing")
    with (
        pytest.raises(InputError, match="no certificate"),
        open_cluster(ClusterSettings(scheduler="host:8786", tls=missing)),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "exposed"),
    [("", False), ("127.0.0.1:8786", False), ("tcp://localhost:8786", False), ("tcp://10.0.0.7:8786", True)],
)
def test_what_others_can_read_is_known(address, exposed):
    assert ClusterSettings(scheduler=address).is_exposed == exposed


def test_nobodys_configuration_says_whom_to_ask(monkeypatch):
    import dask.config

    load_dask()
    assert dask.config.get("scheduler-address", None) is None
    assert dask.config.get("distributed.comm.tls.ca-file") is None
