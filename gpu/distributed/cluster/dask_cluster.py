"""Dask clusters: one on this machine that ends with its block, or an existing one with a given scheduler address."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import copy
import gc
import logging
import socket
import ssl
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu.base.child_processes import shield_children_from_ctrl_c
from gpu.base.devices.processor import count_cores
from gpu.base.devices.survey import list_device_statuses
from gpu.base.errors import EngineUnavailableError, InputError, LockstepError
from gpu.base.installation import COMMAND
from gpu.distributed.cluster.dask_import import load_dask
from gpu.distributed.cluster.run_events import RunEventListener
from gpu.distributed.cluster.settings import MAX_SIMULATORS, ClusterSettings, Tls, format_scheduler_address
from gpu.messages.runs.distributed_run import WorkerStatus

LOOPBACK_ADDRESS = "127.0.0.1"

_GPU_ENGINES = ("auto", "cuda")
_DASHBOARD_PACKAGE = "bokeh"
"""The package that Dask's dashboard needs."""
_BATCH_INTERVAL_S = 0.0
"""Seconds for which Dask may collect messages before it sends them. Its default of 10 ms suits thousands of tasks; here
a few tasks wait for each other, and it doubled the time of a scan's three steps."""
_START_TIMEOUT_S = 60
_RESPONSE_TIMEOUT_S = 10
IDENTIFICATION_TIMEOUT_S = 5
"""Seconds within which a scheduler has to identify itself."""
_MAX_GREETING_BYTES = 2**16
"""Bytes of the longest first message; Dask allocates and fills as many as another kind of server claims."""
_START_ADVICE = (
    "Start scheduler and workers in Lockstep's folder, each by its Python: "
    "`python -m distributed.cli.dask_scheduler`, "
    "`python -m distributed.cli.dask_worker ADDRESS --nthreads 1 --memory-limit 0`."
)
_TLS_ADVICE = "Something listens there. A TLS scheduler needs tls://, --tls-ca, --tls-cert and --tls-key."
_CERTIFICATE_ADVICE = "Something listens there, but one side does not trust the other's certificate."


class Cluster:
    """Workers with one engine each.

    Parameters
    ----------
    client : distributed.Client
    shared_folder : str
        A folder that all workers can access; "" if there may be none.
    gpus : int
        GPUs per machine; 0 if unknown.

    Attributes
    ----------
    run_event_listener : RunEventListener
        Dispatches events to runs.
    workers : tuple of WorkerStatus
        Sorted by machine, in the order in which they receive chunks.
    """

    def __init__(self, client: Any, engine: str, shared_folder: str = "", gpus: int = 0) -> None:
        self.client = client
        self.shared_folder = shared_folder
        self._engine = engine
        self._gpus = gpus
        self._worker_addresses: frozenset[str] = frozenset()
        self.workers: tuple[WorkerStatus, ...] = ()
        self.update_workers()
        self.run_event_listener = RunEventListener(client)

    @property
    def dashboard(self) -> str:
        """URL of Dask's dashboard of the cluster; "" if it has none."""
        has_dashboard = self.shared_folder == "" or find_spec(_DASHBOARD_PACKAGE) is not None
        return str(self.client.dashboard_link or "") if has_dashboard else ""

    def limit_workers(self, count: int) -> Cluster:
        """Return this cluster restricted to its first `count` workers."""
        part = copy.copy(self)
        part.workers = self.workers[:count]
        return part

    def call_on_each_worker(self, function: Callable[..., Any], *values: Any) -> list[Any]:
        """Call a function in the engine thread of every worker; return the results in the workers' order."""
        futures = [
            self.client.submit(function, *values, workers=[worker.address], pure=False) for worker in self.workers
        ]
        results: list[Any] = self.client.gather(futures)
        return results

    def update_workers(self) -> None:
        """Update the list of workers: one that died may have restarted at another address.

        Raises
        ------
        EngineUnavailableError
            If there are no workers, or one has no engine.
        """
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        if not known and self.shared_folder:
            # This machine's workers restart after they were killed.
            with contextlib.suppress(TimeoutError):
                self.client.wait_for_workers(1, timeout=_RESPONSE_TIMEOUT_S)
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        if self._worker_addresses != frozenset(known) or not known:
            self.workers = _create_engines(self.client, self._engine, known, self._gpus)
            if self.shared_folder:  # on a shared cluster, other clients' messages must not change
                _reduce_latency(self.client)
            self._worker_addresses = frozenset(known)


