"""Show a moment of a sequence in the window, and describe the window's state as a moment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import InputError
from gpu.base.schedules import ROUND_ROBIN, Schedule
from gpu.declaration.pattern import Parameter, Pattern, Preset
from gpu.declaration.roles import FROM_FILE, Role
from gpu.files.images import SAMPLES
from gui.model.sequences import Moment
from gui.model.workbench import Workbench
from gui.qt.timers import create_single_shot_timer
from gui.step_view.recording.steppable import make_variant_steppable
from gui.step_view.tab import StepTab
from gui.window.lecture_mode import LectureMode
from gui.window.pages.page_stack import Pages
from gui.window.pages.pattern_page import PatternPage

STEP = "Step"
_MAX_HOLD_MS = 400


def find_image(moment: Moment, folder: Path) -> Path | None:
    """Return the path of a moment's image, a sample or a file in `folder`; None if it names none.

    Raises
    ------
    InputError
        If the name leads out of the folder, or there is no such file.
    """
    name = moment.image
    if not name:
        return None
    sample = next((path for path in SAMPLES.iterdir() if name in (path.stem, path.name) and path.suffix != ".md"), None)
    if sample is not None:
        return sample
    # A sequence may come from a stranger: its images are next to it, never elsewhere or on a server.
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or PureWindowsPath(name).drive or ".." in parts.parts:
        raise InputError(f"The image {name} is not next to the sequence.")
    path = folder / parts
    if not os.path.isfile(path):
        raise InputError(f"There is no image {name} next to the sequence, and no sample of that name.")
    return path


def check_moment(moment: Moment, patterns: Mapping[str, Pattern]) -> dict[str, Any]:
    """Return a moment's valid parameters, with defaults; raise InputError if something it names does not exist."""
    pattern = patterns.get(moment.pattern)
    if pattern is None:
        raise InputError(f"There is no pattern {moment.pattern}.")
    variant = next((each for each in pattern.variants if each.name == moment.variant), None)
    if variant is None:
        raise InputError(f"{pattern.title} has no variant {moment.variant}.")
    is_step = moment.tab == STEP
    if is_step and variant.library:
        raise InputError(f"{variant.title} is a library: it has no source to step through.")
    Schedule.parse(moment.schedule or ROUND_ROBIN)
    parameters = make_variant_steppable(pattern, variant).parameters if is_step else pattern.parameters
    by_name = {each.name: each for each in parameters}
    unknown = next((name for name in moment.settings if name not in by_name), None)
    if unknown is not None:
        raise InputError(f"{pattern.title} has no setting {unknown}.")
    checked = {name: _check_setting(by_name[name], value) for name, value in moment.settings.items()}
    params = {**{name: each.initial for name, each in by_name.items()}, **checked}
    return params if is_step else pattern.check(params)


def _check_setting(parameter: Parameter, value: Any) -> Any:
    """Return a valid value of a parameter; raise InputError for another one."""
    if parameter.role is Role.SOURCE and value == FROM_FILE:
        raise InputError(f"The setting {parameter.name} needs an opened file, which a sequence cannot name.")
    is_array = isinstance(parameter.initial, np.ndarray)
    # For an array parameter, a string would be a file name.
    if (is_array and not isinstance(value, list)) or (isinstance(value, list) and isinstance(parameter.initial, str)):
        raise InputError(f"The setting {parameter.name} cannot be {value!r:.100}.")
    try:
        return parameter.check(np.array(value) if is_array else value)
    except InputError as error:
        raise InputError(error.message.removeprefix("--")) from None
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"The setting {parameter.name} cannot be {value!r:.100}.") from None


def _are_equal(before: tuple[dict[str, Any], str, int], after: tuple[dict[str, Any], str, int]) -> bool:
    """Return whether two recordings' parameters, schedules and seeds are equal."""
    same_params = all(np.array_equal(value, after[0][name]) for name, value in before[0].items())
    return before[1:] == after[1:] and same_params


