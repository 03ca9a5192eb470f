"""The memory of sampled blocks: arrays at virtual addresses; changes are undone after each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_Change = tuple[Array, Array | slice, Array]

WINDOW_BITS = 40
"""Bits of an offset in an address; the bits above are the number of the window, an array or a state space."""

SHARED_WINDOW, LOCAL_WINDOW, FIRST_ARRAY = 1, 2, 16
_COPIED_SHARE = 1 / 4
"""The share of an array from which a store's array is copied completely, to be restored."""
_OFFSET_MASK = np.int64((1 << WINDOW_BITS) - 1)


@dataclass(frozen=True)
class Window:
    """The array of a window.

    Parameters
    ----------
    data : array of uint8
        One-dimensional.
    start : int
        The offset of its first byte in the window.
    """

    data: Array
    start: int = 0


class SampledMemory:
    """Byte arrays in a virtual address space.

    Parameters
    ----------
    arrays : mapping of int to array
        One-dimensional uint8 arrays by number. Stores change them until `restore` is called.
    find_window : callable
        Returns the array of another window, as of an address that is stored in memory; None if there is none.

    Attributes
    ----------
    change_count : int
        The number of stores so far that changed a value.
    """

    def __init__(
        self, arrays: Mapping[int, Array], find_window: Callable[[int], Window | None] = lambda window: None
    ) -> None:
        self._windows = {FIRST_ARRAY + number: Window(array) for number, array in arrays.items()}
        self._find_window = find_window
        self._missing: set[int] = set()
        self._views: dict[tuple[int, Any], Array] = {}
        self._changes: list[_Change] = []
        self._copied: set[tuple[int, int]] = set()
        self._presets: list[_Change] = []
        self.change_count = 0

    def find_size(self, number: int) -> int | None:
        """Return the bytes of a window's array; None if there is none."""
        window = self._get_window(number)
        return None if window is None else window.data.size

    def address(self, number: int) -> np.int64:
        """Return the address of an array's first byte."""
        return np.int64(FIRST_ARRAY + number << WINDOW_BITS)

    def load(self, addresses: Array, dtype: np.dtype[Any]) -> Array:
        """Load values from addresses; outside of arrays, return the value at the end of the nearest array."""
        result = np.zeros(addresses.shape, dtype)
        for selection, view, indices in self._split_addresses(addresses, dtype):
            values = view.take(indices, mode="clip") if view.size else np.zeros(indices.shape, dtype)
            if selection is None:
                return values
            result[selection] = values
        return result

    def store(self, addresses: Array, values: Any, dtype: np.dtype[Any]) -> None:
        """Store values to addresses; addresses outside of arrays are ignored."""
        for selection, view, indices in self._split_addresses(addresses, dtype):
            array_values = (
                values
                if selection is None or not isinstance(values, np.ndarray) or not values.ndim
                else values[selection]
            )
            inside = (indices >= 0) & (indices < view.size)
            if not inside.all():
                indices = indices[inside]
                array_values = (
                    array_values[inside] if isinstance(array_values, np.ndarray) and array_values.ndim else array_values
                )
            previous = view[indices]
            self._record_change(view, indices, previous)
            view[indices] = array_values
            self.change_count += not np.array_equal(view[indices], previous)

    def _record_change(self, view: Array, indices: Array, previous: Array) -> None:
        """Record values before a store; of an array that a store changes in large part, all of them, and once."""
        key = view.ctypes.data, view.nbytes
        if key in self._copied:
            return
        if indices.size > _COPIED_SHARE * view.size:
            self._copied.add(key)
            self._changes.append((view, slice(None), view.copy()))
        else:
            self._changes.append((view, indices, previous))

    def restore(self) -> None:
        """Undo all stores."""
        _undo(self._changes)
        self._copied.clear()

    def preset(self, addresses: Array, values: Any, dtype: np.dtype[Any]) -> None:
        """Store values that `restore` keeps, until `remove_presets`; there must be no other stores to undo."""
        self.store(addresses, values, dtype)
        self._presets += self._changes
        self._changes.clear()
        self._copied.clear()

    def remove_presets(self) -> None:
        """Undo the stores of `preset`."""
        _undo(self._presets)

    def _split_addresses(self, addresses: Array, dtype: np.dtype[Any]) -> list[tuple[Array | None, Array, Array]]:
        """Split addresses by array: selected lanes or None for all, the array as `dtype`, and the element indices."""
        windows = addresses >> WINDOW_BITS
        first = int(windows[0]) if addresses.size else 0
        if (windows == first).all():
            return [(None, *self._find_elements(first, addresses, dtype))] if first else []
        parts: list[tuple[Array | None, Array, Array]] = []
        for window in np.unique(windows).tolist():
            selection = windows == window
            parts.append((selection, *self._find_elements(window, addresses[selection], dtype)))
        return parts

    def _get_window(self, number: int) -> Window | None:
        window = self._windows.get(number)
        if window is None and number not in self._missing:
            window = self._find_window(number)
            if window is None:
                self._missing.add(number)
            else:
                self._windows[number] = window
        return window

    def _find_elements(self, number: int, addresses: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Return the array of a window as `dtype`, and the indices of the elements at addresses."""
        key, window = (number, dtype), self._get_window(number)
        if key not in self._views:
            array = np.zeros(0, np.uint8) if window is None else window.data
            self._views[key] = array[: array.size // dtype.itemsize * dtype.itemsize].view(dtype)
        start = 0 if window is None else window.start
        return self._views[key], ((addresses & _OFFSET_MASK) - start) // dtype.itemsize


def _undo(changes: list[_Change]) -> None:
    """Undo stores, the last one first, and forget them."""
    for view, indices, previous in reversed(changes):
        view[indices] = previous
    changes.clear()
