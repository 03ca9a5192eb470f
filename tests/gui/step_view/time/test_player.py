from __future__ import annotations

import pytest

from gui.step_view.time.player import Player


@pytest.fixture
def player(qtbot):
    made = Player()
    made.open(20, (0, 5, 12))
    return made


def test_steps_stop_at_both_ends(player):
    player.step(-1)
    assert player.moment == 0
    player.step(1)
    player.step(1)
    assert player.moment == 2
    player.go_to(99)
    assert player.moment == 20
    player.step(1)
    assert player.moment == 20


def test_barriers_are_gone_to_in_both_directions(player):
    seen = []
    player.moved.connect(seen.append)
    for _ in range(4):
        player.go_to_border(1)
    assert seen == [5, 12, 20]
    player.go_to(13)
    for _ in range(4):
        player.go_to_border(-1)
    assert seen == [5, 12, 20, 13, 12, 5, 0]


def test_phases_are_gone_to_and_without_names_barriers(player):
    seen = []
    player.moved.connect(seen.append)
    player.go_to_phase(1)
    player.open(20, (0, 5, 12), phases=(3, 9))
    for _ in range(4):
        player.go_to_phase(1)
    for _ in range(3):
        player.go_to_phase(-1)
    assert seen == [5, 0, 3, 9, 20, 9, 3, 0]


def test_it_plays_to_the_end_and_stops(qtbot, player):
    player.set_speed(16)
    seen = []
    player.moved.connect(seen.append)
    with qtbot.waitSignal(player.playing_changed, check_params_cb=lambda on: not on):
        player.play()
        assert player.playing
        qtbot.waitUntil(lambda: player.moment == 20, timeout=5000)
    assert seen == list(range(1, 21))
    player.play()
    assert player.moment == 0
    player.pause()


def test_a_loop_begins_anew(qtbot, player, monkeypatch):
    monkeypatch.setattr("gui.step_view.time.player._LOOP_PAUSE_S", 0.05)
    player.open(3, ())
    player.set_speed(16)
    player.loop = True
    seen = []
    player.moved.connect(seen.append)
    player.play()
    qtbot.waitUntil(lambda: seen[:6] == [1, 2, 3, 0, 1, 2], timeout=5000)
    player.pause()
    assert not player.playing


def test_a_move_by_hand_pauses(player):
    player.play()
    player.step(1)
    assert not player.playing


def test_another_recording_keeps_the_place_where_it_has_one(player):
    player.go_to(15)
    player.open(30, (), moment=15)
    assert player.moment == 15
    player.open(4, (), moment=15)
    assert player.moment == 4
