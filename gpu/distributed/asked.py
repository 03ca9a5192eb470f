"""Which cluster a user asks for; to say so takes nothing that connects to one, which the window begins without."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from gpu.errors import InputError

MOST_SIMULATORS = 4

_ADDRESS = re.compile(r"((?:tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Tls:
    """The files that a connection is protected by: who is trusted, and who this is."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class Asked:
    """Which cluster a user asks for.

    Parameters
    ----------
    scheduler : str
        Its address; "" for a cluster of this machine.
    workers : int
        How many a cluster of this machine has; 0 for one a GPU, and for simulators as many as there are cores, up to
        four.
    tls : Tls or None
    """

    scheduler: str = ""
    workers: int = 0
    tls: Tls | None = None

    @property
    def exposed(self) -> bool:
        """Whether what goes to the scheduler can be read, and replaced, on a network."""
        found = _ADDRESS.fullmatch(self.scheduler)
        if found is None or self.tls is not None:
            return False
        host = found[2].strip("[]")
        try:
            return not ip_address(host).is_loopback
        except ValueError:
            return host != "localhost"


def address_of(asked: Asked) -> str:
    """Return the scheduler's address that is asked for, "" for a cluster of this machine.

    Raises
    ------
    InputError
        For what is none, or does not go with the certificates.
    """
    if not asked.scheduler:
        if asked.tls is not None:
            raise InputError("A cluster of this machine needs no certificates: --tls-ca goes with --scheduler.")
        return ""
    found = _ADDRESS.fullmatch(asked.scheduler)
    if found is None or not 0 < int(found[3]) < 2**16:
        raise InputError(f"{asked.scheduler!r} is no scheduler's address.", advice="Write tcp://HOST:8786.")
    protocol = "tls://" if asked.tls is not None else "tcp://"
    if found[1] not in (None, protocol):
        advice = "It wants --tls-ca, --tls-cert and --tls-key." if asked.tls is None else "Write tls://HOST:8786."
        raise InputError(f"{asked.scheduler} does not go with what is given of certificates.", advice=advice)
    return f"{protocol}{found[2]}:{found[3]}"
