from __future__ import annotations

import numpy as np
import pytest

from gpu.patterns import find_pattern
from gui.model.settings import MAX_RECENT


def test_defaults(memory):
    assert (memory.theme, memory.text_size, memory.engine, memory.scale) == ("dark", "normal", "auto", "linear")
    assert memory.recent == []
    assert memory.image is None


@pytest.mark.parametrize("key", ["theme", "text_size", "engine", "histogram_scale"])
@pytest.mark.parametrize("value", ["nonsense", 7, None, b"\xff", ["a"]])
def test_nonsense_is_as_if_it_had_never_been_stored(memory, store, key, value):
    store.setValue(key, value)
    assert memory.theme == "dark"
    assert memory.text_size == "normal"
    assert memory.engine == "auto"
    assert memory.scale == "linear"


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"size": 4, "filter": "box"}', '{"size": "x", "gone": 1}'])
def test_parameters_that_do_not_make_sense_take_their_defaults(memory, store, text):
    store.setValue("patterns/convolution/params", text)
    params = memory.params(find_pattern("convolution"))
    assert params["size"] == 9
    assert params["filter"] in ("gaussian", "box")


def test_parameters_come_back(memory):
    pattern = find_pattern("convolution")
    params = pattern.check({"filter": "custom", "coefficients": np.arange(25).reshape(5, 5) / 7, "border": "zero"})
    memory.store_settings("convolution", "naive", params)
    again = memory.params(pattern)
    assert all(np.array_equal(again[name], params[name]) for name in params)
    assert memory.variant(pattern) == "naive"


def test_a_variant_that_is_gone_is_the_default(memory, store):
    store.setValue("patterns/convolution/variant", "gone")
    assert memory.variant(find_pattern("convolution")) == "tiled"


def test_recent_files_are_unique_newest_first_and_few(memory, tmp_path, store):
    for number in [*range(MAX_RECENT + 3), 5]:
        memory.add_recent(tmp_path / str(number))
    assert [path.name for path in memory.recent][:3] == ["5", "10", "9"]
    assert len(memory.recent) == MAX_RECENT
    store.setValue("recent", "{")
    assert memory.recent == []