@contextlib.contextmanager
def open_cluster(settings: ClusterSettings, engine: str = "auto") -> Iterator[Cluster]:
    """Start a cluster or connect to one; the workers have their engines when the block begins.

    Raises
    ------
    InputError
        If the address is malformed or certificates cannot be read.
    EngineUnavailableError
        If Dask is not installed, no scheduler answers at the address, or a worker has no engine.
    """
    address = format_scheduler_address(settings)
    if settings.scheduler and settings.workers:
        raise InputError("--workers is for a cluster on this machine; --scheduler uses that cluster's own workers.")
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(1))
        # The survey runs in another process; Dask is imported meanwhile.
        gpus_future = executor.submit(_survey_local_gpus) if not address and engine in _GPU_ENGINES else None
        load_dask()
        import distributed

        shared, gpus = "", 0
        if address:
            client = stack.enter_context(_connect_client(address, settings.tls))
        else:
            usable = gpus_future.result() if gpus_future is not None else []
            gpus = len(usable)
            count, engine = _choose_local_workers(settings.workers, engine, sum(usable))
            shared = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            started = stack.enter_context(_start_local_cluster(count, shared))
            client = stack.enter_context(distributed.Client(started, timeout=_START_TIMEOUT_S, set_as_default=False))
            client.wait_for_workers(count, timeout=_START_TIMEOUT_S)
        cluster = Cluster(client, engine, shared, gpus)
        try:
            yield cluster
        finally:
            cluster.run_event_listener.close()


def _survey_local_gpus() -> list[bool]:
    """Return for each GPU of this machine whether it is usable."""
    return [device_status.usable for device_status in list_device_statuses() if device_status.engine == "cuda"]


def _choose_local_workers(workers: int, engine: str, gpus: int) -> tuple[int, str]:
    """Return the number of workers for this machine, and their engine."""
    if engine in _GPU_ENGINES:
        if gpus:
            return workers or gpus, "cuda"
        if engine == "cuda":
            raise EngineUnavailableError(
                "No usable GPU was found on this machine.", advice=f"`{COMMAND} devices` shows the reason."
            )
    return workers or min(count_cores(), MAX_SIMULATORS), engine if engine != "auto" else "simulator"


@contextlib.contextmanager
def _start_local_cluster(count: int, folder: str) -> Iterator[Any]:
    """Start a scheduler in this process and workers in other processes; they listen on the loopback interface only."""
    import distributed

    listening = {"host": LOOPBACK_ADDRESS, "dashboard_address": f"{LOOPBACK_ADDRESS}:0", "dashboard": False}
    workers = {
        number: {
            "cls": distributed.Nanny,
            "options": {
                **listening,
                "nthreads": 1,
                "memory_limit": 0,
                "local_directory": folder,
                "silence_logs": logging.CRITICAL,
            },
        }
        for number in range(count)
    }
    has_dashboard = find_spec(_DASHBOARD_PACKAGE) is not None
    scheduler = {"cls": distributed.Scheduler, "options": {**listening, "port": 0, "dashboard": has_dashboard}}
    try:
        with shield_children_from_ctrl_c():
            cluster = distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL)
    except (OSError, RuntimeError) as error:
        raise EngineUnavailableError(f"The workers could not be started: {error}.") from error
    except KeyboardInterrupt:
        _close_unfinished_clusters()
        raise
    try:
        yield cluster
    finally:
        cluster.close(timeout=_RESPONSE_TIMEOUT_S)
        gc.unfreeze()


def _close_unfinished_clusters() -> None:
    """Close a cluster whose start was interrupted now: at the end of the process, Dask would print an error of it."""
    from distributed.deploy.spec import close_clusters

    atexit.unregister(close_clusters)
    with contextlib.suppress(AssertionError):  # of a worker that is closing already; it ends with this process
        close_clusters()


def _reduce_latency(client: Any) -> None:
    """Reduce the latency of messages between this process, the scheduler and the workers.

    Also exclude all imported objects from garbage collection: collecting them took 50 to 130 ms in the middle of a run,
    while all workers waited.
    """
    gc.freeze()
    client.scheduler_comm.interval = _BATCH_INTERVAL_S
    client.run(reduce_worker_latency, _BATCH_INTERVAL_S)
    client.run_on_scheduler(_set_scheduler_batch_interval, _BATCH_INTERVAL_S)


def _set_scheduler_batch_interval(seconds: float, dask_scheduler: Any) -> None:
    for each in (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()):
        each.interval = seconds


def reduce_worker_latency(seconds: float, dask_worker: Any) -> None:
    """Set how long a worker collects messages, and exclude existing objects from garbage collection."""
    gc.freeze()
    dask_worker.batched_stream.interval = seconds


@contextlib.contextmanager
def _connect_client(address: str, tls: Tls | None) -> Iterator[Any]:
    import distributed

    security, advice = _create_security(tls), _START_ADVICE
    host, _, port = address.partition("://")[2].rpartition(":")
    try:
        # Dask retries without end if nothing listens, and its client waits without end for a silent listener.
        socket.create_connection((host.strip("[]"), int(port)), timeout=IDENTIFICATION_TIMEOUT_S).close()
        advice = _TLS_ADVICE if tls is None else _CERTIFICATE_ADVICE
        kind = asyncio.run(asyncio.wait_for(_request_server_type(address, security), IDENTIFICATION_TIMEOUT_S))
    except Exception as error:  # a listener that is not a scheduler causes many types of exceptions
        raise EngineUnavailableError(
            f"No Dask scheduler answers at {address}.", advice=advice, detail=str(error)
        ) from error
    if kind != "Scheduler":
        raise EngineUnavailableError(
            f"{address} is not a scheduler but a Dask {kind.lower()[:40]}.", advice=_START_ADVICE
        )
    client = distributed.Client(address, security=security, timeout=_RESPONSE_TIMEOUT_S, set_as_default=False)
    with client:
        yield client


