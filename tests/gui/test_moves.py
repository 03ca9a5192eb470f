from __future__ import annotations

from gui.driven import driven
from gui.moves import Subject, measure, recorded, table

SMALL = Subject("scan", "brent-kung", {"n": 16, "block": "32"})


def test_moves_of_a_recording_are_made_in_every_picture_and_timed():
    with driven("null") as window:
        found = list(recorded(window, [SMALL], 3))
        step = window.page.step
        assert step.player.moment > 0
        assert step.models.recording.launches[0].trace.grid == (1, 1, 1)
    (each,) = found
    assert each.title == "Scan: Brent-Kung, n 16, block 32"
    assert each.lane_events > 32
    assert each.opened_ms > 0
    assert list(each.times_ms) == ["Flow", "Arrays", "Variables"]
    for times in each.times_ms.values():
        assert list(times) == ["step", "barrier", "time line"]
        assert all(len(made) == 3 and min(made) > 0 for made in times.values())
    head, rule, *rows = table(found).splitlines()
    assert {line.count("|") for line in (head, rule, *rows)} == {8}
    assert [row.split(" | ")[3] for row in rows] == ["Flow", "Arrays", "Variables"]


def test_the_page_gets_a_section(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gui.moves.all_patterns", dict)
    monkeypatch.setattr("gui.moves.LARGE", (SMALL,))
    page = tmp_path / "page.md"
    assert measure(page, 2) == 0
    text = page.read_text(encoding="utf-8")
    assert "## Window: " in text
    assert "median / 95th percentile of 2, in ms" in text
    assert text.count("| Scan: Brent-Kung, n 16, block 32 |") == 3
    assert capsys.readouterr().out.strip() in text
