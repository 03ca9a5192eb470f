"""README's pictures: `python -m gui.driving.pictures [FOLDER]` opens the real window and saves pictures of it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QElapsedTimer, QEventLoop, QTimer

from gpu.declaration.pattern import Array
from gpu.declaration.roles import Role
from gpu.patterns.nbody.forces import Motion
from gui.driving.driven import flows_complete

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

SIZE = (1280, 720)
PATIENCE_MS = 60_000

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"

PLAYED = {"reduction": "interleaved", "scan": "brent-kung", "compaction": "ballot"}
"""The variants that README plays, by pattern."""
BESIDE = ("kogge-stone", "brent-kung")
"""The scan variants that README shows side by side."""
DISTRIBUTED = "three-kernels"
"""The scan variant that README shows on several devices."""
LESSON = "02-divergence"
"""The lesson whose first question README shows with a wrong answer."""
SETTLES_MS = 600
_MOST_COLORS = 256
"""Maximum number of colors of a GIF."""
BODIES, FRAMES, STEPS_A_FRAME = 5000, 84, 16
MOTION = Motion(time_step=0.01, softening=0.03)
"""The two galaxies that README plays: bodies, frames, steps per frame, and motion."""


def wait(until: Callable[[], bool]) -> None:
    """Process events until a condition is true; raise TimeoutError if that takes too long."""
    loop, clock = QEventLoop(), QElapsedTimer()
    clock.start()
    while not until():
        if clock.elapsed() > PATIENCE_MS:
            raise TimeoutError("The window did not reach the expected state in time.")
        QTimer.singleShot(20, loop.quit)
        loop.exec()


def take(folder: Path) -> None:
    """Save all pictures to a folder."""
    _collide(folder)
    from gui.app import application

    app = application()
    from gui.editor.drafts import Drafts
    from gui.model.settings import SavedSettings
    from gui.window.main_window import MainWindow

    with tempfile.TemporaryDirectory(prefix="lockstep-pictures-") as scratch:
        memory = SavedSettings(Path(scratch, "settings.json"))
        window = MainWindow(memory, "simulator", drafts=Drafts(Path(scratch, "drafts")))
        try:
            window.resize(*SIZE)
            window.show()
            window.begin()
            followed = window.pages.followed[window.bench.chosen]
            wait(lambda: window.at_rest and not followed.under_way)
            _both_themes(window, folder, "window")
            for pattern, variant in PLAYED.items():
                _play(window, pattern, variant, folder)
            window.choose_pattern("scan")
            _step(window, folder)
            _lecture(window, folder)
            _side_by_side(window, folder)
            _lesson(window, folder)
            _workers(window, folder)
        finally:
            window.close()
            app.processEvents()


def _both_themes(window: MainWindow, folder: Path, stem: str) -> None:
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        _settle(window)
        window.grab().save(str(folder / f"{stem}-{theme}.png"))


def _step(window: MainWindow, folder: Path) -> None:
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        _save(window, folder / f"step-{theme}.png")


def _play(window: MainWindow, pattern: str, variant: str, folder: Path) -> None:
    """Step through a variant: save a film of it, and leave the window at two thirds of it."""
    window.choose_pattern(pattern)
    window.choose_variant(variant)
    page = window.page
    titles = [page.tabs.tabText(number) for number in range(page.tabs.count())]
    page.tabs.setCurrentIndex(titles.index("Step"))
    tab = page.step
    wait(lambda: tab.models is not None and tab.at_rest)
    tab.exports.write_film(folder / f"{pattern}.gif")
    wait(lambda: tab.exports.film is None)
    _pack(folder / f"{pattern}.gif")
    tab.player.go(tab.player.end * 2 // 3)


def _lecture(window: MainWindow, folder: Path) -> None:
    """Save a picture of the Step tab in a lecture."""
    window.appearance.set_theme("light")
    window.lecturing.toggle()
    window.showNormal()
    window.resize(*SIZE)
    _save(window, folder / "lecture.png")
    window.lecturing.toggle()
    window.resize(*SIZE)


def _side_by_side(window: MainWindow, folder: Path) -> None:
    """Save a picture of two scan variants on one timeline, in the middle of their work."""
    window.appearance.set_theme("dark")
    window.choose_variant(BESIDE[0])
    tab = window.page.step
    wait(lambda: tab.models is not None and tab.at_rest)
    tab.panes.kinds.choose("Side by side")
    wait(lambda: tab.beside.models[1] is not None)
    tab.beside.choose(BESIDE[1])
    wait(lambda: tab.at_rest and tab.beside.models[1] is not None)
    tab.player.go(tab.player.end * 2 // 3)
    _save(window, folder / "side-by-side.png")


def _lesson(window: MainWindow, folder: Path) -> None:
    """Save a picture of a lesson's question, answered with one thread too many."""
    window.appearance.set_theme("light")
    teaching = window.teaching
    teaching.show_shelf()
    wait(lambda: "" in teaching.lessons.shelves)
    teaching.open(next(lesson for lesson in teaching.lessons.lessons if lesson.name == LESSON), 0)
    question = teaching.pane.question
    wait(lambda: question.scene is not None and teaching.page.step.at_rest)
    assert question.scene is not None
    assert question.scene.asked is not None
    for thread in question.scene.asked.answer | {question.scene.asked.size - 1}:
        question.take_thread(0, thread)
    teaching.run()
    _save(window, folder / "lesson.png")


