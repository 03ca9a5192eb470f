"""What schedules are called."""

import pytest

from gpu.base.errors import InputError
from gpu.base.schedules import KINDS, NAMES, Schedule


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_schedule(name: str) -> None:
    text = name.replace("SEED", "7")
    found = Schedule.parse(text)
    assert str(found) == text
    assert KINDS[found.kind.name] is found.kind
    assert found.kind.title in found.title


@pytest.mark.parametrize(
    "text", ["", "lanes", "lanes:", "cached:x", "round-robin:1", "lanes:-1", "shuffle:" + "9" * 40]
)
def test_what_is_none(text: str) -> None:
    names = "round-robin, shuffle:SEED, lanes:SEED, preempt:SEED or cached:SEED"
    with pytest.raises(InputError, match=f"use {names}, where SEED is"):
        Schedule.parse(text)
