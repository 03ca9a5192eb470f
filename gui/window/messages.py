"""What the window says of what happens: a passing word at its foot, and in its banner what is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.requests import Failure
from gui.model.clearance import Refusal
from gui.widgets.banner import Banner
from gui.window.status_line import StatusLine


class Messages(QObject):
    """Says things where they belong.

    Parameters
    ----------
    status : StatusLine
    banner : Banner
    """

    given_up = pyqtSignal()
    """What was asked for has failed or was stopped: nothing goes on."""

    def __init__(self, status: StatusLine, banner: Banner) -> None:
        super().__init__(banner)
        self.status, self.banner = status, banner

    def show_failure(self, failure: Failure, *about: str) -> None:
        """Say what went wrong; all else stays as it was. `about` is a banner's."""
        self.given_up.emit()
        if failure.kind == "cancelled":
            self.status.say("Stopped")
            return
        self.status.say("")
        said = failure.message.startswith(f"{failure.position}:")
        details = [each for each in ("" if said else str(failure.position or ""), failure.detail) if each]
        text = ("text",) if failure.kind in ("compile", "launch") else ()
        self.banner.say(failure.message, failure.advice, "\n".join(details), about=(*about, *text))

    def show_halt(self, process: int | None, start_anew: Callable[[], object]) -> None:
        """Say that the engine's process was stopped from outside, until it goes on or another takes over."""
        if process is None:
            self.banner.over("halt")
            return
        self.banner.say(
            "The engine's process was stopped from outside, and waits.",
            f"Stop starts it anew; or let it go on (`kill -CONT {process}` in a terminal).",
            tone="warn",
            action=("Stop", start_anew),
            about=("halt",),
        )

    def show_mistake(self, error: BaseException) -> None:
        """Say that a part of the window has failed; the rest goes on."""
        self.banner.say(
            f"Lockstep made a mistake: {type(error).__name__}.",
            "It goes on. Please report it with the details.",
            "".join(traceback.format_exception(error)),
        )

    def show_refusal(self, refusal: Refusal, run_all_the_same: Callable[[], object]) -> None:
        """Say why an edited kernel does not run on the GPU, and offer to run it all the same."""
        self.status.say("")
        self.banner.say(
            refusal.message,
            "Mend it, or run it: at worst the GPU's process is started anew.",
            refusal.detail,
            tone="warn",
            action=("Run on the GPU all the same", run_all_the_same),
            about=("run", "text"),
        )
