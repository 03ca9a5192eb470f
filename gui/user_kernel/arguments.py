"""Form rows for the parameters of a kernel and the variables of its file."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget

from gpu.files.images import READABLE
from gpu.messages.kernels import KernelParameter
from gui.painting.theme import look
from gui.widgets.basic import button, label
from gui.widgets.file_dialogs import choose_existing_file

ELEMENTS = "64"
_SIZE_NAMES = ("n", "size", "count", "length", "num", "len", "elements")
_RESULT_PREFIXES = ("out", "res", "dst", "dest", "bin", "hist", "count", "sum", "total", "c")
_KIND_FIELDS = {
    "random": ("elements", "seed"),
    "arange": ("elements", ""),
    "zeros": ("elements", ""),
    "full": ("elements", "value"),
    "list": ("", "values: 3,1,7"),
    "text": ("", "text of chars"),
    "empty": ("elements", ""),
    "file": ("", "path of a .npy"),
    "texture": ("", "path of an image or .npy"),
    "null": ("", ""),
}
_PLACEHOLDERS = {"variable": "initial value, or 1,2,3, full:9:1 …", "texture": "path of an image or .npy"}
"""Placeholders of the empty field of a variable or texture."""

_TIPS = {
    "random": "Floats from 0 to 1, or integers below 100",
    "arange": "0, 1, 2, …",
    "zeros": "All 0",
    "full": "All equal to one value",
    "list": "These values, separated by commas",
    "text": "The characters without a terminating zero; @PATH reads a file",
    "empty": "Uninitialized, as from cudaMalloc: a read is a finding",
    "file": "The elements of a NumPy file",
    "texture": "A texture object: an image, or a NumPy file of one or two dimensions",
    "null": "A null pointer",
}


def choose_initial_value(parameter: KernelParameter) -> str:
    """Return the initial value of a number; a parameter named like a size gets the arrays' size."""
    if parameter.kind in ("variable", "texture"):
        return ""
    if parameter.kind == "struct":
        return ",".join(["0"] * parameter.parts)
    if parameter.kind == "integer" and parameter.name.lower() in _SIZE_NAMES:
        return ELEMENTS
    return "1"


def choose_initial_kind(parameter: KernelParameter) -> str:
    """Return the initial kind of an array: zeros if it is named like a result, else random values."""
    if parameter.type == "cudaTextureObject_t":
        return "texture"
    is_result = not parameter.read_only and parameter.name.lower().removeprefix("d_").startswith(_RESULT_PREFIXES)
    return "zeros" if is_result else "random"


class ArgumentRow(QWidget):
    """The argument of a parameter: the kind of an array for a pointer, else a value."""

    changed = pyqtSignal()

    def __init__(self, parameter: KernelParameter) -> None:
        super().__init__()
        self.parameter = parameter
        name = label(parameter.name, "code", name=f"Parameter {parameter.name}")
        type = label(parameter.type, "caption")
        name.setMinimumWidth(look().px(64))
        type.setMinimumWidth(look().px(96))
        self.kind = QComboBox()
        self.number = QLineEdit()
        self.extra = QLineEdit()
        self.browse = button("Choose…", "flat", tip="Choose a .npy file")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        for widget in (name, type, self.kind, self.number, self.extra, self.browse):
            layout.addWidget(widget)
        layout.addStretch(1)
        for box in (self.number, self.extra):
            box.setMaximumWidth(look().px(120))
            box.textEdited.connect(lambda _: self.changed.emit())
        self.kind.setAccessibleName(f"{parameter.name}: kind of array")
        self.number.setAccessibleName(f"{parameter.name}: {'elements' if self.is_pointer else 'value'}")
        self.extra.setAccessibleName(f"{parameter.name}: value, seed or path")
        if self.is_pointer:
            for number, kind in enumerate(_KIND_FIELDS):
                self.kind.addItem(kind, kind)
                self.kind.setItemData(number, _TIPS[kind], Qt.ItemDataRole.ToolTipRole)
            self.kind.setCurrentText(choose_initial_kind(parameter))
            self.number.setText(ELEMENTS)
            self.kind.currentIndexChanged.connect(self._on_kind_changed)
            self.browse.clicked.connect(self._choose_file)
        else:
            self.kind.hide()
            self.number.setText(choose_initial_value(parameter))
        if parameter.kind == "texture":
            self.browse.clicked.connect(self._choose_file)
        self._update_fields()

    @property
    def is_pointer(self) -> bool:
        """Whether the parameter is a pointer."""
        return self.parameter.kind == "pointer"

    @property
    def text(self) -> str:
        """The argument in the syntax of `gpu.kernel.simulate.simulate`."""
        number, extra = self.number.text().strip(), self.extra.text().strip()
        if not self.is_pointer:
            return number
        kind = str(self.kind.currentData())
        if kind == "list":
            return extra if "," in extra else f"{extra},"
        if kind == "text":
            return f"text:{self.extra.text()}"
        parts = [
            kind,
            *([number] if _KIND_FIELDS[kind][0] else []),
            *([extra] if _KIND_FIELDS[kind][1] and extra else []),
        ]
        return ":".join(parts)

    def copy_entries(self, source_row: ArgumentRow) -> None:
        """Copy the entries of a row for the same parameter, before its kernel's source changed."""
        if source_row.is_pointer == self.is_pointer:
            self.kind.setCurrentIndex(source_row.kind.currentIndex())
            self.number.setText(source_row.number.text())
            self.extra.setText(source_row.extra.text())

    def _on_kind_changed(self) -> None:
        self.extra.clear()
        self._update_fields()
        self.changed.emit()

    def _update_fields(self) -> None:
        plain = _PLACEHOLDERS.get(self.parameter.kind, "value")
        elements, extra = _KIND_FIELDS[str(self.kind.currentData())] if self.is_pointer else (plain, "")
        self.number.setVisible(bool(elements))
        self.number.setPlaceholderText(elements)
        self.extra.setVisible(bool(extra))
        self.extra.setPlaceholderText(extra)
        self.extra.setMaximumWidth(look().px(120 if extra in ("value", "seed") else 260))
        self.number.setMaximumWidth(look().px(260 if self.parameter.kind in _PLACEHOLDERS else 120))
        self.browse.setVisible("path of" in elements + extra)
        self.extra.setMinimumWidth(look().px(150 if extra and not elements and self.browse.isHidden() else 60))

    def _choose_file(self) -> None:
        images = self.parameter.kind == "texture" or self.kind.currentData() == "texture"
        files = f"NumPy arrays and images (*.npy *{' *'.join(READABLE)})" if images else "NumPy arrays (*.npy)"
        path = choose_existing_file(self, "Open array", files, "arrays")
        if path is not None:
            (self.extra if self.is_pointer else self.number).setText(str(path))
            self.changed.emit()
