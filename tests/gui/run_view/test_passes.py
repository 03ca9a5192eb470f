"""The bar that plays a run."""

from __future__ import annotations

from gui.run_view.passes import PassesBar


def test_it_plays_from_the_first_picture_to_the_last_and_stops(qtbot) -> None:
    bar = PassesBar()
    qtbot.addWidget(bar)
    seen: list[int] = []
    bar.pass_selected.connect(seen.append)
    bar.show()
    bar.show_passes([f"pass {number}" for number in range(12)])
    assert bar.playing
    assert bar.button.text() == "Pause"
    qtbot.waitUntil(lambda: not bar.playing, timeout=20000)
    assert seen == list(range(12))
    assert bar.caption.text().split() == ["pass", "11", "12", "/", "12"]
    bar.toggle()
    assert bar.playing
    assert seen[-1] == 0


def test_the_slider_stops_it_and_leads_anywhere(qtbot) -> None:
    bar = PassesBar()
    qtbot.addWidget(bar)
    seen: list[int] = []
    bar.pass_selected.connect(seen.append)
    bar.show_passes(["in input order", "runs of 32", "the result"])
    bar.slider.sliderPressed.emit()
    assert not bar.playing
    bar.slider.setValue(1)
    assert seen == [0, 1]
    assert bar.caption.text().startswith("runs of 32")