def _workers(window: MainWindow, folder: Path) -> None:
    """Save a picture of a scan on four workers, in its second run, when their kernels have been compiled."""
    from gpu.distributed.asked import Asked

    window.choose_pattern("scan")
    window.choose_variant(DISTRIBUTED)
    params = window.bench.settings["scan"].params | window.page.pattern.with_value(Role.SIZE, 1_000_000)
    window.page.show_values(params)
    window.bench.choose_params(params)
    window.set_cluster(Asked(workers=4))
    page = window.page

    def done() -> bool:
        outcome = window.bench.outcomes.get("scan")
        return window.at_rest and outcome is not None and outcome.distributed is not None

    wait(done)
    window.bench.outcomes.clear()
    window.run()
    wait(done)
    page.turn_to("Workers")
    _save(window, folder / "workers.png")


def _settle(window: MainWindow) -> None:
    """Wait until the window has not changed for a while and all rows of Flow are painted."""
    unchanged = QElapsedTimer()
    unchanged.start()
    before = window.grab().toImage()

    def is_stable() -> bool:
        nonlocal before
        current = window.grab().toImage()
        if current != before or not flows_complete(window):
            before = current
            unchanged.restart()
        return unchanged.elapsed() > SETTLES_MS

    wait(is_stable)


def _save(window: MainWindow, path: Path) -> None:
    """Save a picture of the window with 256 colors, a third of the bytes; not for photographs."""
    from PIL import Image

    _settle(window)
    window.grab().save(str(path))
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def _pack(film: Path) -> None:
    """Rewrite a GIF with only the colors that it uses, which saves bytes."""
    from PIL import Image, ImageSequence

    with Image.open(film) as before:
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(before)]
    used = {color for frame, _ in frames for _, color in frame.getcolors(_MOST_COLORS) or ()}
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(sorted(used)).ravel().tolist())
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame, _ in frames)
    durations = [duration for _, duration in frames]
    first.save(film, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def _collide(folder: Path) -> None:
    """Save a film of two colliding galaxies, seen by a camera that orbits slowly."""
    from gpu import engines
    from gpu.messages.bodies import Camera
    from gpu.patterns.nbody.presets import generate, origins_of
    from gpu.patterns.nbody.simulation import BodySimulation
    from gui.model.films import write_film

    bodies = generate("galaxies", BODIES, 1)
    with (
        closing(engines.create("simulator")) as engine,
        closing(BodySimulation(engine, bodies, origins_of("galaxies", bodies))) as galaxies,
    ):

        def frames() -> Iterator[Array]:
            for number in range(FRAMES):
                picture = galaxies.draw(Camera(0.5 + 0.01 * number, 0.7, 5.0), 560, 320, color="origin")
                if number == 0:  # two samples for the palette
                    yield from (picture, picture)
                yield picture
                for _ in galaxies.advance("tiled", STEPS_A_FRAME, MOTION):
                    pass

        write_film(folder / "collision.gif", frames(), 20)


def main() -> None:
    """Save the pictures."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)


if __name__ == "__main__":
    main()
