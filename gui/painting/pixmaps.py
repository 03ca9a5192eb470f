"""Painted pictures that are kept: one store for all painters, which lets go of what was unused for longest."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

from PyQt6.QtGui import QPixmap

_MOST_BYTES = 128 * 2**20
WORK_S = 0.002
"""How long one turn of the event loop may paint what can wait; what is left comes with the next."""


class PixmapStore:
    """Pictures of many painters, together of so many bytes at most.

    Parameters
    ----------
    most_bytes : int
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._kept: OrderedDict[tuple[int, Hashable], QPixmap] = OrderedDict()
        # Painters may be collected on any thread, pictures are let go of on the window's alone.
        self._gone: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: tuple[int, Hashable]) -> bool:
        return key in self._kept

    def find(self, key: tuple[int, Hashable]) -> QPixmap | None:
        """Return the picture of a key, which makes it the last to go."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: tuple[int, Hashable], picture: QPixmap) -> None:
        """Keep a picture, in the place of any that has its key, for as long as there is room."""
        while self._gone:
            self.drop_all_of(self._gone.popleft())
        self.drop(key)
        self._kept[key] = picture
        self.bytes += _bytes_of(picture)
        while self.bytes > self.most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.bytes -= _bytes_of(oldest)

    def drop(self, key: tuple[int, Hashable]) -> None:
        """Let go of a picture, where it is there."""
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self.bytes -= _bytes_of(dropped)

    def drop_all_of(self, painter: int) -> None:
        """Let go of all pictures of a painter."""
        for key in [key for key in self._kept if key[0] == painter]:
            self.drop(key)

    def mark_gone(self, painter: int) -> None:
        """Let go of all pictures of a painter when the next one is kept; this may be called on any thread."""
        self._gone.append(painter)


_OF_ALL = PixmapStore(_MOST_BYTES)


class Pixmaps:
    """The kept pictures of one painter; they go when it goes.

    A key holds everything that its picture looks like by, so that no picture is ever shown for another.

    Parameters
    ----------
    store : PixmapStore
    """

    _painters = 0

    def __init__(self, store: PixmapStore = _OF_ALL) -> None:
        Pixmaps._painters += 1
        self._store, self._painter = store, Pixmaps._painters
        weakref.finalize(self, store.mark_gone, self._painter).atexit = False

    def __contains__(self, key: Hashable) -> bool:
        return (self._painter, key) in self._store

    def find(self, key: Hashable) -> QPixmap | None:
        """Return a picture, if it is still there."""
        return self._store.find((self._painter, key))

    def keep(self, key: Hashable, picture: QPixmap) -> QPixmap:
        """Keep a picture, and return it."""
        self._store.keep((self._painter, key), picture)
        return picture

    def at(self, key: Hashable, paint: Callable[[], QPixmap]) -> QPixmap:
        """Return the picture of a key, painted where it is not there."""
        return self.find(key) or self.keep(key, paint())

    def clear(self) -> None:
        """Let go of all of them."""
        self._store.drop_all_of(self._painter)


def _bytes_of(picture: QPixmap) -> int:
    return picture.width() * picture.height() * picture.depth() // 8
