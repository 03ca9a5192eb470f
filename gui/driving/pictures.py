"""README's pictures: `python -m gui.driving.pictures [FOLDER]` opens the real window and saves pictures of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import QElapsedTimer, QEventLoop, QTimer

from gpu.base.paths import DOCS
from gpu.declaration.pattern import Array
from gpu.declaration.roles import Role
from gpu.patterns.nbody.forces import Motion
from gui.driving.window_session import SIZE, are_flows_complete, open_window

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

TIMEOUT_MS = 60_000

FOLDER = DOCS / "images"

PLAYED_VARIANTS = {"reduction": "interleaved", "scan": "brent-kung", "compaction": "ballot"}
"""The variants that README plays, by pattern."""
SIDE_BY_SIDE_VARIANTS = ("kogge-stone", "brent-kung")
"""The scan variants that README shows side by side."""
DISTRIBUTED = "three-kernels"
"""The scan variant that README shows on several devices."""
LESSON = "02-divergence"
"""The lesson whose first question README shows with a wrong answer."""
SETTLE_MS = 600
_MAX_COLORS = 256
"""Maximum number of colors of a GIF."""
BODIES, FRAMES, STEPS_PER_FRAME = 5000, 84, 16
MOTION = Motion(time_step=0.01, softening=0.03)
"""The two galaxies that README plays: bodies, frames, steps per frame, and motion."""


def wait_until(condition: Callable[[], bool]) -> None:
    """Process events until a condition is true; raise TimeoutError if that takes too long."""
    loop, clock = QEventLoop(), QElapsedTimer()
    clock.start()
    while not condition():
        if clock.elapsed() > TIMEOUT_MS:
            raise TimeoutError("The window did not reach the expected state in time.")
        QTimer.singleShot(20, loop.quit)
        loop.exec()


def save_pictures(folder: Path) -> None:
    """Save all pictures to a folder."""
    _save_collision_film(folder)
    with open_window("simulator") as window:
        followed = window.pages.model_followers[window.bench.pattern_name]
        wait_until(lambda: window.is_idle and not followed.under_way)
        _save_both_themes(window, folder, "window")
        for pattern, variant in PLAYED_VARIANTS.items():
            _save_step_film(window, pattern, variant, folder)
        window.choose_pattern("scan")
        _save_step_pictures(window, folder)
        _save_lecture(window, folder)
        _save_side_by_side(window, folder)
        _save_lesson(window, folder)
        _save_workers(window, folder)


def _save_both_themes(window: MainWindow, folder: Path, stem: str) -> None:
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        _wait_until_stable(window)
        window.grab().save(str(folder / f"{stem}-{theme}.png"))


def _save_step_pictures(window: MainWindow, folder: Path) -> None:
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        _save_picture(window, folder / f"step-{theme}.png")


def _save_step_film(window: MainWindow, pattern: str, variant: str, folder: Path) -> None:
    """Step through a variant: save a film of it, and leave the window at two thirds of it."""
    window.choose_pattern(pattern)
    window.choose_variant(variant)
    page = window.page
    titles = [page.tabs.tabText(number) for number in range(page.tabs.count())]
    page.tabs.setCurrentIndex(titles.index("Step"))
    tab = page.step
    wait_until(lambda: tab.models is not None and tab.is_up_to_date)
    tab.exports.write_film(folder / f"{pattern}.gif")
    wait_until(lambda: tab.exports.film is None)
    _reduce_palette(folder / f"{pattern}.gif")
    tab.player.go_to(tab.player.end * 2 // 3)


def _save_lecture(window: MainWindow, folder: Path) -> None:
    """Save a picture of the Step tab in a lecture."""
    window.appearance.set_theme("light")
    window.lecturing.toggle()
    window.showNormal()
    window.resize(*SIZE)
    _save_picture(window, folder / "lecture.png")
    window.lecturing.toggle()
    window.resize(*SIZE)


def _save_side_by_side(window: MainWindow, folder: Path) -> None:
    """Save a picture of two scan variants on one timeline, in the middle of their work."""
    window.appearance.set_theme("dark")
    window.choose_variant(SIDE_BY_SIDE_VARIANTS[0])
    tab = window.page.step
    wait_until(lambda: tab.models is not None and tab.is_up_to_date)
    tab.panes.kinds.choose("Side by side")
    wait_until(lambda: tab.variants_view.models[1] is not None)
    tab.variants_view.select_variant(SIDE_BY_SIDE_VARIANTS[1])
    wait_until(lambda: tab.is_up_to_date and tab.variants_view.models[1] is not None)
    tab.player.go_to(tab.player.end * 2 // 3)
    _save_picture(window, folder / "side-by-side.png")


def _save_lesson(window: MainWindow, folder: Path) -> None:
    """Save a picture of a lesson's question, answered with one thread too many."""
    window.appearance.set_theme("light")
    teaching = window.teaching
    teaching.show_shelf()
    wait_until(lambda: "" in teaching.lessons.shelves)
    teaching.open_lesson(next(lesson for lesson in teaching.lessons.lessons if lesson.name == LESSON), 0)
    question = teaching.pane.question
    wait_until(lambda: question.scene is not None and teaching.page.step.is_up_to_date)
    assert question.scene is not None
    assert question.scene.question is not None
    for thread in question.scene.question.answer | {question.scene.question.size - 1}:
        question.handle_thread_click(0, thread)
    teaching.run()
    _save_picture(window, folder / "lesson.png")