class MomentDisplay(QObject):
    """Show moments in the window, also during a lecture."""

    shown = pyqtSignal(object, str)
    """The moment is on screen, and what differs from its description, as a sentence, or ""."""

    def __init__(self, bench: Workbench, pages: Pages, lecturing: LectureMode) -> None:
        super().__init__(pages)
        self._bench, self._pages, self._lecturing = bench, pages, lecturing
        self._pending: tuple[Moment, dict[str, Any], str] | None = None
        self._awaited_image: Path | None = None
        self._followed_tabs: set[StepTab] = set()
        self._held_tab: StepTab | None = None
        """The tab that is not painted until its moment is shown, or for at most `_MAX_HOLD_MS`."""
        self._hold_timer = create_single_shot_timer(_MAX_HOLD_MS, self._release_updates, self)
        bench.image_changed.connect(lambda _: self._continue_with_image())

    @property
    def busy(self) -> bool:
        """Whether a moment is about to be shown."""
        return self._pending is not None

    def show_message(self, text: str) -> None:
        """Show a message in the lecture, if there is one."""
        self._lecturing.show_message(text)

    def show(self, moment: Moment, hint: str, folder: Path) -> None:
        """Start showing a moment; `shown` is emitted when it is on screen.

        Parameters
        ----------
        hint : str
            A text that a lecture shows until the next step.

        Raises
        ------
        InputError
            If the moment names something that does not exist; the window then stays as it is.
        """
        params, image = check_moment(moment, self._bench.patterns), find_image(moment, folder)
        titles = self._pages.place_page(moment.pattern).tab_titles
        if moment.tab not in titles:
            raise InputError(f"There is no tab {moment.tab}: {', '.join(titles)} exist.")
        self._pending = moment, params, hint
        self._lecturing.keep_open()
        self._show_page(moment)
        current = self._bench.image.path if self._bench.image is not None else None
        self._awaited_image = None if image is None or image == current else image
        if self._awaited_image is not None:
            self._bench.open_image(self._awaited_image)
        else:
            self._apply()

    def _show_page(self, moment: Moment) -> None:
        self._release_updates()
        step = self._pages.place_page(moment.pattern).step
        if moment.tab == STEP and not step.isVisible():
            # Painting the previous recording, which is about to be replaced, would delay the moment.
            self._held_tab = step
            step.setUpdatesEnabled(False)
            self._hold_timer.start()
        if not self._pages.is_visible(moment.pattern):
            self._pages.choose_pattern(moment.pattern)
        page = self._pages.page
        if page.variant.name != moment.variant:
            self._pages.choose_variant(moment.variant)
        page.select_tab(moment.tab)

    def _release_updates(self) -> None:
        """Paint the Step tab again."""
        self._hold_timer.stop()
        if self._held_tab is not None:
            self._held_tab.setUpdatesEnabled(True)
            self._held_tab = None

    def _continue_with_image(self) -> None:
        image = self._bench.image
        if self._awaited_image is not None and image is not None and image.path == self._awaited_image:
            self._awaited_image = None
            self._apply()

    def _apply(self) -> None:
        """Apply the pending moment's settings, and record if they differ from the recording's."""
        assert self._pending is not None
        moment, params, _ = self._pending
        page = self._pages.page
        if moment.tab != STEP:
            self._pending = None
            page.show_example(Preset(moment.title, "", params))
            self._lecturing.suspend()
            page.setFocus()  # a field of the tab would take the key of the next moment as text
            self.shown.emit(moment, "")
            return
        tab = page.step
        if tab not in self._followed_tabs:
            self._followed_tabs.add(tab)
            tab.stepper.loaded.connect(lambda *_: self._go_to_moment(tab))
            tab.failed.connect(lambda *_: self._on_failure(tab))
        tab.player.pause()
        tab.settings.hide()
        settings = tab.settings
        before = dict(settings.params), settings.schedule, settings.input_seed
        settings.restore(params, moment.schedule or ROUND_ROBIN)
        settings.input_seed = moment.seed
        if not moment.picture:
            tab.choose_picture("")
        after = dict(settings.params), settings.schedule, settings.input_seed
        if not _are_equal(before, after) or not tab.is_up_to_date or tab.plays_run_block or tab.models is None:
            tab.record_soon()
            tab.first_moment = moment.step  # showing others first would double the time of the key
            tab.record()  # without the delay that collects a user's changes
        self._go_to_moment(tab)

    def _go_to_moment(self, tab: StepTab) -> None:
        """Go to the pending moment's step if its recording is shown."""
        if self._pending is None or tab is not self._pages.page.step or not tab.is_up_to_date:
            return
        moment, _, hint = self._pending
        self._pending = None
        self._release_updates()
        problem = ""
        if tab.models is not None:
            problem = self._show_picture(tab, moment)
            tab.player.go_to(min(moment.step, tab.player.end))
            if moment.step > tab.player.end:
                problem = f"There is no step {moment.step}: the recording ends with step {tab.player.end}."
        self._lecturing.show_tab(tab, hint)
        self.shown.emit(moment, problem)

    def _show_picture(self, tab: StepTab, moment: Moment) -> str:
        """Show a moment's picture; return why that is not possible, or ""."""
        kind = tab.panes.kinds.buttons.get(moment.picture)
        if moment.picture and (kind is None or kind.isHidden()):
            return f"This recording has no picture {moment.picture}."
        if moment.picture:
            tab.choose_picture(moment.picture)
        return ""

    def _on_failure(self, tab: StepTab) -> None:
        """Show the tab's page, with the reason, if a moment cannot be recorded."""
        if self._pending is not None and tab is self._pages.page.step:
            moment, _, _ = self._pending
            self._pending = tab.first_moment = None
            self._release_updates()
            self._lecturing.suspend()
            self.shown.emit(moment, "")


