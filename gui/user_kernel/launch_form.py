"""The form of a kernel launch: kernel, grid, block, arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QComboBox, QLineEdit, QVBoxLayout, QWidget

from gpu.base.errors import InputError
from gpu.messages.compiler_options import CompilerOptions, parse_compiler_options
from gpu.messages.kernels import KernelLaunch, KernelParameter, Signature
from gui.painting.theme import look
from gui.user_kernel.arguments import ArgumentRow
from gui.widgets.basic import column, label
from gui.widgets.wrapping import WrappingLayout

_INITIAL_VALUES = {"Grid": "1", "Block": "64", "Shared bytes": "0"}
"""Initial values of the fields if the file contains no launch of the kernel."""


OPTIONS_EXAMPLE = "-I include -D N=16"
OPTIONS_TIP = "-I FOLDER, relative to the file, and -D NAME=VALUE; saved for this file"


class LaunchForm(QWidget):
    """Kernel, grid, block, shared memory, compiler options, and a row for each parameter.

    Parameters
    ----------
    folder : Path
        The kernel file's folder; include folders are relative to it.
    options : str
        The compiler options last used for the file.
    """

    kernel_requested = pyqtSignal()
    """Another kernel, instantiation or options were entered: the kernel's parameters must be looked up."""
    options_changed = pyqtSignal(str)
    changed = pyqtSignal()
    """An extent or an argument has changed."""

    def __init__(self, folder: Path, options: str = "") -> None:
        super().__init__()
        self._folder = folder
        self.signature: Signature | None = None
        self.kernels: tuple[Signature, ...] = ()
        """The kernels of the file, and the selected instantiation."""
        self.rows: list[ArgumentRow] = []
        self.variables: list[ArgumentRow] = []
        self.kernel = QComboBox()
        self.kernel.setEditable(True)
        self.kernel.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.kernel.setMinimumWidth(look().px(170))
        self.grid = QLineEdit(_INITIAL_VALUES["Grid"])
        self.block = QLineEdit(_INITIAL_VALUES["Block"])
        self.shared = QLineEdit(_INITIAL_VALUES["Shared bytes"])
        self.options = QLineEdit(options)
        self.options.setPlaceholderText(OPTIONS_EXAMPLE)
        fields = (
            ("Kernel", self.kernel, "A __global__ function; for a template, an instantiation: reduce<float, 256>"),
            ("Grid", self.grid, "Blocks in x, y and z: 8 or 8,4; initially as launched in the file"),
            ("Block", self.block, "Threads per block in x, y and z: 256 or 16,16"),
            ("Shared bytes", self.shared, "Size of the extern __shared__ array"),
            ("Compiler options", self.options, OPTIONS_TIP),
        )
        line = WrappingLayout(across=14, down=8)
        for text, field, tip in fields:
            heading = label(text, "caption")
            heading.setBuddy(field)
            field.setAccessibleName(text)
            field.setToolTip(tip)
            holder = QWidget()
            holder.setLayout(column(heading, field, spacing=3))
            line.addWidget(holder)
        for narrow, width in ((self.grid, 66), (self.block, 66), (self.shared, 74)):
            narrow.setFixedWidth(look().px(width))
        self.options.setMinimumWidth(look().px(190))
        self.error = label("", "error", wrap=True, name="Error in the launch")
        self.error.hide()
        self.arguments = QVBoxLayout()
        self.arguments.setSpacing(6)
        self.setLayout(column(line, self.arguments, self.error, 0))
        self.kernel.activated.connect(lambda _: self.kernel_requested.emit())
        edit = self.kernel.lineEdit()
        assert edit is not None
        edit.editingFinished.connect(self._on_name_entered)
        self._last_options = options
        self.options.editingFinished.connect(self._on_options_entered)
        for extent in (self.grid, self.block, self.shared):
            extent.textChanged.connect(lambda _: self.changed.emit())

    @property
    def name(self) -> str:
        """The kernel's name as entered."""
        return self.kernel.currentText().strip()

    def parse_compiler_options(self) -> CompilerOptions:
        """Return the include folders and macros; raise InputError if the options are invalid."""
        return parse_compiler_options(self.options.text(), self._folder)

    def build_launch(self, file: str, text: str) -> KernelLaunch:
        """Return the launch; raise InputError if a field is invalid or there is no kernel."""
        options = self.parse_compiler_options()
        if self.signature is None or self.signature.template:
            raise InputError(
                f"{self.name} is a template: name an instantiation, such as {self.name}<float>."
                if self.signature is not None
                else "There is no kernel to launch."
            )
        return KernelLaunch(
            file,
            text,
            self.signature.name,
            _parse_extent("grid", self.grid.text()),
            _parse_extent("block", self.block.text()),
            tuple(row.text for row in self.rows),
            _parse_integer("Shared bytes", self.shared.text() or "0"),
            options.defines,
            {row.parameter.name: row.text for row in self.variables if row.parameter.kind == "variable" and row.text},
            {row.parameter.name: row.text for row in self.variables if row.parameter.kind == "texture" and row.text},
            options.include_dirs,
        )

    def show_kernels(self, kernels: Sequence[Signature]) -> None:
        """List the kernels of a file; the current one stays selected if it still exists."""
        name = self.name
        self.kernels = tuple(kernels)
        self.kernel.blockSignals(True)
        self.kernel.clear()
        for kernel in kernels:
            self.kernel.addItem(kernel.name)
        selected = next((kernel for kernel in kernels if kernel.name == name), kernels[0] if kernels else None)
        self.kernel.setCurrentText(selected.name if selected is not None else "")
        self.kernel.blockSignals(False)
        self._show_signature(selected)

    def show_error(self, message: str) -> None:
        """Show an error; an empty message hides it."""
        self.error.setText(message)
        self.error.setVisible(bool(message))

    def _show_signature(self, signature: Signature | None) -> None:
        same = self.signature is not None and signature is not None and self.signature == signature
        self.signature = signature
        if signature is None:
            self.show_error("There is no kernel to launch.")
        elif signature.template:
            self.show_error(f"{signature.name} is a template: add its arguments, such as {signature.name}<float>.")
        else:
            self.show_error(signature.refusal)
        if same:
            return
        self.rows = self._create_rows(self.rows, signature.parameters if signature else ())
        self.variables = self._create_rows(self.variables, signature.variables if signature else ())
        if signature is not None:
            self._fill_in_launch(signature)

    def _create_rows(self, rows: list[ArgumentRow], parameters: Sequence[KernelParameter]) -> list[ArgumentRow]:
        """Replace the rows by new ones, which keep the entries of parameters with the same name."""
        before = {row.parameter.name: row for row in rows}
        new_rows = [ArgumentRow(parameter) for parameter in parameters]
        for row in new_rows:
            if row.parameter.name in before:
                row.copy_entries(before[row.parameter.name])
            row.changed.connect(self.changed)
            self.arguments.addWidget(row)
        for row in rows:
            self.arguments.removeWidget(row)
            row.deleteLater()
        return new_rows

    def _fill_in_launch(self, signature: Signature) -> None:
        """Fill in the launch found in the file, except fields that the user has edited."""
        launch_fields = (
            (self.grid, signature.grid),
            (self.block, signature.block),
            (self.shared, None if signature.shared_bytes is None else (signature.shared_bytes,)),
        )
        for field, extents in launch_fields:
            if not field.isModified():
                field.setText(
                    _INITIAL_VALUES[field.accessibleName()] if extents is None else ",".join(map(str, extents))
                )

    def _on_options_entered(self) -> None:
        if self.options.text() != self._last_options:
            self._last_options = self.options.text()
            self.options_changed.emit(self._last_options)
            self.kernel_requested.emit()

    def _on_name_entered(self) -> None:
        if self.signature is None or self.name != self.signature.name:
            self.kernel_requested.emit()


def _parse_extent(name: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not 1 <= len(words) <= 3 or not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise InputError(f"The {name} must be one to three positive integers, such as 8 or 16,16, not {text!r}.")
    return tuple(map(int, words))


def _parse_integer(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise InputError(f"{name}: {text!r} is not an integer.")
    return int(text)
