"""Images of any size, made of one that is there."""

from __future__ import annotations

import numpy as np

from gpu.run.request_inputs import resize_image


def test_an_image_is_cut_or_repeated() -> None:
    image = np.arange(6).reshape(2, 3)
    inputs = {"image": image, "maxval": np.array(5)}
    assert resize_image(inputs, 2)["image"].tolist() == [[0, 1], [3, 4]]
    assert resize_image(inputs, 4)["image"].tolist() == [[0, 1, 2, 0], [3, 4, 5, 3]] * 2
    assert resize_image({"image": np.zeros((2, 3, 3))}, 7)["image"].shape == (7, 7, 3)
    assert resize_image(inputs, 0) is inputs
    assert resize_image({"values": image}, 4)["values"] is image
