"""A cluster: one of this machine that ends with its block, or somebody's whose scheduler's address a user gives."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import logging
import socket
import ssl
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu.devices.processor import cores
from gpu.devices.survey import survey
from gpu.distributed.asked import MOST_SIMULATORS, Asked, Tls, address_of
from gpu.distributed.library import load_dask
from gpu.distributed.told import Told
from gpu.errors import EngineUnavailableError, InputError, LockstepError
from gpu.messages.distributed import WorkerStatus

HERE = "127.0.0.1"

_ON_GPUS = ("auto", "cuda")
_DRAWS = "bokeh"
"""What Dask draws its own pages with."""
_COLLECT_S = 0.0
"""Dask collects messages for up to 10 ms and sends them together, which suits thousands of tasks: here few wait for
each other, and a scan's three steps took twice as long."""
_START_S = 60
_ANSWER_S = 10
GREETING_S = 5
"""How long a scheduler may take to say that it is one."""
_START_SO = (
    "Start scheduler and workers in Lockstep's folder, each by its Python: "
    "`python -m distributed.cli.dask_scheduler`, "
    "`python -m distributed.cli.dask_worker ADDRESS --nthreads 1 --memory-limit 0`."
)
_PROTECTED = "Something listens there; a protected scheduler wants tls://, --tls-ca, --tls-cert and --tls-key."
_NOT_TRUSTED = "Something listens there, but trusts none of these certificates, or has none that they trust."


class Cluster:
    """Workers that have an engine each.

    Parameters
    ----------
    client : distributed.Client
    engine : str
        Which engine they have.
    shared : str
        A folder that all of them see; "" where it is not known that there is one.
    gpus : int
        How many GPUs each of their machines has; 0 where that is not known.

    Attributes
    ----------
    told : Told
        By which runs hear of their tasks.
    workers : tuple of WorkerStatus
        By machines, in the order in which chunks are given to them.
    """

    def __init__(self, client: Any, engine: str, shared: str = "", gpus: int = 0) -> None:
        self.client = client
        self.shared = shared
        self._engine = engine
        self._gpus = gpus
        self._asked: frozenset[str] = frozenset()
        self.workers: tuple[WorkerStatus, ...] = ()
        self.look()
        self.told = Told(client)

    @property
    def dashboard(self) -> str:
        """Where Dask's own page on the cluster is; "" where it has none."""
        serves = self.shared == "" or find_spec(_DRAWS) is not None
        return str(self.client.dashboard_link or "") if serves else ""

    def first(self, count: int) -> Cluster:
        """Return the same with its first workers alone."""
        part = copy.copy(self)
        part.workers = self.workers[:count]
        return part

    def on_each(self, function: Callable[..., Any], *values: Any) -> list[Any]:
        """Call a function in the thread of every worker's engine; return what they return, in workers' order."""
        asked = [self.client.submit(function, *values, workers=[each.address], pure=False) for each in self.workers]
        found: list[Any] = self.client.gather(asked)
        return found

    def look(self) -> None:
        """See which workers there are now: one that died has come back elsewhere.

        Raises
        ------
        EngineUnavailableError
            Where there is none, or one without an engine.
        """
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        if not known and self.shared:
            # Those of this machine that were ended are being started again.
            with contextlib.suppress(TimeoutError):
                self.client.wait_for_workers(1, timeout=_ANSWER_S)
            known = self.client.scheduler_info(n_workers=-1)["workers"]
        if self._asked != frozenset(known) or not known:
            self.workers = _with_engines(self.client, self._engine, known, self._gpus)
            if self.shared:  # others' messages are none of our business
                _hurry(self.client)
            self._asked = frozenset(known)


@contextlib.contextmanager
def opened(asked: Asked, engine: str = "auto") -> Iterator[Cluster]:
    """Start a cluster, or connect to one; the workers have their engines when the block begins.

    Raises
    ------
    InputError
        For what is no address, or certificates that cannot be read.
    EngineUnavailableError
        Where there is no Dask, nobody at the address, or a worker without an engine.
    """
    address = address_of(asked)
    if asked.scheduler and asked.workers:
        raise InputError("--workers is for a cluster of this machine; with --scheduler its own workers are taken.")
    with contextlib.ExitStack() as stack:
        looking = stack.enter_context(ThreadPoolExecutor(1))
        # It is another process that looks: Dask is imported meanwhile.
        found = looking.submit(_gpus_here) if not address and engine in _ON_GPUS else None
        load_dask()
        import distributed

        shared, gpus = "", 0
        if address:
            client = stack.enter_context(_connected(address, asked.tls))
        else:
            usable = found.result() if found is not None else []
            gpus = len(usable)
            count, engine = _local(asked.workers, engine, sum(usable))
            shared = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            started = stack.enter_context(_started(count, shared))
            client = stack.enter_context(distributed.Client(started, timeout=_START_S, set_as_default=False))
            client.wait_for_workers(count, timeout=_START_S)
        cluster = Cluster(client, engine, shared, gpus)
        try:
            yield cluster
        finally:
            cluster.told.close()


def _gpus_here() -> list[bool]:
    """Return of each GPU of this machine whether it can be used."""
    return [each.usable for each in survey() if each.engine == "cuda"]


def _local(workers: int, engine: str, gpus: int) -> tuple[int, str]:
    """Return how many workers this machine has, and what engine."""
    if engine in _ON_GPUS:
        if gpus:
            return workers or gpus, "cuda"
        if engine == "cuda":
            raise EngineUnavailableError(
                "There is no GPU here that can be used.", advice="`python main.py devices` says why."
            )
    return workers or min(cores(), MOST_SIMULATORS), engine if engine != "auto" else "simulator"


