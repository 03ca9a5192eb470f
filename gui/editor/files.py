"""Ask for the names of kernel files, and read them."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtWidgets import QWidget

from gpu.base.errors import InputError
from gpu.files.file_access import read_bytes
from gpu.files.sources import MAX_BYTES
from gpu.messages.programs import SCRIPT_SUFFIX
from gui.editor.document import KernelDocument
from gui.widgets.file_dialogs import ALL_FILES, choose_existing_file, choose_new_file

KERNEL_FILE_FILTER = f"CUDA C++ (*.cu *.cuh);;{ALL_FILES}"
SCRIPT_FILE_FILTER = f"Python (*{SCRIPT_SUFFIX});;{ALL_FILES}"


def choose_save_target(parent: QWidget, document: KernelDocument) -> Path | None:
    """Ask where to save a source; return None if the user cancels."""
    path = document.path
    name = path.name if document.is_own else f"my_{path.name}"
    folder = path.parent if document.is_own else None
    files = SCRIPT_FILE_FILTER if document.is_script else KERNEL_FILE_FILTER
    title = f"Save {'script' if document.is_script else 'kernel'} as"
    return choose_new_file(parent, title, name, files, "kernels", folder)


def choose_kernel_file(parent: QWidget) -> Path | None:
    """Ask for a kernel file; return None if the user cancels."""
    return choose_existing_file(parent, "Open kernel", KERNEL_FILE_FILTER, "kernels")


def read_kernel(path: Path) -> str:
    """Return a kernel file's text; raise InputError if it is not a text file."""
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not a text file.") from None
    if "\0" in text:
        raise InputError(f"{path.name} is not a text file.")
    return text
