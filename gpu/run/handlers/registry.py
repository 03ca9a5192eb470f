"""Registry of the handlers of requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu.engines.base import Engine
from gpu.messages.requests import R, Request
from gpu.messages.shared_arrays import SharedFolder
from gpu.run.host_program import ProgressCallback


@dataclass(frozen=True)
class RequestContext:
    """Environment of a request.

    Parameters
    ----------
    folder : SharedFolder
        The folder for the result's arrays.
    report_progress : callable
        Called with the progress.
    """

    engine: Engine
    folder: SharedFolder
    report_progress: ProgressCallback


Handler = Callable[[RequestContext, Any], R]

_HANDLERS: dict[type[Request[Any]], Handler[Any]] = {}


def handles(request_type: type[Request[R]]) -> Callable[[Handler[R]], Handler[R]]:
    """Register the decorated function as the handler of a type of requests.

    A handler returns the request's result. It imports modules that not every process needs when it is called.
    """

    def register(handler: Handler[R]) -> Handler[R]:
        _HANDLERS[request_type] = handler
        return handler

    return register


def find_handler(request_type: type[Request[R]]) -> Handler[R]:
    """Return the handler of a type of requests; raise KeyError if its module has not been imported."""
    return _HANDLERS[request_type]
