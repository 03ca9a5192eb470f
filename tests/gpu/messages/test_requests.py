from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import gpu.messages
from gpu.lessons import handlers  # noqa: F401 - registers them
from gpu.messages.requests import Request
from gpu.run.handlers import execution  # noqa: F401
from gpu.run.handlers.registry import RequestContext, find_handler

for module in pkgutil.walk_packages(gpu.messages.__path__, "gpu.messages."):
    import_module(module.name)
# In the same order in every worker, whichever module was imported first.
REQUESTS = sorted(
    (each for each in Request.__subclasses__() if each.__module__.startswith("gpu.messages.")),
    key=lambda each: each.__name__,
)


def find_result_type(request_type: type[Request[Any]]) -> Any:
    bases = request_type.__orig_bases__  # type: ignore[attr-defined]
    (base,) = (base for base in bases if get_origin(base) is Request)
    (result_type,) = get_args(base)
    return result_type


def test_requests_are_direct_subclasses() -> None:
    assert len(REQUESTS) >= 29
    assert [each for each in REQUESTS if each.__subclasses__()] == []


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda each: each.__name__)
def test_every_request_has_a_handler_that_returns_its_result(request_type: type[Request[Any]]) -> None:
    hints = get_type_hints(find_handler(request_type))
    assert hints == {"context": RequestContext, "request": request_type, "return": find_result_type(request_type)}