async def _request_server_type(address: str, security: Any) -> str:
    """Return the type of Dask server that an address reports."""
    import distributed

    arguments = security.get_connection_args("client")
    await _check_greeting(address, arguments.get("ssl_context"))
    async with distributed.rpc(address, connection_args=arguments) as server:
        return str((await server.identity())["type"])


async def _check_greeting(address: str, ssl_context: ssl.SSLContext | None) -> None:
    """Raise ValueError if the first message of a server, whose size precedes it, is too long for Dask's greeting."""
    host, _, port = address.partition("://")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=ssl_context)
    try:
        (size,) = struct.unpack("Q", await reader.readexactly(8))
    finally:
        writer.close()
    if size > _MAX_GREETING_BYTES:
        raise ValueError(f"The first message claims {size:,} bytes.")


def _create_security(tls: Tls | None) -> Any:
    import distributed

    if tls is None:
        return distributed.Security(require_encryption=False)
    for path in (tls.ca, tls.cert, tls.key):
        if not Path(path).is_file():
            raise InputError(f"There is no file {path}.")
    files = {"tls_ca_file": tls.ca, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
    security = distributed.Security(require_encryption=True, **files)
    try:
        security.get_connection_args("client")
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{tls.cert} and {tls.key} are not a certificate and its key: {error}.") from None
    return security


def _create_engines(client: Any, engine: str, worker_infos: Mapping[str, Any], gpus: int) -> tuple[WorkerStatus, ...]:
    """Give every worker an engine; return the workers' statuses, sorted by machine."""
    from gpu.distributed.cluster.worker import EnginePlugin, describe_worker, set_buffer_sharing

    if not worker_infos:
        raise EngineUnavailableError("The scheduler has no workers.", advice=_START_ADVICE)
    for address, each in worker_infos.items():
        if each["nthreads"] != 1:
            raise EngineUnavailableError(
                f"The worker {address} has {each['nthreads']} threads; an engine needs exactly one.",
                advice=_START_ADVICE,
            )
    try:
        client.register_plugin(EnginePlugin(engine, _assign_ordinals(worker_infos), gpus))
        futures = {
            address: client.submit(describe_worker, key=f"describe-{address}", workers=[address], pure=False)
            for address in worker_infos
        }
        descriptions = client.gather(futures)
        if len(worker_infos) > 1 and len({worker_info["host"] for worker_info in worker_infos.values()}) == 1:
            client.run(set_buffer_sharing, _have_peer_access(client, worker_infos))
    except LockstepError:
        raise
    except Exception as error:  # a worker without Lockstep raises many types of exceptions
        raise EngineUnavailableError(
            f"The workers cannot import Lockstep: {type(error).__name__}: {error}.", advice=_START_ADVICE
        ) from error
    statuses = [
        WorkerStatus(descriptions[address][0], address, worker_info["host"], descriptions[address][1])
        for address, worker_info in worker_infos.items()
    ]
    return tuple(sorted(statuses, key=lambda each: (each.host, each.name)))


def _have_peer_access(client: Any, worker_infos: Mapping[str, Any]) -> bool:
    """Return whether each worker can copy from all others' devices: not all GPUs of a machine have peer access."""
    from gpu.distributed.cluster.worker import can_copy_test_buffers, export_test_buffer

    def submit_step(address: str, step: Any, *values: Any) -> Any:
        return client.submit(step, *values, workers=[address], pure=False)

    addresses = list(worker_infos)
    handles = client.gather([submit_step(address, export_test_buffer) for address in addresses])
    if None in handles:
        return False
    others = [[handle for handle in handles if handle is not own] for own in handles]
    futures = [
        submit_step(address, can_copy_test_buffers, each) for address, each in zip(addresses, others, strict=True)
    ]
    return all(client.gather(futures))


def _assign_ordinals(worker_infos: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return for each worker's name the ordinal of its GPU, and the number of workers on its machine."""
    workers_of_host: Counter[str] = Counter()
    ordinals = {}
    for each in sorted(worker_infos.values(), key=lambda each: str(each["name"])):
        ordinals[str(each["name"])] = (each["host"], workers_of_host[each["host"]])
        workers_of_host[each["host"]] += 1
    return {name: (ordinal, workers_of_host[host]) for name, (host, ordinal) in ordinals.items()}
