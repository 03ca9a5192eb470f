"""Report events to the user: brief messages in the status line, errors and warnings in the banner."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.thread_names import rename_threads
from gpu.messages.events import Failure
from gui.model.clearance import Refusal
from gui.widgets.banner import Banner
from gui.window.status_line import StatusLine


class Messages(QObject):
    """Show messages in the status line and the banner."""

    work_ended = pyqtSignal()
    """The current work failed or was stopped."""

    def __init__(self, status: StatusLine, banner: Banner) -> None:
        super().__init__(banner)
        self.status, self.banner = status, banner

    def show_failure(self, failure: Failure, *topics: str) -> None:
        """Report a failure. `topics` lists the banner topics that can hide it again."""
        self.work_ended.emit()
        if failure.kind == "cancelled":
            self.status.show_message("Stopped")
            return
        self.status.show_message("")
        positioned = failure.message.startswith(f"{failure.position}:")
        details = [each for each in ("" if positioned else str(failure.position or ""), failure.detail) if each]
        text = ("text",) if failure.kind in ("compile", "launch") else ()
        message = rename_threads(failure.message)
        self.banner.show_message(message, failure.advice, "\n".join(details), topics=(*topics, *text))

    def show_halt(self, process: int | None, restart: Callable[[], object]) -> None:
        """Report that the engine process `process` is suspended; None hides the report."""
        if process is None:
            self.banner.hide_topic("halt")
            return
        self.banner.show_message(
            "The engine process was suspended from outside.",
            f"Press Stop to restart it, or resume it with `kill -CONT {process}` in a terminal.",
            tone="warn",
            action=("Stop", restart),
            topics=("halt",),
        )

    def show_internal_error(self, error: BaseException) -> None:
        """Report an internal error of the window; the rest keeps working."""
        self.banner.show_message(
            f"Internal error: {type(error).__name__}.",
            "Lockstep keeps running. Please report this with the details.",
            "".join(traceback.format_exception(error)),
        )

    def ask_to_run(self, question: str, warning: str, run: Callable[[], object]) -> None:
        """Ask whether to run the host code of a program or a script, and say what it can do."""
        self.banner.show_message(
            question,
            warning,
            tone="warn",
            action=("Run", run),
            dismiss_action=("Do not run", lambda: None),
            topics=("user file",),
        )

    def show_refusal(self, refusal: Refusal, run_anyway: Callable[[], object]) -> None:
        """Report why an edited kernel does not run on the GPU, and offer to run it anyway."""
        self.status.show_message("")
        self.banner.show_message(
            refusal.message,
            "Fix it, or run it anyway: at worst the GPU process restarts.",
            refusal.detail,
            tone="warn",
            action=("Run on the GPU anyway", run_anyway),
            topics=("run", "text"),
        )
