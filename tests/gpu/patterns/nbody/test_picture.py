"""Pictures of bodies: the same on every engine, with everything where a pinhole camera puts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.engines.base import Engine
from gpu.engines.simulator import SimulatorEngine
from gpu.messages.bodies import Camera
from gpu.patterns.nbody import picture as nbody_picture
from gpu.patterns.nbody.picture import COLORS, BodyPicture, disc_radius_log2, palette, view_matrix
from gpu.patterns.nbody.presets import generate
from gpu.patterns.nbody.simulation import BodySimulation

Array = np.ndarray[Any, Any]

AHEAD = Camera(yaw=0.0, pitch=0.0, distance=4.0)


def draw_bodies(
    engine: Engine, bodies: Array, camera: Camera, width: int = 64, height: int = 48, **options: Any
) -> Array:
    simulation = BodySimulation(engine, bodies)
    picture = simulation.draw(BodyPicture(camera, width, height, **options))
    simulation.close()
    return picture


def camera_at(*places: tuple[float, float, float]) -> Array:
    bodies = np.zeros((len(places), 7), np.float32)
    bodies[:, :3], bodies[:, 6] = places, 1
    return bodies


def find_light(picture: Array) -> tuple[float, float]:
    """Return the row and the column of the middle of the light."""
    light = picture.astype(np.float64).sum(axis=2) ** 2
    rows, columns = np.indices(light.shape) + 0.5
    return float((rows * light).sum() / light.sum()), float((columns * light).sum() / light.sum())


def test_the_picture_is_the_same_on_every_engine(fast_engine: Engine) -> None:
    """Bit for bit: light is summed in whole numbers, and all that is rounded is rounded the same way."""
    exact = SimulatorEngine("lockstep")
    bodies = generate("galaxies", 700, 2)
    for camera, color in ((Camera(0.7, 0.4, 4.0), "speed"), (Camera(-2.0, -1.2, 1.5, (1.0, 0.2, 0.1)), "origin")):
        found, right = (
            draw_bodies(each, bodies, camera, 131, 77, color=color, exposure=1.7) for each in (fast_engine, exact)
        )
        np.testing.assert_array_equal(found, right)
        assert len(np.unique(found)) > 50


def test_the_order_of_bodies_does_not_show(engine: Engine) -> None:
    bodies = generate("plummer", 300, 2)
    np.testing.assert_array_equal(
        draw_bodies(engine, bodies, AHEAD), draw_bodies(engine, np.ascontiguousarray(bodies[::-1]), AHEAD)
    )


def test_a_picture_shows_nothing_of_those_before_it(engine: Engine) -> None:
    simulation = BodySimulation(engine, generate("plummer", 300, 2))
    first = simulation.draw(BodyPicture(AHEAD, 64, 48))
    for width, height in ((64, 48), (48, 64), (30, 20), (64, 48)):
        picture = simulation.draw(BodyPicture(AHEAD, width, height))
        assert picture.shape == (height, width, 3)
    np.testing.assert_array_equal(picture, first)
    simulation.close()


def test_the_camera_sees_right_and_up_and_distance(engine: Engine) -> None:
    row, column = find_light(draw_bodies(engine, camera_at((0, 0, 0)), AHEAD))
    assert (row, column) == pytest.approx((24, 32), abs=0.1)
    focal = 1.2 * 24
    for place, (down, right) in {
        (1.0, 0.0, 0.0): (0, focal / 4),
        (0.0, 0.0, 1.0): (-focal / 4, 0),
        (1.0, -2.0, 0.0): (0, focal / 2),
        (1.0, 4.0, -1.0): (focal / 8, focal / 8),
    }.items():
        row, column = find_light(draw_bodies(engine, camera_at(place), AHEAD))
        assert (row, column) == pytest.approx((24 + down, 32 + right), abs=0.15)


def test_yaw_goes_around_and_pitch_looks_from_above(engine: Engine) -> None:
    turned = Camera(yaw=np.pi / 2, pitch=0.0, distance=4.0)
    _, column = find_light(draw_bodies(engine, camera_at((0, 1, 0)), turned))
    assert column > 37, "from +x towards -x, +y is to the right"
    above = Camera(yaw=0.0, pitch=np.pi / 2, distance=4.0)
    row, _ = find_light(draw_bodies(engine, camera_at((0, 1, 0)), above))
    assert row < 20, "from above +y is up"
    moved = Camera(yaw=0.3, pitch=0.4, distance=4.0, target=(5.0, 6.0, 7.0))
    assert find_light(draw_bodies(engine, camera_at((5, 6, 7)), moved)) == pytest.approx((24, 32), abs=0.1)


def test_the_view_is_a_rotation() -> None:
    rows = view_matrix(Camera(0.7, -0.4, 3.0, (1.0, 2.0, 3.0))).astype(np.float64)
    np.testing.assert_allclose(rows[:, :3] @ rows[:, :3].T, np.eye(3), atol=1e-6)
    assert np.linalg.det(rows[:, :3]) == pytest.approx(-1), "right, up, forward"
    np.testing.assert_allclose(rows @ [1, 2, 3, 1], [0, 0, 3], atol=1e-5)


def test_what_is_behind_or_beside_is_not_seen(engine: Engine) -> None:
    for place in ((0, -5, 0), (0, -4, 0), (0, -3.99, 0), (100, 0, 0), (0, 0, -1e30), (3e38, 0, 3e38)):
        assert not draw_bodies(engine, camera_at(place), AHEAD).any()
    far = camera_at((0, 0, 0))
    far[0, 0] = np.nan
    assert not draw_bodies(engine, far, AHEAD).any()


def test_a_body_at_the_edge_shows_the_part_that_is_inside(engine: Engine) -> None:
    focal = 1.2 * 24
    for x, z in ((-32 / focal * 4, 0), (32 / focal * 4, 0), (0, 24 / focal * 4), (0, -24 / focal * 4)):
        picture = draw_bodies(engine, camera_at((x, 0, z)), AHEAD)
        edges = [picture[:, 0], picture[:, -1], picture[0], picture[-1]]
        assert sum(bool(edge.any()) for edge in edges) == 1


@pytest.mark.parametrize("n", [1, 16, 17, 256, 257, 4096, 4097])
def test_a_disc_is_round_and_as_large_as_it_says(n: int) -> None:
    engine = SimulatorEngine("lockstep")
    radius = 2 ** disc_radius_log2(n)
    bodies = np.repeat(camera_at((0, 0, 0)), n, axis=0)
    picture = draw_bodies(engine, bodies, AHEAD, 40, 40)
    rows = np.flatnonzero(picture.any(axis=(1, 2)))
    assert radius <= np.ptp(rows) + 1 <= 2 * radius
    np.testing.assert_array_equal(picture, picture[::-1])
    np.testing.assert_array_equal(picture, picture[:, ::-1])
    np.testing.assert_array_equal(picture, picture.transpose(1, 0, 2))


def test_light_adds_up_and_exposure_brightens(engine: Engine) -> None:
    one = draw_bodies(engine, camera_at((0, 0, 0), (0, -9, 0)), AHEAD)
    two = draw_bodies(engine, camera_at((0, 0, 0), (0, 0, 0)), AHEAD)
    assert two.max() > one.max()
    assert (two >= one).all()
    assert (
        draw_bodies(engine, camera_at((0, 0, 0)), AHEAD, exposure=3.0).max()
        > draw_bodies(engine, camera_at((0, 0, 0)), AHEAD).max()
    )
    assert not draw_bodies(engine, camera_at((0, 0, 0)), AHEAD, exposure=0.0).any()


def test_colors_tell_speeds_and_origins(engine: Engine) -> None:
    bodies = camera_at((-0.5, 0, 0), (0.5, 0, 0))
    bodies[1, 3] = 50
    picture = draw_bodies(engine, bodies, AHEAD, color="speed").astype(int)
    slow, fast = picture[:, :32].sum(axis=(0, 1)), picture[:, 32:].sum(axis=(0, 1))
    assert slow[0] > slow[2]
    assert fast[2] > fast[0]
    picture = draw_bodies(engine, bodies, AHEAD, color="origin").astype(int)
    assert abs(picture[:, :32].sum(axis=(0, 1)) - picture[:, 32:].sum(axis=(0, 1))).max() > 100


def test_palettes_are_256_colors() -> None:
    for color in COLORS:
        colors = palette(color)
        assert (colors.shape, colors.dtype) == ((256,), np.uint32)
        assert colors.max() < 2**24
    assert len(np.unique(palette("speed"))) > 200


def test_a_million_bodies_in_one_pixel_do_not_overflow() -> None:
    """Sums are 32 bits wide."""
    most = 16 * 255 * 2**20
    assert most < 2**32
    assert nbody_picture.body_light(2**20, 1) > 0
