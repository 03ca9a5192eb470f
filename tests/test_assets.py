"""The sample images: whole, documented, and the generated ones the same bytes each time."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

from gpu.base.paths import ASSETS
from gpu.files.images import DEFAULT_SAMPLE, SAMPLES, read_image, sample_images

MADE = ASSETS / "make_images.py"


@pytest.fixture(scope="module")
def generated_images() -> dict[str, bytes]:
    specification = importlib.util.spec_from_file_location("make_images", MADE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.make_images()


def test_made_images_are_what_the_script_makes(generated_images):
    for name, data in generated_images.items():
        assert (SAMPLES / name).read_bytes() == data, f"{name}: run python assets/make_images.py"


def test_there_are_enough_and_the_first_is_the_default(generated_images):
    assert sample_images()[0] == DEFAULT_SAMPLE
    photographs = [path for path in sample_images() if path.name not in generated_images]
    assert len(photographs) >= 6
    assert any(path.suffix == ".pgm" for path in photographs)
    assert sum(path.stat().st_size for path in sample_images()) < 4 * 2**20


@pytest.mark.parametrize("path", sample_images(), ids=lambda path: path.name)
def test_every_sample_is_readable(path):
    image = read_image(path)
    assert image.pixels.std() > 0


def test_every_sample_has_its_licence_and_origin_recorded():
    rows = re.findall(r"^\| `([^`]+)` \|(.+)\|$", (SAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == {path.name for path in sample_images()}
    for name, row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        assert len(cells) == 5, name
        assert all(cells), name
        assert cells[3] in ("CC0", "public domain"), name


def test_lessons():
    """What the generated images are described to show is there."""
    sky = read_image(SAMPLES / "night-sky.pgm").pixels
    assert np.isin(sky, (10, 11, 12)).mean() > 0.99
    ten_bit = read_image(SAMPLES / "ramp-10-bit.pgm")
    assert (ten_bit.maxval, ten_bit.pixels.max(), len(np.unique(ten_bit.pixels))) == (1023, 1023, 1024)
    assert (np.bincount(read_image(SAMPLES / "ramp.pgm").pixels.ravel()) == 512).all()
    assert np.count_nonzero(read_image(SAMPLES / "point.pgm").pixels) == 1
