from __future__ import annotations

from gpu.bench.pages.document import find_sections
from gpu.declaration.roles import Role
from gui.driving import moves
from gui.driving.moves import Subject, measure_moves

SMALL = Subject("scan", "brent-kung", {Role.SIZE: 16, Role.BLOCK: "32"})


def test_moves_of_a_recording_are_made_in_every_picture_and_timed(tmp_path, monkeypatch, capsys):
    found = []

    def listened_to(*arguments, recorded=moves.measure_recordings):
        for each in recorded(*arguments):
            found.append(each)
            yield each

    monkeypatch.setattr(moves, "all_patterns", dict)
    monkeypatch.setattr(moves, "LARGE", (SMALL,))
    monkeypatch.setattr(moves, "measure_recordings", listened_to)
    page = tmp_path / "page.md"
    assert measure_moves(page, 3) == 0
    (each,) = found
    assert each.lane_events > 32
    assert each.opening_ms > 0
    assert list(each.times_ms) == ["Flow", "Arrays", "Variables"]
    for times in each.times_ms.values():
        assert list(times) == ["step", "barrier", "timeline"]
        assert all(len(made) == 3 and min(made) > 0 for made in times.values())
    shown = page.read_text(encoding="utf-8")
    assert "## Window: " in shown
    assert "| Flow | 1 | " in shown
    (section,) = find_sections(page, "Window")
    text = section.markdown()
    assert "median / 95th percentile of 3, in ms" in text
    head, rule, *rows = text.strip().splitlines()[-5:]
    assert {line.count("|") for line in (head, rule, *rows)} == {8}
    assert [row.split(" | ")[0] for row in rows] == ["| Scan: Brent-Kung, n 16, block 32"] * 3
    assert [row.split(" | ")[3] for row in rows] == ["Flow", "Arrays", "Variables"]
    assert capsys.readouterr().out.strip() in text
