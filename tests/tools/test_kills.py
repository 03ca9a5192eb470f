"""A few kills; `python -m tools.kills` makes many."""

from __future__ import annotations

import pytest

from tests import needs
from tools.kills import COMMANDS, run_kills


@pytest.mark.timeout(400)  # on a busy machine
@needs.linux
def test_nothing_is_left_of_what_is_killed_at_a_random_moment(tmp_path):
    victims = ("command", "window", "all", "engine")
    found = list(run_kills(tmp_path, victims, 7, COMMANDS[-1:], check_interval=5, jobs=2))
    assert sorted(killed.victim for killed in found) == sorted(victims)
    assert [killed for killed in found if killed.remains] == []
