"""`python main.py bench window`: measure moves through a recording, from the key press to the painted picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PyQt6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PyQt6.QtGui import QKeyEvent, QMouseEvent
from PyQt6.QtWidgets import QApplication

from gpu.base.devices.processor import processor_name
from gpu.bench.pages.document import write_section
from gpu.declaration.roles import Role
from gpu.patterns import all_patterns
from gui.driving.window_session import SIZE, open_window, wait_until

if TYPE_CHECKING:
    from gui.step_view.tab import StepTab
    from gui.window.main_window import MainWindow

TIMEOUT_S = 120
FRAME_MS = 1000 / 60
_PICTURES = ("Flow", "Arrays", "Variables")
_PAUSE_S = 1 / 30
"""Pause between two moves, like the repeat interval of a key that is held down."""
_CLICK_DISTANCE = 0.618
"""Distance between two clicks as a share of the timeline, so that each click hits another position."""


@dataclass(frozen=True)
class Subject:
    """A variant to record, and its parameters that differ from the defaults of the Step tab."""

    pattern: str
    variant: str
    params: dict[Role, Any] = field(default_factory=dict)


# Besides the defaults of the tabs, the largest recordings that can be stepped.
LARGE = (
    Subject("scan", "kogge-stone", {Role.SIZE: 1024, Role.BLOCK: "1024"}),
    Subject("scan", "brent-kung", {Role.SIZE: 1024, Role.BLOCK: "512"}),
    Subject("sort", "quicksort"),
    Subject("matmul", "peak"),
)


@dataclass(frozen=True)
class MeasuredRecording:
    """A recording in the window: its size, the time to open it, and the times of moves by picture."""

    title: str
    lane_events: int
    opening_ms: float
    times_ms: dict[str, dict[str, list[float]]]


def measure_moves(page: Path, repetitions: int) -> int:
    """Measure moves in a recording of each pattern and in some large ones, print them, and write them to a page.

    Returns
    -------
    int
        The exit code, 0.
    """
    subjects = [Subject(pattern.name, pattern.default_variant) for pattern in all_patterns().values()]
    with open_window("null") as window:
        recordings = []
        for recording in measure_recordings(window, [*subjects, *LARGE], repetitions):
            recordings.append(recording)
            print("\n".join(_format_rows(recording)), flush=True)
    head = (
        "Moves in the Step tab, from the key press or click to the painted picture, in a window of "
        f"{SIZE[0]} x {SIZE[1]} pixels: median / 95th percentile of {repetitions}, in ms. At 60 Hz a frame is "
        f"{FRAME_MS:.1f} ms. Clicks go to positions all over the timeline, where nothing is prepared."
    )
    write_section(page, "Window", processor_name(), f"{head}\n\n{format_table(recordings)}")
    return 0


def format_table(recordings: list[MeasuredRecording]) -> str:
    """Format recordings as a Markdown table."""
    lines = [
        "| recording | lane-events | opened in s | picture | step | barrier | timeline |",
        "|---|--:|--:|---|--:|--:|--:|",
    ]
    return "\n".join([*lines, *(line for recording in recordings for line in _format_rows(recording))])


def _format_rows(recording: MeasuredRecording) -> Iterator[str]:
    head = f"| {recording.title} | {recording.lane_events:,} | {recording.opening_ms / 1e3:.2f} |"
    for picture, times in recording.times_ms.items():
        yield f"{head} {picture} | {' | '.join(map(_format_times, times.values()))} |"


def _format_times(times_ms: list[float]) -> str:
    return f"{np.median(times_ms):.1f} / {np.percentile(times_ms, 95):.1f}" if times_ms else ""


def measure_recordings(window: MainWindow, subjects: list[Subject], repetitions: int) -> Iterator[MeasuredRecording]:
    """Record the subjects one after the other, and measure moves in each."""
    for number, subject in enumerate(subjects):
        window.choose_pattern(subject.pattern)
        window.choose_variant(subject.variant)
        step, tabs = window.page.step, window.page.tabs
        params: dict[str, Any] = {}
        for role, value in subject.params.items():
            params |= window.page.pattern.params_for_role(role, value)
        step.settings.form.change_values(**params)
        if not number:
            # Start the recording process first, so that its start is not measured.
            tabs.setCurrentIndex(window.page.stack.indexOf(step))
            _wait_until_idle(step)
        tabs.setCurrentIndex(0)
        step.record_soon()
        wait_until(lambda: window.is_idle, TIMEOUT_S)
        start = time.perf_counter()
        tabs.setCurrentIndex(window.page.stack.indexOf(step))
        _wait_until_idle(step)
        opening_ms = (time.perf_counter() - start) * 1e3
        assert step.models is not None, f"{subject} was not recorded"
        events = sum(
            len(launch.trace.events) * prod(launch.trace.grid) * launch.trace.launches[0].lanes_per_block
            for launch in step.models.recording.launches
        )
        size = ", ".join(f"{name} {value}" for name, value in params.items())
        title = f"{step.steppable.title}{', ' if size else ''}{size}"
        times: dict[str, dict[str, list[float]]] = {}
        for picture in _PICTURES:
            step.panes.kinds.choose(picture)
            _process_events(0.3)
            times[picture] = {
                name: list(_measure_move(step, move, repetitions)) for name, move in _list_moves(step).items()
            }
        yield MeasuredRecording(title, events, opening_ms, times)


def _wait_until_idle(step: StepTab) -> None:
    wait_until(lambda: step.is_up_to_date and step.models is not None, TIMEOUT_S)


def _process_events(seconds: float) -> None:
    """Process events for some time, so that the window can do its idle work."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        QCoreApplication.processEvents()
        time.sleep(0.001)


def _list_moves(step: StepTab) -> dict[str, Callable[[int], None]]:
    shift, none = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.NoModifier
    return {
        "step": lambda number: _press_key(step, Qt.Key.Key_Right, none),
        "barrier": lambda number: _press_key(step, Qt.Key.Key_Right, shift),
        "timeline": lambda number: _click_timeline(step, (number + 1) * _CLICK_DISTANCE % 1),
    }


def _press_key(step: StepTab, key: Qt.Key, modifiers: Qt.KeyboardModifier) -> None:
    QApplication.sendEvent(QApplication.focusWidget() or step, QKeyEvent(QEvent.Type.KeyPress, key, modifiers))


def _click_timeline(step: StepTab, share: float) -> None:
    at = QPointF(share * step.panes.timeline.width(), step.panes.timeline.height() / 2)
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    press = QMouseEvent(QEvent.Type.MouseButtonPress, at, step.panes.timeline.mapToGlobal(at), left, left, none)
    QApplication.sendEvent(step.panes.timeline, press)


def _measure_move(step: StepTab, move: Callable[[int], None], repetitions: int) -> Iterator[float]:
    """Repeat a move, restarting at the end of the recording; yield its times in ms."""
    step.player.go_to(0)
    for number in range(repetitions):
        if step.player.moment == step.player.end:
            step.player.go_to(0)
        _process_events(_PAUSE_S)
        before, start = step.player.moment, time.perf_counter()
        move(number)
        # Lay out and paint posted updates; timers for work in advance do not fire.
        for _ in range(3):
            QCoreApplication.sendPostedEvents()
        elapsed_ms = (time.perf_counter() - start) * 1e3
        if step.player.moment != before:
            yield elapsed_ms
