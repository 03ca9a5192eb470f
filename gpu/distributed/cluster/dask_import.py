"""Import of Dask, isolated from configuration files and environment variables, with its log silenced."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec

from gpu.base.errors import EngineUnavailableError
from gpu.base.installation import format_install_command

_CONNECT_TIMEOUT = "10s"
INSTALL_ADVICE = f"Install it by {format_install_command('dask')}."


def is_installed() -> bool:
    """Return whether Dask is installed, without importing it, which takes half a second."""
    return find_spec("distributed") is not None


@cache
def load_dask() -> None:
    """Import and configure Dask; only the command line decides which cluster it connects to.

    Raises
    ------
    EngineUnavailableError
        If Dask is not installed.
    """
    try:
        import dask
        import dask.config

        # Ignore scheduler addresses and certificates from configuration files and the environment.
        dask.config.refresh(paths=[], env={})
        import distributed
    except ImportError as error:
        raise EngineUnavailableError(
            f"Dask is not installed, but running a pattern on several devices needs it: {error}.",
            advice=INSTALL_ADVICE,
        ) from error
    assert distributed
    dask.config.set(
        {
            "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT,
            # Stealing would move data between devices; only a task that needs data should move it.
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.active-memory-manager.start": False,
            "distributed.worker.profile.enabled": False,
            # One message per transfer between workers: most data are small handles of device memory.
            "distributed.worker.transfer.message-bytes-limit": "1PB",
            "distributed.admin.large-graph-warning-threshold": "1PB",
            # Settings of the user's own scripts must not reach the workers.
            "distributed.nanny.pre-spawn-environ": {},
        }
    )
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        # Lockstep reports Dask's failures with its own messages.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").addFilter(_is_no_abandoned_wait)


def _is_no_abandoned_wait(record: logging.LogRecord) -> bool:
    """Return whether a record does not report a wait with a time limit that nobody waits for any more.

    A connection that Dask closes on a slow machine leaves such a wait of Tornado behind, which concerns no user.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_timeout = isinstance(error, TimeoutError) and error.args == ("Timeout",)
    return not (is_timeout and record.getMessage().startswith("Future exception was never retrieved"))
