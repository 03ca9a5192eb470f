"""The camera's moves, by where the engine's own matrix puts points of the scene."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.messages.bodies import Camera
from gpu.patterns.nbody.picture import view_matrix
from gui.run_view.bodies import camera as cameras

CAMERA = Camera(yaw=0.7, pitch=0.4, distance=5.0, target=(1.0, 2.0, 3.0))


def project_point(camera, point):
    """Return where a point is seen: shares of the shorter side, right and down of the middle."""
    right, up, forward = view_matrix(camera).astype(float) @ np.append(point, 1.0)
    return np.array([right, -up]) / forward * cameras.FOCAL / 2


def point_on_target_plane(camera, right, down):
    """Return the point as far away as the target that is seen there."""
    axes = view_matrix(camera).astype(float)[:2, :3]
    length = 2 * camera.distance / cameras.FOCAL
    return np.array(camera.target) + length * (right * axes[0] - down * axes[1])


def test_a_pan_takes_the_scene_along():
    assert project_point(cameras.pan(CAMERA, 0.1, 0.05), CAMERA.target) == pytest.approx([0.1, 0.05], abs=1e-5)


@pytest.mark.parametrize("nearer", [1.5, 0.4])
def test_a_zoom_leaves_in_place_what_is_under_the_pointer(nearer):
    zoomed = cameras.zoom(CAMERA, nearer, 0.2, -0.1)
    assert zoomed.distance == pytest.approx(5.0 / nearer)
    assert project_point(zoomed, point_on_target_plane(CAMERA, 0.2, -0.1)) == pytest.approx([0.2, -0.1], abs=1e-5)


def test_a_zoom_has_its_ends():
    for nearer in (1e9, 1e-9):
        camera = CAMERA
        for _ in range(5):
            camera = cameras.zoom(camera, nearer, 0.3, 0.3)
        assert 0 < camera.distance < np.inf
        assert np.isfinite(view_matrix(camera)).all()


def test_an_orbit_takes_what_is_near_along():
    forward = view_matrix(CAMERA).astype(float)[2, :3]
    near = np.array(CAMERA.target) - 2 * forward
    right, down = project_point(cameras.orbit(CAMERA, 0.05, 0.03), near)
    assert right > 0
    assert down > 0
    assert project_point(cameras.orbit(CAMERA, 0.05, 0.03), CAMERA.target) == pytest.approx([0, 0], abs=1e-5)


def test_an_orbit_stops_at_the_poles():
    for down in (10.0, -10.0):
        turned = cameras.orbit(CAMERA, 0.0, down)
        assert abs(turned.pitch) < np.pi / 2
    assert abs(cameras.orbit(CAMERA, 1000.0, 0.0).yaw) <= np.pi


@pytest.mark.parametrize("radius", [0.0, 1e-12, 2.0, 1e30])
def test_home_is_a_camera_for_every_radius(radius):
    camera = cameras.create_home_camera(radius)
    assert np.isfinite(view_matrix(camera)).all()
    assert camera.distance > 0
