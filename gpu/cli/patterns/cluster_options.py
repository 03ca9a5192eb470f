"""Options of `run`, `devices` and the window that choose a cluster and divide the input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu.base.errors import InputError
from gpu.base.schedules import ROUND_ROBIN
from gpu.engines import NAMES

if TYPE_CHECKING:
    from gpu.distributed.cluster.settings import ClusterSettings

DASK_ENGINE = "dask"


@dataclass(frozen=True)
class ClusterRunOptions:
    """Cluster and options of a run on it.

    Parameters
    ----------
    chunks : tuple of int
        As in `run_distributed`.
    graph : str
        File for the graph of the recorded Dask tasks; "" for none.
    """

    settings: ClusterSettings
    chunks: tuple[int, ...] = ()
    graph: str = ""


WINDOW_PREFIX = "window_"
"""Prefix of the window options' destinations: commands have options with the same names."""
_TLS_NAMES = ("tls_ca", "tls_cert", "tls_key")
_MAX_CHUNKS = 2**16
_MAX_WORKERS = 256


def add_scheduler_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a Dask scheduler."""
    _add_cluster_options(parser.add_argument_group("a cluster"))


def _add_cluster_options(group: argparse._ArgumentGroup, prefix: str = "") -> None:
    group.add_argument(
        "--scheduler",
        dest=f"{prefix}scheduler",
        metavar="tcp://HOST:8786",
        help="use the workers of this Dask scheduler; it has to be one that you trust",
    )
    meanings = ("certificate authority to trust", "this machine's certificate", "that certificate's private key")
    for name, meaning in zip(_TLS_NAMES, meanings, strict=True):
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, dest=prefix + name, metavar="FILE.pem", help=f"with tls://: {meaning}")


def add_window_options(parser: argparse.ArgumentParser) -> None:
    """Add the window's options: its engine and, for several devices, the cluster."""
    group = parser.add_argument_group("the window")
    names = {f"--{name}": f"{WINDOW_PREFIX}{name}" for name in ("engine", "workers", "scheduler")}
    group.add_argument(
        "--engine",
        dest=names["--engine"],
        choices=(*NAMES, DASK_ENGINE),
        help="engine at startup; dask uses all GPUs of this machine, or a cluster's (default: the last one used)",
    )
    group.add_argument(
        "--workers",
        dest=names["--workers"],
        type=_count_parser(_MAX_WORKERS),
        metavar="N",
        help="with --engine dask: workers on this machine",
    )
    _add_cluster_options(group, WINDOW_PREFIX)


def read_window_engine(options: argparse.Namespace) -> str | ClusterSettings:
    """Return the window's engine at startup: its name, a cluster, or "" for the last one used."""
    engine = getattr(options, f"{WINDOW_PREFIX}engine") or ""
    if engine == DASK_ENGINE:
        return read_cluster_settings(options, WINDOW_PREFIX)
    for name in ("scheduler", "workers", *_TLS_NAMES):
        if getattr(options, WINDOW_PREFIX + name):
            raise InputError(f"--{name.replace('_', '-')} has no effect without --engine {DASK_ENGINE}.")
    return engine


def refuse_window_options(options: argparse.Namespace) -> None:
    """Refuse window options before a command, where they have no effect."""
    for name in ("engine", "scheduler", "workers", *_TLS_NAMES):
        if options.command_name and getattr(options, WINDOW_PREFIX + name):
            raise InputError(f"--{name.replace('_', '-')} must follow the command: `{options.command_name} ...`.")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the cluster options of the command `run`."""
    add_scheduler_options(parser)
    group = parser.add_argument_group("with --engine dask")
    group.add_argument(
        "--workers",
        type=_count_parser(_MAX_WORKERS),
        metavar="N",
        help="workers on this machine (default: one per GPU, or up to four simulators)",
    )
    group.add_argument(
        "--chunks",
        type=_parse_chunk_sizes,
        metavar="N|N,N,...",
        help="number of chunks, or the elements or rows of each (default: one chunk per worker)",
    )
    group.add_argument(
        "--graph", metavar="FILE.svg", help="draw the recorded graph of Dask tasks: worker, inputs and time of each"
    )
    group.add_argument(
        "--stream",
        action="store_true",
        help="read --input and write --output chunk by chunk, as .npy, .raw, .zarr, .pgm, .ppm or .tif files that all "
        "workers can access; for data larger than memory. The result is neither gathered nor verified",
    )
    group.add_argument(
        "--raw", metavar="TYPE:SHAPE", help="with --stream: type and shape of a file without header: float32:1000000"
    )


def read_cluster_settings(options: argparse.Namespace, prefix: str = "") -> ClusterSettings:
    """Return the chosen cluster, and warn if its connections are not protected.

    Raises
    ------
    InputError
        Some but not all of the three TLS files are given.
    """
    from gpu.distributed.cluster.settings import ClusterSettings, Tls

    files = [getattr(options, prefix + name) for name in _TLS_NAMES]
    if any(files) and not all(files):
        raise InputError("--tls-ca, --tls-cert and --tls-key must be given together.")
    tls = Tls(*files) if all(files) else None
    scheduler, workers = (getattr(options, prefix + name, None) for name in ("scheduler", "workers"))
    settings = ClusterSettings(scheduler or "", workers or 0, tls)
    if settings.is_exposed:
        print(
            f"lockstep: {settings.scheduler} is not protected: anyone on the network can run programs on its workers. "
            "tls:// with --tls-ca, --tls-cert and --tls-key protects it.",
            file=sys.stderr,
        )
    return settings


def refuse_unused_options(options: argparse.Namespace) -> None:
    """Refuse cluster options without a cluster, and options of a single engine with one."""
    if options.engine == DASK_ENGINE:
        for name, default in (("executor", "auto"), ("schedule", ROUND_ROBIN)):
            if getattr(options, name) != default:
                raise InputError(
                    f"--{name} has no effect with --engine {DASK_ENGINE}: it applies to a single simulator."
                )
        if options.raw and not options.stream:
            raise InputError("--raw has no effect without --stream.")
        if options.stream and options.graph:
            raise InputError("--graph has no effect with --stream: it draws a run whose result is gathered.")
        if options.stream and options.source:
            raise InputError("--source cannot be used with --stream: checking it needs an input in memory.")
        return
    for name in ("scheduler", "workers", "chunks", "graph", "stream", "raw", *_TLS_NAMES):
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} has no effect without --engine {DASK_ENGINE}.")


def _count_parser(maximum: int) -> Callable[[str], int]:
    def parse_count(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {maximum}, not {text[:20]!r}")
        return int(text)

    return parse_count


def _parse_chunk_sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) == 1:
        return (_count_parser(_MAX_CHUNKS)(text),)
    if len(parts) > _MAX_CHUNKS:
        raise argparse.ArgumentTypeError(f"there are more than {_MAX_CHUNKS} chunks")
    return tuple(_count_parser(10**9 - 1)(part) for part in parts)
