"""Recovery of unsaved edits: saved as drafts when the window must close, and offered at the next start."""

from __future__ import annotations

from pathlib import Path

from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.files.sources import read_source
from gui.editor.document import KernelDocument
from gui.editor.drafts import Draft, Drafts
from gui.model.workbench import Workbench
from gui.user_kernel.user_file import UserFile
from gui.widgets.banner import Banner
from gui.window.pages.page_stack import Pages


class DraftRecovery:
    """Save unsaved edits as drafts, and restore them.

    Parameters
    ----------
    drafts : Drafts
        The draft files.
    bench : Workbench
        Has the edited sources.
    pages : Pages
        Shows a restored kernel file of the project.
    user_file : UserFile
        Shows a restored kernel file from outside the project.
    """

    def __init__(self, drafts: Drafts, bench: Workbench, pages: Pages, user_file: UserFile) -> None:
        self._drafts, self._bench, self._pages, self._user_file = drafts, bench, pages, user_file
        self.banner = Banner()
        """A separate banner, so that the offer stays while other messages are shown."""
        self._drafted_texts: dict[str, str] = {}
        self._restored_paths: set[Path] = set()

    @property
    def undrafted_documents(self) -> list[KernelDocument]:
        """The documents with edits that are neither saved nor drafted, so that closing the window would lose them."""
        return [each for each in self._bench.sources.unsaved if self._drafted_texts.get(each.file) != each.text]

    @property
    def has_drafts(self) -> bool:
        """Whether this window's edits are saved as drafts."""
        return bool(self._drafted_texts)

    def save_drafts(self) -> str:
        """Save unsaved edits as drafts; return the reason for a failure as a sentence, or ""."""
        unsaved = self._bench.sources.unsaved
        try:
            paths = self._drafts.write_drafts(unsaved)
        except InputError as error:
            return error.message
        self._drafted_texts = {document.file: document.text for document in unsaved}
        self._drafts.discard(self._restored_paths - paths)
        self._restored_paths = paths
        return ""

    def discard_restored(self) -> None:
        """Discard the drafts that were restored: they are saved by now, or not wanted."""
        self._drafts.discard(self._restored_paths)
        self._restored_paths = set()

    def offer_drafts(self) -> None:
        """Offer to restore the drafts of an earlier session, if there are any."""
        found = self._drafts.read_drafts()
        obsolete = [draft for draft in found if _read_text(self._find_path(draft)) == draft.text]
        self._drafts.discard(draft.path for draft in obsolete)
        drafts = [draft for draft in found if draft not in obsolete]
        if not drafts:
            return
        names = list(dict.fromkeys(draft.name for draft in drafts))
        changed = dict.fromkeys(
            draft.name for draft in drafts if not draft.is_edit_of(_read_text(self._find_path(draft)) or "")
        )
        advice = ""
        if changed:
            advice = f"{_join_names(list(changed))} changed since then: the edits do not include these changes."
        self.banner.show_message(
            f"Edits of {_join_names(names)} from an earlier session were kept.",
            advice,
            tone="neutral",
            action=("Restore", lambda: self._restore_drafts(drafts)),
            dismiss_action=("Discard", lambda: self._drafts.discard(draft.path for draft in drafts)),
        )

    def _restore_drafts(self, drafts: list[Draft]) -> None:
        for draft in drafts:
            if _read_text(self._find_path(draft)) is None:
                self.banner.show_message(
                    f"{draft.name} no longer exists.", f"Its edits stay in {draft.path}.", tone="neutral"
                )
                continue
            self._show_page(draft)
            self._bench.sources.document(draft.file).replace(draft.text)
            self._restored_paths.add(draft.path)

    def _show_page(self, draft: Draft) -> None:
        """Show the page where the draft's file is edited."""
        if Path(draft.file).is_absolute():
            self._user_file.open(Path(draft.file))
            return
        for name, pattern in self._bench.patterns.items():
            if draft.file in pattern.kernel_files:
                self._pages.choose_pattern(name)
                return

    def _find_path(self, draft: Draft) -> Path | None:
        """Return the file of a draft, or None if no page can show it."""
        path = Path(draft.file)
        if path.is_absolute():
            return path
        is_pattern_kernel = any(draft.file in pattern.kernel_files for pattern in self._bench.patterns.values())
        return KERNELS / draft.file if is_pattern_kernel else None


def _read_text(path: Path | None) -> str | None:
    """Return the current text of a kernel file, or None if it cannot be read."""
    try:
        return None if path is None else read_source(path)
    except InputError:
        return None


def _join_names(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
