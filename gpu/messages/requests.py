"""Base of the window's requests to the engine's process, and of results with arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpu.messages.shared_arrays import SharedArray

R = TypeVar("R")


class Request(Generic[R]):
    """Base of the requests, which are frozen data classes; `R` is the type of the result."""


@dataclass(frozen=True)
class Acknowledgment:
    """Result of a request that returns no data."""


@dataclass(frozen=True)
class ArrayResult:
    """Result with shared arrays, by name; an array's file exists as long as its handle in the window's process."""

    arrays: Mapping[str, SharedArray]
