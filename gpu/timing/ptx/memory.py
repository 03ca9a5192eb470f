"""The memory that sampled blocks see: arrays at made-up addresses, whose changes are taken back afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

WINDOW_BITS = 40
"""An address is the number of its window, so far to the left, and the place in it: of an array, or of a state space."""

SHARED_WINDOW, LOCAL_WINDOW, FIRST_ARRAY = 1, 2, 16
_PLACE = np.int64((1 << WINDOW_BITS) - 1)


class SampledMemory:
    """Arrays of bytes at addresses of their own.

    Parameters
    ----------
    arrays : mapping of int to array
        One-dimensional uint8 arrays by their numbers. Stores change them until `restore`.
    """

    def __init__(self, arrays: Mapping[int, Array]) -> None:
        self._arrays = dict(arrays)
        self._views: dict[tuple[int, Any], Array] = {}
        self._changes: list[tuple[Array, Array, Array]] = []

    @property
    def sizes(self) -> dict[int, int]:
        """The bytes of each array, by the number of its window."""
        return {FIRST_ARRAY + number: array.size for number, array in self._arrays.items()}

    def address(self, number: int) -> np.int64:
        """Return where an array begins."""
        return np.int64(FIRST_ARRAY + number << WINDOW_BITS)

    def load(self, addresses: Array, dtype: np.dtype[Any]) -> Array:
        """Return what lies at addresses; where there is nothing, what lies at the end of the nearest array."""
        found = np.zeros(addresses.shape, dtype)
        for which, view, places in self._parts(addresses, dtype):
            values = view.take(places, mode="clip") if view.size else np.zeros(places.shape, dtype)
            if which is None:
                return values
            found[which] = values
        return found

    def store(self, addresses: Array, values: Any, dtype: np.dtype[Any]) -> None:
        """Put values at addresses; those where there is no memory are left out."""
        for which, view, places in self._parts(addresses, dtype):
            own = values if which is None or not isinstance(values, np.ndarray) or not values.ndim else values[which]
            inside = (places >= 0) & (places < view.size)
            if not inside.all():
                places = places[inside]
                own = own[inside] if isinstance(own, np.ndarray) and own.ndim else own
            self._changes.append((view, places, view[places]))
            view[places] = own

    def restore(self) -> None:
        """Take back all that was stored."""
        for view, places, before in reversed(self._changes):
            view[places] = before
        self._changes.clear()

    def _parts(self, addresses: Array, dtype: np.dtype[Any]) -> list[tuple[Array | None, Array, Array]]:
        """Return for each array that addresses lead to which of them do, the array as `dtype`, and the places."""
        windows = addresses >> WINDOW_BITS
        first = int(windows[0]) if addresses.size else 0
        if (windows == first).all():
            return [(None, self._view(first, dtype), (addresses & _PLACE) // dtype.itemsize)] if first else []
        parts: list[tuple[Array | None, Array, Array]] = []
        for window in np.unique(windows).tolist():
            which = windows == window
            parts.append((which, self._view(window, dtype), (addresses[which] & _PLACE) // dtype.itemsize))
        return parts

    def _view(self, window: int, dtype: np.dtype[Any]) -> Array:
        key = (window, dtype)
        if key not in self._views:
            number = window - FIRST_ARRAY
            array = self._arrays.get(number, np.zeros(0, np.uint8))
            self._views[key] = array[: array.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return self._views[key]