def capture_moment(page: PatternPage, bench: Workbench, folder: Path) -> tuple[Moment, str]:
    """Return the state of a pattern's page as a moment, and what it leaves out as a sentence, or "".

    Raises
    ------
    InputError
        If the state cannot be restored from a file: the input is an opened file of numbers.
    """
    tab = page.tabs.tabText(page.tabs.currentIndex())
    is_step = tab == STEP
    step = page.step
    params = step.settings.params if is_step else bench.settings[page.pattern.name].params
    parameters = {each.name: each for each in (step.steppable.parameters if is_step else page.pattern.parameters)}
    settings = {}
    for name, value in params.items():
        parameter = parameters[name]
        if not parameter.applies(params) or np.array_equal(value, parameter.initial):
            continue
        if parameter.role is Role.SOURCE and value == FROM_FILE:
            raise InputError("The input is an opened file, which a sequence cannot contain. Choose another input.")
        settings[name] = np.asarray(value).tolist() if isinstance(value, np.ndarray | tuple) else value
    image, problem = _name_image(page, params, bench, folder)
    moment = Moment(
        title=page.variant.title,
        pattern=page.pattern.name,
        variant=page.variant.name,
        tab=tab,
        settings=settings,
        image=image,
    )
    if not is_step:
        return moment, problem
    phase = step.snapshot(step.player.moment).phase if step.models is not None else ""
    schedule = step.settings.schedule
    moment = replace(
        moment,
        title=f"{moment.title}: {phase}" if phase else moment.title,
        picture=step.panes.kinds.chosen,
        step=step.player.moment,
        seed=step.settings.input_seed,
        schedule="" if schedule == ROUND_ROBIN else schedule,
    )
    return moment, problem


def _name_image(page: PatternPage, params: Mapping[str, Any], bench: Workbench, folder: Path) -> tuple[str, str]:
    """Return the name by which a moment finds the page's image, or "", and a sentence if that is not possible."""
    if page.pattern.input_kind(params) != "image" or bench.image is None:
        return "", ""
    path = bench.image.path.absolute()
    if path.parent == SAMPLES:
        return path.name, ""
    if path.is_relative_to(folder.absolute()):
        return path.relative_to(folder.absolute()).as_posix(), ""
    return "", f"The moment does not name {path.name}: copy the image next to the sequence first."