def _save_workers(window: MainWindow, folder: Path) -> None:
    """Save a picture of a scan on four workers, in its second run, when their kernels have been compiled."""
    from gpu.distributed.cluster.settings import ClusterSettings

    window.choose_pattern("scan")
    window.page.select_tab("Run")
    window.choose_variant(DISTRIBUTED)
    params = window.bench.settings["scan"].params | window.page.pattern.params_for_role(Role.SIZE, 1_000_000)
    window.page.show_values(params)
    window.bench.choose_params(params)
    window.set_cluster(ClusterSettings(workers=4))
    page = window.page

    def has_distributed_outcome() -> bool:
        outcome = window.bench.outcomes.get("scan")
        return window.is_idle and outcome is not None and outcome.distributed is not None

    wait_until(has_distributed_outcome)
    window.bench.outcomes.clear()
    window.run()
    wait_until(has_distributed_outcome)
    page.select_tab("Workers")
    _save_picture(window, folder / "workers.png")


def _wait_until_stable(window: MainWindow) -> None:
    """Wait until the window has not changed for a while and all rows of Flow are painted."""
    unchanged = QElapsedTimer()
    unchanged.start()
    before = window.grab().toImage()

    def is_stable() -> bool:
        nonlocal before
        current = window.grab().toImage()
        if current != before or not are_flows_complete(window):
            before = current
            unchanged.restart()
        return unchanged.elapsed() > SETTLE_MS

    wait_until(is_stable)


def _save_picture(window: MainWindow, path: Path) -> None:
    """Save a picture of the window with 256 colors, a third of the bytes; not for photographs."""
    from PIL import Image

    _wait_until_stable(window)
    window.grab().save(str(path))
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def _reduce_palette(film: Path) -> None:
    """Rewrite a GIF with only the colors that it uses, which saves bytes."""
    from PIL import Image, ImageSequence

    with Image.open(film) as before:
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(before)]
    used = {color for frame, _ in frames for _, color in frame.getcolors(_MAX_COLORS) or ()}
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(sorted(used)).ravel().tolist())
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame, _ in frames)
    durations = [duration for _, duration in frames]
    first.save(film, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def _save_collision_film(folder: Path) -> None:
    """Save a film of two colliding galaxies, seen by a camera that orbits slowly."""
    from gpu import engines
    from gpu.messages.bodies import Camera
    from gpu.patterns.nbody.picture import BodyPicture
    from gpu.patterns.nbody.presets import assign_origins, generate
    from gpu.patterns.nbody.simulation import BodySimulation
    from gui.model.films import write_film

    bodies = generate("galaxies", BODIES, 1)
    with (
        closing(engines.create_engine("simulator")) as engine,
        closing(BodySimulation(engine, bodies, assign_origins("galaxies", bodies))) as galaxies,
    ):

        def frames() -> Iterator[Array]:
            for number in range(FRAMES):
                camera = Camera(0.5 + 0.01 * number, 0.7, 5.0)
                picture = galaxies.draw(BodyPicture(camera, 560, 320, color="origin"))
                if number == 0:  # two samples for the palette
                    yield from (picture, picture)
                yield picture
                for _ in galaxies.advance("tiled", STEPS_PER_FRAME, MOTION):
                    pass

        write_film(folder / "collision.gif", frames(), 20)


def main() -> None:
    """Save the pictures."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    save_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)


if __name__ == "__main__":
    main()
