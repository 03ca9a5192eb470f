"""Execute requests on an engine, in the calling process."""

from __future__ import annotations

import traceback

from gpu.base.errors import CompileError, EngineUnavailableError, KernelError, LockstepError
from gpu.engines.base import Engine
from gpu.messages.events import Failure
from gpu.messages.requests import R, Request
from gpu.messages.shared_arrays import SharedFolder
from gpu.run.handlers import bodies, files, kernels, patterns, recordings, timing
from gpu.run.handlers.registry import RequestContext, find_handler
from gpu.run.host_program import ProgressCallback

HANDLER_MODULES = (bodies, files, kernels, patterns, recordings, timing)
"""Modules that register handlers when they are imported."""


def execute_request(engine: Engine, request: Request[R], folder: SharedFolder, report_progress: ProgressCallback) -> R:
    """Execute a request with the handler of its type; return the result.

    Parameters
    ----------
    folder : SharedFolder
        The folder for the result's arrays, which are new ones.
    report_progress : callable
        Called with the progress; an exception that it raises ends the request.
    """
    return find_handler(type(request))(RequestContext(engine, folder, report_progress), request)


def to_failure(error: Exception) -> Failure:
    """Turn an exception into plain data; call this while the exception is being handled."""
    match error:
        case LockstepError():
            position = error.position if isinstance(error, KernelError) else None
            return Failure(_find_failure_kind(error), error.message, error.advice, error.detail, position)
        case MemoryError():
            return Failure(
                "input",
                "There is not enough memory for this.",
                "Use a smaller input, or close other programs.",
                traceback.format_exc(),
            )
    return Failure(
        "bug",
        f"Internal error in Lockstep: {type(error).__name__}: {error}",
        "Please report it, with the details.",
        traceback.format_exc(),
    )


def _find_failure_kind(error: LockstepError) -> str:
    match error:
        case CompileError():
            return "compile"
        case KernelError():
            return "launch"
        case EngineUnavailableError():
            return "engine"
    return "input"
