"""The options of `run` and `devices` that say which cluster is meant, and how the input is divided."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu.engines import NAMES
from gpu.errors import InputError
from gpu.schedules import ROUND_ROBIN

if TYPE_CHECKING:
    from gpu.distributed.asked import Asked

ENGINE = "dask"


@dataclass(frozen=True)
class OnCluster:
    """A run on a cluster, as it is asked for.

    Parameters
    ----------
    asked : Asked
    chunks : tuple of int
        As `run_distributed` takes them.
    graph : str
        A file for the drawing of what it recorded; "" for none.
    """

    asked: Asked
    chunks: tuple[int, ...] = ()
    graph: str = ""


_WINDOW = "window_"
"""Before the names of the window's own options: a command has some of the same."""
_TLS = ("tls_ca", "tls_cert", "tls_key")
_MOST_CHUNKS = 2**16
_MOST_WORKERS = 256


def add_scheduler(own: argparse.ArgumentParser) -> None:
    """Add the options that say whom to ask."""
    _add_cluster(own.add_argument_group("a cluster"))


def _add_cluster(group: argparse._ArgumentGroup, prefix: str = "") -> None:
    group.add_argument(
        "--scheduler",
        dest=f"{prefix}scheduler",
        metavar="tcp://HOST:8786",
        help="take the workers of this Dask scheduler; you say whom to trust",
    )
    for name, what in zip(_TLS, ("whom to trust", "who this is", "the key of that certificate"), strict=True):
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, dest=prefix + name, metavar="FILE.pem", help=f"with tls://: {what}")


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add what the window takes: its engine, and of several devices which."""
    group = parser.add_argument_group("the window")
    names = {f"--{name}": f"{_WINDOW}{name}" for name in ("engine", "workers", "scheduler")}
    group.add_argument(
        "--engine",
        dest=names["--engine"],
        choices=(*NAMES, ENGINE),
        help="what it begins with; dask is several devices of this machine, or a cluster's",
    )
    group.add_argument(
        "--workers", dest=names["--workers"], type=_count(_MOST_WORKERS), metavar="N", help="with --engine dask"
    )
    _add_cluster(group, _WINDOW)


def of_window(options: argparse.Namespace) -> str | Asked:
    """Return what the window is to begin with: an engine's name, a cluster, or "" for what it was the last time."""
    engine = getattr(options, f"{_WINDOW}engine") or ""
    if engine == ENGINE:
        return asked_of(options, _WINDOW)
    for name in ("scheduler", "workers", *_TLS):
        if getattr(options, _WINDOW + name):
            raise InputError(f"--{name.replace('_', '-')} has no effect without --engine {ENGINE}.")
    return engine


def refuse_before_command(options: argparse.Namespace) -> None:
    """Refuse what is said of the window where a command is given, which it would have no effect on."""
    for name in ("engine", "scheduler", "workers", *_TLS):
        if options.word and getattr(options, _WINDOW + name):
            raise InputError(f"--{name.replace('_', '-')} stands behind the command: `{options.word} ...`.")


def add_options(own: argparse.ArgumentParser) -> None:
    """Add what a run takes of a cluster."""
    add_scheduler(own)
    group = own.add_argument_group("with --engine dask")
    group.add_argument(
        "--workers",
        type=_count(_MOST_WORKERS),
        metavar="N",
        help="how many workers this machine has (default: one a GPU, or up to four simulators)",
    )
    group.add_argument(
        "--chunks",
        type=_lengths,
        metavar="N|N,N,...",
        help="how many chunks, or how many elements, or rows, each has (default: a chunk for each worker)",
    )
    group.add_argument(
        "--graph", metavar="FILE.svg", help="draw which worker made what from what, and when, as the run recorded it"
    )
    group.add_argument(
        "--stream",
        action="store_true",
        help="read --input and write --output a chunk at a time, as .npy, .raw, .zarr, .pgm, .ppm or .tif that all "
        "workers see: for more than memory holds; nothing is gathered here, nor compared with a reference",
    )
    group.add_argument(
        "--raw", metavar="TYPE:SHAPE", help="with --stream: --input has no header, such as float32:1000000"
    )


def asked_of(options: argparse.Namespace, prefix: str = "") -> Asked:
    """Return which cluster is asked for, and warn where others can read what goes there.

    Raises
    ------
    InputError
        Where one of the files that protect a connection is missing.
    """
    from gpu.distributed.asked import Asked, Tls

    files = [getattr(options, prefix + name) for name in _TLS]
    if any(files) and not all(files):
        raise InputError("--tls-ca, --tls-cert and --tls-key go together.")
    tls = Tls(*files) if all(files) else None
    scheduler, workers = (getattr(options, prefix + name, None) for name in ("scheduler", "workers"))
    asked = Asked(scheduler or "", workers or 0, tls)
    if asked.exposed:
        print(
            f"lockstep: {asked.scheduler} is not protected: who reaches it on the network can run programs on its "
            "workers. tls:// with --tls-ca, --tls-cert and --tls-key protects it.",
            file=sys.stderr,
        )
    return asked


def refuse_without(options: argparse.Namespace) -> None:
    """Refuse what is said of a cluster where none is asked for, and of one engine where one is."""
    if options.engine == ENGINE:
        for name, default in (("executor", "auto"), ("schedule", ROUND_ROBIN)):
            if getattr(options, name) != default:
                raise InputError(f"--{name} is for one simulator: it has no effect with --engine {ENGINE}.")
        if options.raw and not options.stream:
            raise InputError("--raw has no effect without --stream.")
        if options.stream and options.graph:
            raise InputError("--graph draws a run whose result is gathered here: it has no effect with --stream.")
        if options.stream and options.kernel:
            raise InputError("--source is checked on an input that is here, which --stream has none of.")
        return
    for name in ("scheduler", "workers", "chunks", "graph", "stream", "raw", *_TLS):
        if getattr(options, name):
            raise InputError(f"--{name.replace('_', '-')} has no effect without --engine {ENGINE}.")


def _count(most: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"a whole number from 1 to {most} is wanted, not {text[:20]!r}")
        return int(text)

    return count


def _lengths(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) == 1:
        return (_count(_MOST_CHUNKS)(text),)
    if len(parts) > _MOST_CHUNKS:
        raise argparse.ArgumentTypeError(f"there are more than {_MOST_CHUNKS} chunks")
    return tuple(_count(10**9 - 1)(part) for part in parts)
