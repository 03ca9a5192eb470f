"""Report events to the user: brief messages in the status line, errors and warnings in the banner."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.requests import Failure
from gui.model.clearance import Refusal
from gui.widgets.banner import Banner
from gui.window.status_line import StatusLine


class Messages(QObject):
    """Show messages in the status line and the banner.

    Parameters
    ----------
    status : StatusLine
    banner : Banner
    """

    given_up = pyqtSignal()
    """The current work failed or was stopped."""

    def __init__(self, status: StatusLine, banner: Banner) -> None:
        super().__init__(banner)
        self.status, self.banner = status, banner

    def show_failure(self, failure: Failure, *about: str) -> None:
        """Report a failure. `about` lists the banner topics that can hide it again."""
        self.given_up.emit()
        if failure.kind == "cancelled":
            self.status.say("Stopped")
            return
        self.status.say("")
        positioned = failure.message.startswith(f"{failure.position}:")
        details = [each for each in ("" if positioned else str(failure.position or ""), failure.detail) if each]
        text = ("text",) if failure.kind in ("compile", "launch") else ()
        self.banner.say(failure.message, failure.advice, "\n".join(details), about=(*about, *text))

    def show_halt(self, process: int | None, start_anew: Callable[[], object]) -> None:
        """Report that the engine process `process` is suspended; None hides the report."""
        if process is None:
            self.banner.over("halt")
            return
        self.banner.say(
            "The engine process was suspended from outside.",
            f"Press Stop to restart it, or resume it with `kill -CONT {process}` in a terminal.",
            tone="warn",
            action=("Stop", start_anew),
            about=("halt",),
        )

    def show_mistake(self, error: BaseException) -> None:
        """Report an internal error of the window; the rest keeps working."""
        self.banner.say(
            f"Internal error: {type(error).__name__}.",
            "Lockstep keeps running. Please report this with the details.",
            "".join(traceback.format_exception(error)),
        )

    def show_refusal(self, refusal: Refusal, run_all_the_same: Callable[[], object]) -> None:
        """Report why an edited kernel does not run on the GPU, and offer to run it anyway."""
        self.status.say("")
        self.banner.say(
            refusal.message,
            "Fix it, or run it anyway: at worst the GPU process restarts.",
            refusal.detail,
            tone="warn",
            action=("Run on the GPU anyway", run_all_the_same),
            about=("run", "text"),
        )
