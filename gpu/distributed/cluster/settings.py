"""Specification of a Dask cluster; free of Dask imports, so that the window starts without them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from gpu.base.errors import InputError

MAX_SIMULATORS = 4

_ADDRESS = re.compile(r"((?:tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Tls:
    """Paths of the TLS files: the trusted certificate authority, and this client's certificate and key."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class ClusterSettings:
    """Specification of the cluster to start or connect to.

    Parameters
    ----------
    scheduler : str
        The scheduler's address; "" for a cluster on this machine.
    workers : int
        Number of workers of a cluster on this machine; 0 for one per GPU, or without GPUs one simulator per core, up
        to four.
    """

    scheduler: str = ""
    workers: int = 0
    tls: Tls | None = None

    @property
    def is_exposed(self) -> bool:
        """Whether traffic to the scheduler is unencrypted and leaves this machine."""
        match = _ADDRESS.fullmatch(self.scheduler)
        if match is None or self.tls is not None:
            return False
        host = match[2].strip("[]")
        try:
            return not ip_address(host).is_loopback
        except ValueError:
            return host != "localhost"


def format_scheduler_address(settings: ClusterSettings) -> str:
    """Return the scheduler's address, or "" for a cluster on this machine.

    Raises
    ------
    InputError
        If the address is malformed or contradicts the certificates.
    """
    if not settings.scheduler:
        if settings.tls is not None:
            raise InputError("A cluster on this machine uses no certificates: --tls-ca needs --scheduler.")
        return ""
    match = _ADDRESS.fullmatch(settings.scheduler)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise InputError(f"{settings.scheduler!r} is not a scheduler's address.", advice="Write tcp://HOST:8786.")
    protocol = "tls://" if settings.tls is not None else "tcp://"
    if match[1] not in (None, protocol):
        if settings.tls is None:
            raise InputError(f"{settings.scheduler} needs a CA certificate, a certificate and a private key.")
        raise InputError(f"{settings.scheduler} uses no certificates.", advice="Write tls://HOST:8786.")
    return f"{protocol}{match[2]}:{match[3]}"
