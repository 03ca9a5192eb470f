"""Cache of painted pictures, shared by all painters; it evicts the least recently used first."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPixmap

_MAX_CACHE_BYTES = 128 * 2**20
MAX_PAINTING_S = 0.002
"""Time limit for deferred painting in one iteration of the event loop; the rest follows in the next one."""


def paint_pixmap(size: QSize, ratio: float, paint: Callable[[QPainter], None]) -> QPixmap:
    """Return a picture on a transparent ground.

    Parameters
    ----------
    size : QSize
        The size in device pixels.
    ratio : float
        Device pixel ratio.
    paint : callable
        Paints with an antialiasing painter.
    """
    picture = QPixmap(size)
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint(painter)
    painter.end()
    return picture


class PixmapStore:
    """A least-recently-used cache of many painters' pictures, limited in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._pixmaps: OrderedDict[tuple[int, Hashable], QPixmap] = OrderedDict()
        # Painters may be garbage-collected on any thread, but pictures must be freed on the window's thread.
        self._released: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._pixmaps)

    def __contains__(self, key: tuple[int, Hashable]) -> bool:
        return key in self._pixmaps

    def find(self, key: tuple[int, Hashable]) -> QPixmap | None:
        """Return the picture of a key and mark it as most recently used."""
        picture = self._pixmaps.get(key)
        if picture is not None:
            self._pixmaps.move_to_end(key)
        return picture

    def insert(self, key: tuple[int, Hashable], picture: QPixmap) -> None:
        """Insert a picture, replacing any with the same key, and evict others beyond the byte limit."""
        while self._released:
            self.remove_painter(self._released.popleft())
        self.remove(key)
        self._pixmaps[key] = picture
        self.bytes += _count_bytes(picture)
        while self.bytes > self.max_bytes:
            _, oldest = self._pixmaps.popitem(last=False)
            self.bytes -= _count_bytes(oldest)

    def remove(self, key: tuple[int, Hashable]) -> None:
        """Remove a picture if it is cached."""
        dropped = self._pixmaps.pop(key, None)
        if dropped is not None:
            self.bytes -= _count_bytes(dropped)

    def remove_painter(self, painter: int) -> None:
        """Remove all pictures of a painter."""
        for key in [key for key in self._pixmaps if key[0] == painter]:
            self.remove(key)

    def schedule_removal(self, painter: int) -> None:
        """Schedule a painter's pictures for removal at the next insertion; may be called on any thread."""
        self._released.append(painter)


_SHARED_STORE = PixmapStore(_MAX_CACHE_BYTES)


class Pixmaps:
    """The cached pictures of one painter, removed when it is garbage-collected.

    A key contains everything that the picture's appearance depends on, so a stale picture is never shown.
    """

    _painters = 0

    def __init__(self, store: PixmapStore = _SHARED_STORE) -> None:
        Pixmaps._painters += 1
        self._store, self._painter = store, Pixmaps._painters
        weakref.finalize(self, store.schedule_removal, self._painter).atexit = False

    def __contains__(self, key: Hashable) -> bool:
        return (self._painter, key) in self._store

    def find(self, key: Hashable) -> QPixmap | None:
        """Return a picture, or None if it is not cached."""
        return self._store.find((self._painter, key))

    def insert(self, key: Hashable, picture: QPixmap) -> QPixmap:
        """Insert a picture, and return it."""
        self._store.insert((self._painter, key), picture)
        return picture

    def find_or_paint(self, key: Hashable, paint: Callable[[], QPixmap]) -> QPixmap:
        """Return the picture of a key; paint and insert it if it is not cached."""
        return self.find(key) or self.insert(key, paint())

    def clear(self) -> None:
        """Remove all pictures of this painter."""
        self._store.remove_painter(self._painter)


def _count_bytes(picture: QPixmap) -> int:
    return picture.width() * picture.height() * picture.depth() // 8
