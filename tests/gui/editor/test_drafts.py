"""Texts that are kept beside the settings, and what else may lie there."""

from __future__ import annotations

import os

import pytest

from gpu.base.errors import InputError
from gui.editor.document import KernelDocument
from gui.editor.drafts import Drafts


def make_edited_file(path, text):
    document = KernelDocument(str(path))
    document.replace(text)
    return document


@pytest.fixture
def folder(qapp, tmp_path):
    return tmp_path / "data" / "drafts"


def test_a_draft_has_the_text_its_file_and_what_it_was_made_from(folder, tmp_path):
    file = tmp_path / "mine.cu"
    file.write_text("int a;\n")
    text = "int b; // ä €\n\n"
    (path,) = Drafts(folder).write_drafts([make_edited_file(file, text)])
    (draft,) = Drafts(folder).read_drafts()
    assert (draft.file, draft.name, draft.text, draft.path) == (str(file), "mine.cu", text, path)
    assert draft.is_edit_of("int a;\n")
    assert not draft.is_edit_of("int c;\n")
    assert path.read_text("utf-8").endswith(text), "it can be read without Lockstep"
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0


def test_every_text_has_a_file_of_its_own_the_oldest_first(folder):
    Drafts(folder).write_drafts([make_edited_file("scan.cu", "one"), make_edited_file("reduction.cu", "two")])
    Drafts(folder).write_drafts([make_edited_file("scan.cu", "three")])
    assert sorted(draft.text for draft in Drafts(folder).read_drafts()) == ["one", "three", "two"]
    for number, text in enumerate(("three", "one", "two")):
        draft = next(draft for draft in Drafts(folder).read_drafts() if draft.text == text)
        os.utime(draft.path, (number, number))
    assert [draft.text for draft in Drafts(folder).read_drafts()] == ["three", "one", "two"]
    Drafts(folder).discard(draft.path for draft in Drafts(folder).read_drafts())
    assert Drafts(folder).read_drafts() == []


def test_what_is_no_draft_is_passed_over_and_left(folder):
    folder.mkdir(parents=True)
    (folder / "a.cu").write_text("int a;")
    (folder / "b.cu").write_text("// A draft of Lockstep's: " + "[" * 100_000)
    (folder / "c.cu").write_text('// A draft of Lockstep\'s: {"file": 3, "origin": ""}\nint a;')
    (folder / "d.cu").write_bytes(b"\xff" * 100)
    (folder / "e.cu").mkdir()
    if os.name == "posix":
        os.mkfifo(folder / "f.cu")
    before = sorted(folder.iterdir())
    assert Drafts(folder).read_drafts() == []
    assert sorted(folder.iterdir()) == before
    assert Drafts(folder / "nowhere").read_drafts() == []


def test_edits_that_cannot_be_kept_are_named_and_the_others_kept(folder, tmp_path):
    folder.mkdir(parents=True)
    long = tmp_path / f"{'n' * 240}.cu"
    with pytest.raises(InputError, match=r"The edits of nnn.*\.cu were not kept\. Cannot write "):
        Drafts(folder).write_drafts([make_edited_file(long, "one"), make_edited_file("scan.cu", "two")])
    assert [draft.text for draft in Drafts(folder).read_drafts()] == ["two"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"The edits of scan\.cu were not kept"):
        Drafts(tmp_path / "file").write_drafts([make_edited_file("scan.cu", "two")])
