"""Pictures of bodies by the splat kernels: camera, palettes and brightness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.engines.base import Buffer, Engine
from gpu.messages.bodies import Camera

Array = npt.NDArray[Any]

FILE = "splat.cu"
COLORS = ("speed", "origin")
MAX_SIDE = 8192

PICK_RADIUS = 16.0
"""Radius in pixels around the pointer within which a body is selected."""
_BLOCK = 256
_FOCAL = 1.2
"""Focal length over half of the picture's shorter side: a field of view of 80 degrees."""
_NEAR_PLANE = 0.02
"""Near clipping distance, relative to the camera's distance."""
_LIGHT_UNIT = 16 * 255
"""The light of one body at the center of its disc, per color channel."""
_ORIGIN_COLORS = ((255, 150, 60), (70, 140, 255), (255, 80, 110), (100, 230, 130), (215, 120, 255), (250, 225, 90))
# From slow to fast, like star colors from cool to hot.
_SPEED_COLORS = ((120, 30, 20), (255, 90, 30), (255, 170, 80), (255, 225, 170), (150, 190, 255), (70, 120, 255))


def view_matrix(camera: Camera) -> Array:
    """Return the view matrix with the rows right, up and forward and their shifts: float32, shape (3, 4)."""
    cosine, sine = np.cos(camera.yaw), np.sin(camera.yaw)
    low, high = np.cos(camera.pitch), np.sin(camera.pitch)
    right = np.array([cosine, sine, 0.0])
    forward = np.array([-sine * low, cosine * low, -high])
    up = np.cross(right, forward)
    target = np.array(camera.target, np.float64)
    rows = np.stack([right, up, forward])
    shifts = -rows @ target + np.array([0.0, 0.0, camera.distance])
    return np.concatenate([rows, shifts[:, np.newaxis]], axis=1).astype(np.float32)


def disc_radius_log2(n: int) -> int:
    """Return the binary logarithm of a body's radius in pixels; with few bodies, each is larger."""
    return 3 if n <= 16 else 2 if n <= 256 else 1 if n <= 2**16 else 0


@cache
def palette(color: str) -> Array:
    """Return a palette of 256 colors, red in the lowest byte: uint32."""
    if color == "origin":
        colors = np.resize(np.array(_ORIGIN_COLORS, np.uint32), (256, 3))
    else:
        anchors = np.linspace(0, 255, len(_SPEED_COLORS))
        channels = [np.interp(np.arange(256), anchors, channel) for channel in np.array(_SPEED_COLORS).T]
        colors = np.rint(np.stack(channels, axis=1)).astype(np.uint32)
    packed: Array = np.ascontiguousarray(colors @ np.array([1, 2**8, 2**16], np.uint32), np.uint32)
    packed.setflags(write=False)  # the cache returns the same array again
    return packed


@dataclass(frozen=True)
class BodyPicture:
    """The settings of a picture of bodies.

    Parameters
    ----------
    camera : Camera
        The camera; all its numbers have to be finite, and its distance above 0.
    width, height : int
        Pixels, 1 to `MAX_SIDE`.
    color : str
        One of `COLORS`: the property that determines a body's color.
    exposure : float
        The factor of the brightness, finite and at least 0.
    """

    camera: Camera
    width: int
    height: int
    color: str = "speed"
    exposure: float = 1.0

    def check(self) -> None:
        """Raise InputError if a setting is invalid."""
        if self.color not in COLORS:
            raise InputError(f"Bodies are colored by {' or '.join(COLORS)}, not by {self.color!r}.")
        if not (1 <= self.width <= MAX_SIDE and 1 <= self.height <= MAX_SIDE):
            raise InputError(f"A picture has 1 to {MAX_SIDE} pixels per side, not {self.width} x {self.height}.")
        camera = self.camera
        numbers = (camera.yaw, camera.pitch, camera.distance, *camera.target, self.exposure)
        if not np.isfinite(numbers).all() or camera.distance <= 0 or self.exposure < 0:
            raise InputError(
                "The camera's numbers have to be finite, its distance above 0, and the exposure at least 0."
            )


def nearest_body(bodies: Array, camera: Camera, width: int, height: int, x: float, y: float) -> int:
    """Return the index of the visible body nearest to a position in a picture; -1 if none within `PICK_RADIUS` pixels.

    Parameters
    ----------
    bodies : array, shape (n, 3 or more)
        Positions in the first three columns.
    x, y : float
        In pixels from the picture's top left corner.
    """
    rows = view_matrix(camera).astype(np.float64)
    right, up, depth = rows[:, :3] @ bodies[:, :3].T.astype(np.float64) + rows[:, 3:]
    visible = np.flatnonzero(depth > _NEAR_PLANE * camera.distance)
    scale = _FOCAL * min(width, height) / 2 / depth[visible]
    distances = np.hypot(right[visible] * scale + width / 2 - x, -up[visible] * scale + height / 2 - y)
    if not visible.size or distances.min() > PICK_RADIUS:
        return -1
    return int(visible[distances.argmin()])


class Painter:
    """Draws pictures of bodies, and reuses its device memory while the size of the pictures stays the same."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._light: Buffer | None = None
        self._picture: Buffer | None = None

    def close(self) -> None:
        """Free the device's memory."""
        for buffer in (self._light, self._picture):
            if buffer is not None:
                self._engine.free(buffer)
        self._light = self._picture = None

    def draw(
        self, bodies: Buffer, velocities: Buffer, origins: Buffer, settings: BodyPicture, speed_scale: float
    ) -> Array:
        """Return a picture of bodies: uint8, shape (height, width, 3).

        Parameters
        ----------
        bodies, velocities, origins : Buffer
            On the engine, of shape (n, 4), (n, 4) and (n,).
        speed_scale : float
            The speed for the palette's last color.
        """
        settings.check()
        width, height = settings.width, settings.height
        n, count = bodies.shape[0], width * height
        light, picture = self._buffers((height, width, 3))
        module = self._engine.build(FILE)
        module.set_constant("CAMERA", view_matrix(settings.camera))
        module.set_constant("PALETTE", palette(settings.color))
        self._engine.fill(light, 0)
        self._engine.launch(
            module.kernel("splat_bodies"),
            (-(-n // _BLOCK), 1, 1),
            (_BLOCK, 1, 1),
            bodies,
            velocities,
            origins,
            light,
            np.int32(n),
            np.int32(width),
            np.int32(height),
            np.float32(_FOCAL * min(width, height) / 2),
            np.float32(_NEAR_PLANE * settings.camera.distance),
            np.float32(speed_scale if settings.color == "speed" else 0),
            np.int32(disc_radius_log2(n)),
        )
        self._engine.launch(
            module.kernel("splat_develop"),
            (-(-count // _BLOCK), 1, 1),
            (_BLOCK, 1, 1),
            light,
            picture,
            np.float32(settings.exposure * body_light(n, count) / _LIGHT_UNIT),
            np.int32(count),
        )
        return self._engine.download(picture)

    def _buffers(self, shape: tuple[int, int, int]) -> tuple[Buffer, Buffer]:
        """Return the buffers for light and picture, of that shape."""
        if self._light is None or self._picture is None or self._picture.shape != shape:
            self.close()
            self._light = self._engine.allocate(shape, np.uint32)
            self._picture = self._engine.allocate(shape, np.uint8)
        return self._light, self._picture


def body_light(n: int, pixels: int) -> float:
    """Return the brightness of one body, which decreases with the number of bodies per pixel."""
    return float(np.clip(0.12 * (pixels / max(n, 1)) ** 0.5, 0.02, 3.0))
