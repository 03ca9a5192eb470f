"""How Dask is imported: without anybody's configuration files or environment, and without its own log."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec

from gpu.errors import EngineUnavailableError

_CONNECT = "10s"
INSTALL = "`pip install -r requirements-dask.txt` installs it."


def is_installed() -> bool:
    """Whether Dask is there, without importing it, which takes half a second."""
    return find_spec("distributed") is not None


@cache
def load_dask() -> None:
    """Import Dask with settings of ours: whom it talks to is what a user says on the command line, and nothing else.

    Raises
    ------
    EngineUnavailableError
        Where it is not installed.
    """
    try:
        import dask
        import dask.config

        # A scheduler's address or certificates that stand in a file or in the environment are not taken.
        dask.config.refresh(paths=[], env={})
        import distributed
    except ImportError as error:
        raise EngineUnavailableError(
            f"Dask, which runs a pattern on several devices, is not installed here: {error}.",
            advice=INSTALL,
        ) from error
    assert distributed
    dask.config.set(
        {
            "distributed.comm.timeouts.connect": _CONNECT,
            # What lies on a device is moved only where a task needs it.
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.active-memory-manager.start": False,
            "distributed.worker.profile.enabled": False,
            # What one worker takes of another comes in one message: mostly it is handles of what lies on a device.
            "distributed.worker.transfer.message-bytes-limit": "1PB",
            "distributed.admin.large-graph-warning-threshold": "1PB",
            # What a user's own script is started with is none of the workers' business.
            "distributed.nanny.pre-spawn-environ": {},
        }
    )
    for name in [each for each in logging.root.manager.loggerDict if each.partition(".")[0] == "distributed"]:
        # Whatever a user should know of it is said in a sentence of ours.
        logging.getLogger(name).setLevel(logging.CRITICAL)
