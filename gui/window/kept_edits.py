"""Edits that outlive a window that had to go: kept then, and offered at the next start."""

from __future__ import annotations

from pathlib import Path

from gpu.engines.base import KERNELS
from gpu.errors import InputError
from gpu.files.sources import read_source
from gui.editor.document import KernelDocument
from gui.editor.drafts import Draft, Drafts
from gui.model.workbench import Workbench
from gui.own_kernel.opened import OwnKernel
from gui.widgets.banner import Banner
from gui.window.pages import Pages


class KeptEdits:
    """Keeps what is edited, and gives it back.

    Parameters
    ----------
    drafts : Drafts
        Where it is kept.
    bench : Workbench
        Has the texts.
    pages : Pages
    own : OwnKernel
        They show the kernels whose edits come back.
    """

    def __init__(self, drafts: Drafts, bench: Workbench, pages: Pages, own: OwnKernel) -> None:
        self._drafts, self._bench, self._pages, self._own = drafts, bench, pages, own
        self.banner = Banner()
        """Of its own: an offer stays while other things are said."""
        self._kept: dict[str, str] = {}
        self._given_back: set[Path] = set()

    @property
    def lost_in_the_end(self) -> list[KernelDocument]:
        """Return the documents whose texts would go with the window."""
        return [each for each in self._bench.sources.unsaved if self._kept.get(each.file) != each.text]

    @property
    def holds(self) -> bool:
        """Whether this window's edits are kept."""
        return bool(self._kept)

    def keep(self) -> str:
        """Keep what is not saved; return in a sentence why that could not be done, or ""."""
        unsaved = self._bench.sources.unsaved
        try:
            kept = self._drafts.keep(unsaved)
        except InputError as error:
            return error.message
        self._kept = {document.file: document.text for document in unsaved}
        self._drafts.discard(self._given_back - kept)
        self._given_back = kept
        return ""

    def forget(self) -> None:
        """Let go of what was given back: it is saved by now, or not wanted."""
        self._drafts.discard(self._given_back)
        self._given_back = set()

    def offer(self) -> None:
        """Offer what an earlier end kept; where there is nothing, nothing is said."""
        found = self._drafts.found()
        over = [draft for draft in found if _now(self._path(draft)) == draft.text]
        self._drafts.discard(draft.path for draft in over)
        drafts = [draft for draft in found if draft not in over]
        if not drafts:
            return
        names = list(dict.fromkeys(draft.name for draft in drafts))
        changed = dict.fromkeys(draft.name for draft in drafts if not draft.is_of(_now(self._path(draft)) or ""))
        advice = (
            f"Meanwhile {_listed(list(changed))} changed: what is restored knows nothing of that." if changed else ""
        )
        self.banner.say(
            f"Edits of {_listed(names)} from an earlier end were kept.",
            advice,
            tone="neutral",
            action=("Restore", lambda: self._restore(drafts)),
            instead=("Discard", lambda: self._drafts.discard(draft.path for draft in drafts)),
        )

    def _restore(self, drafts: list[Draft]) -> None:
        for draft in drafts:
            if _now(self._path(draft)) is None:
                self.banner.say(
                    f"{draft.name} is not there any more.", f"Its edits stay in {draft.path}.", tone="neutral"
                )
                continue
            self._show(draft)
            self._bench.sources.document(draft.file).replace(draft.text)
            self._given_back.add(draft.path)

    def _show(self, draft: Draft) -> None:
        """Show the page that the text is edited on."""
        if Path(draft.file).is_absolute():
            self._own.open(Path(draft.file))
            return
        for name, pattern in self._bench.patterns.items():
            if draft.file in pattern.files:
                self._pages.choose(name)
                return

    def _path(self, draft: Draft) -> Path | None:
        """Return the file that a draft is of; None where it is none that can be shown."""
        path = Path(draft.file)
        if path.is_absolute():
            return path
        known = any(draft.file in pattern.files for pattern in self._bench.patterns.values())
        return KERNELS / draft.file if known else None


def _now(path: Path | None) -> str | None:
    """Return what a kernel file holds; None where there is none."""
    try:
        return None if path is None else read_source(path)
    except InputError:
        return None


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