@contextlib.contextmanager
def _started(count: int, folder: str) -> Iterator[Any]:
    """Start a scheduler in this process and workers in processes of their own; they listen on this machine alone."""
    import distributed

    listening = {"host": HERE, "dashboard_address": f"{HERE}:0", "dashboard": False}
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
    shown = find_spec(_DRAWS) is not None
    scheduler = {"cls": distributed.Scheduler, "options": {**listening, "port": 0, "dashboard": shown}}
    try:
        cluster = distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL)
    except (OSError, RuntimeError) as error:
        raise EngineUnavailableError(f"The workers did not start: {error}.") from error
    try:
        yield cluster
    finally:
        cluster.close(timeout=_ANSWER_S)
        gc.unfreeze()


def _hurry(client: Any) -> None:
    """Have this process, the scheduler and the workers collect messages for no longer than is worth it.

    Nor does Python look again and again for garbage among all that was imported, which stays: that took 50 to 130 ms,
    in the middle of a run, and everybody waited.
    """
    gc.freeze()
    client.scheduler_comm.interval = _COLLECT_S
    client.run(hurry, _COLLECT_S)
    client.run_on_scheduler(_scheduler_collects_for, _COLLECT_S)


def _scheduler_collects_for(seconds: float, dask_scheduler: Any) -> None:
    for each in (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()):
        each.interval = seconds


def hurry(seconds: float, dask_worker: Any) -> None:
    """Have a worker collect messages for so long before it sends them, and look for garbage in what is new alone."""
    gc.freeze()
    dask_worker.batched_stream.interval = seconds


@contextlib.contextmanager
def _connected(address: str, tls: Tls | None) -> Iterator[Any]:
    import distributed

    security, advice = _security(tls), _START_SO
    host, _, port = address.partition("://")[2].rpartition(":")
    try:
        # Dask asks again and again where nobody answers, and its client waits for ever for who says nothing.
        socket.create_connection((host.strip("[]"), int(port)), timeout=GREETING_S).close()
        advice = _PROTECTED if tls is None else _NOT_TRUSTED
        kind = asyncio.run(asyncio.wait_for(_kind(address, security), GREETING_S))
    except Exception as error:  # who is no scheduler fails in a dozen ways
        raise EngineUnavailableError(
            f"No Dask scheduler answers at {address}.", advice=advice, detail=str(error)
        ) from error
    if kind != "Scheduler":
        raise EngineUnavailableError(f"At {address} is no scheduler but a Dask {kind.lower()[:40]}.", advice=_START_SO)
    client = distributed.Client(address, security=security, timeout=_ANSWER_S, set_as_default=False)
    with client:
        yield client


async def _kind(address: str, security: Any) -> str:
    """Return what listens at an address, by its own word."""
    import distributed

    async with distributed.rpc(address, connection_args=security.get_connection_args("client")) as asked:
        return str((await asked.identity())["type"])


def _security(tls: Tls | None) -> Any:
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
        raise InputError(f"{tls.cert} and {tls.key} are no certificate and its key: {error}.") from None
    return security


def _with_engines(client: Any, engine: str, known: Mapping[str, Any], gpus: int) -> tuple[WorkerStatus, ...]:
    """Give every worker an engine; return what they are, by machine."""
    from gpu.distributed.worker import EnginePlugin, describe, share_from_now_on

    if not known:
        raise EngineUnavailableError("The scheduler has no workers.", advice=_START_SO)
    for address, each in known.items():
        if each["nthreads"] != 1:
            raise EngineUnavailableError(
                f"The worker {address} has {each['nthreads']} threads, and an engine belongs to one.", advice=_START_SO
            )
    try:
        client.register_plugin(EnginePlugin(engine, _ordinals(known), gpus))
        told = {
            address: client.submit(describe, key=f"describe-{address}", workers=[address], pure=False)
            for address in known
        }
        found = client.gather(told)
        if len(known) > 1 and len({each["host"] for each in known.values()}) == 1:
            client.run(share_from_now_on, _reach_each_other(client, known))
    except LockstepError:
        raise
    except Exception as error:  # what a worker without Lockstep says, in a dozen ways
        raise EngineUnavailableError(
            f"The workers have no Lockstep: {type(error).__name__}: {error}.", advice=_START_SO
        ) from error
    statuses = [
        WorkerStatus(found[address][0], address, each["host"], found[address][1]) for address, each in known.items()
    ]
    return tuple(sorted(statuses, key=lambda each: (each.host, each.name)))


def _reach_each_other(client: Any, known: Mapping[str, Any]) -> bool:
    """Whether each worker can copy from the devices of all others: not every two GPUs of a machine reach each other."""
    from gpu.distributed.worker import offer, reach

    def on(address: str, step: Any, *values: Any) -> Any:
        return client.submit(step, *values, workers=[address], pure=False)

    addresses = list(known)
    handles = client.gather([on(address, offer) for address in addresses])
    if None in handles:
        return False
    others = [[handle for handle in handles if handle is not own] for own in handles]
    asked = [on(address, reach, each) for address, each in zip(addresses, others, strict=True)]
    return all(client.gather(asked))


def _ordinals(known: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return by workers' names which GPU of its machine each takes, and how many workers that machine has."""
    of_host: Counter[str] = Counter()
    ordinals = {}
    for each in sorted(known.values(), key=lambda each: str(each["name"])):
        ordinals[str(each["name"])] = (each["host"], of_host[each["host"]])
        of_host[each["host"]] += 1
    return {name: (ordinal, of_host[host]) for name, (host, ordinal) in ordinals.items()}
