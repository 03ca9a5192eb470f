"""Camera movements by the pointer: orbit around the target, zoom, and pan."""

from __future__ import annotations

import math
from dataclasses import replace

from gpu.messages.bodies import Camera

FOCAL = 1.2
"""Focal length divided by half of the picture's shorter side, as in the engine."""
_DRAG_ANGLE = math.pi
"""Angle of a drag across the whole picture."""
_MAX_PITCH = math.pi / 2 - 0.01
_HOME_PITCH = 0.6
_HOME_RADII = 3.0
_NEAREST, _FARTHEST = 1e-4, 1e6


def create_home_camera(radius: float) -> Camera:
    """Return the initial camera of a simulation; `radius` encloses half of the bodies."""
    return Camera(pitch=_HOME_PITCH, distance=min(max(_HOME_RADII * radius, _NEAREST), _FARTHEST))


def orbit(camera: Camera, right: float, down: float) -> Camera:
    """Orbit after a pointer movement, given as shares of the picture's shorter side."""
    pitch = camera.pitch + _DRAG_ANGLE * down
    return replace(
        camera,
        yaw=math.remainder(camera.yaw - _DRAG_ANGLE * right, 2 * math.pi),
        pitch=min(max(pitch, -_MAX_PITCH), _MAX_PITCH),
    )


def pan(camera: Camera, right: float, down: float) -> Camera:
    """Pan after a pointer movement, given as shares of the picture's shorter side."""
    length = 2 * camera.distance / FOCAL
    return _move_target(camera, -length * right, length * down)


def zoom(camera: Camera, factor: float, right: float = 0.0, down: float = 0.0) -> Camera:
    """Return a camera that is zoomed by a factor around a point.

    Parameters
    ----------
    factor : float
        Above 1 to zoom in.
    right, down : float
        Offset of the fixed point from the picture's center, as fractions of the shorter side.
    """
    distance = min(max(camera.distance / factor, _NEAREST), _FARTHEST)
    length = 2 * (camera.distance - distance) / FOCAL
    return replace(_move_target(camera, length * right, -length * down), distance=distance)


def _move_target(camera: Camera, right: float, up: float) -> Camera:
    """Return the camera with its target moved by lengths along the picture's axes."""
    cosine, sine = math.cos(camera.yaw), math.sin(camera.yaw)
    low, high = math.cos(camera.pitch), math.sin(camera.pitch)
    # Up is right x forward, with forward = (-sine low, cosine low, -high).
    axes = zip((cosine, sine, 0.0), (-sine * high, cosine * high, low), strict=True)
    x, y, z = (at + right * along + up * above for at, (along, above) in zip(camera.target, axes, strict=True))
    return replace(camera, target=(x, y, z))
