"""Kernel files: asking for their names, reading and writing them."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtWidgets import QFileDialog, QWidget

from gpu.errors import InputError
from gpu.files.opening import read_bytes
from gpu.files.sources import MOST_BYTES
from gui.editor.document import KernelDocument

KERNEL_FILES = "CUDA C++ (*.cu *.cuh);;All files (*)"


def ask_target(parent: QWidget, document: KernelDocument) -> Path | None:
    """Ask where a text is to be saved; None for nowhere."""
    path = document.path
    suggested = path if document.is_own else Path.home() / f"my_{path.name}"
    name, _ = QFileDialog.getSaveFileName(parent, "Save kernel as", str(suggested), KERNEL_FILES)
    target = Path(name)
    return None if not name else target if target.suffix else target.with_name(target.name + ".cu")


def ask_kernel(parent: QWidget) -> Path | None:
    """Ask for a kernel file; None for none."""
    name, _ = QFileDialog.getOpenFileName(parent, "Open kernel", str(Path.home()), KERNEL_FILES)
    return Path(name) if name else None


def read_kernel(path: Path) -> str:
    """Return a kernel file's text; InputError where it is none."""
    try:
        text = read_bytes(path, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not a text file.") from None
    if "\0" in text:
        raise InputError(f"{path.name} is not a text file.")
    return text
