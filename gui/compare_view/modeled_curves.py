"""Modeled curves, drawn dotted in the plot of measured or recorded curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Pattern
from gpu.messages.modeled_time import name_with_article
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.gpus import find_gpu
from gui.compare_view.sweep import Point, Sweep
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import TimeModeler
from gui.widgets.basic import button


class ModeledCurves(QObject):
    """A toggle button for modeled curves, and their points.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    modeling : TimeModeler
    """

    changed = pyqtSignal()
    """Points were added or removed."""
    runs_requested = pyqtSignal()
    """The button was pressed: the caller must provide the runs to model."""

    def __init__(self, jobs: RequestQueue, modeling: TimeModeler, parent: QObject) -> None:
        super().__init__(parent)
        self._modeling = modeling
        self.points: list[Point] = []
        self.sweep = Sweep(jobs, modeling, self, channel="modeled curves")
        self.sweep.added.connect(self._add)
        self.sweep.ended.connect(self.changed)
        self.button = button("+ modeled", "segment")
        self.button.setCheckable(True)
        self.button.toggled.connect(self._on_toggled)
        self.name_gpu()

    @property
    def enabled(self) -> bool:
        """Whether modeled curves are shown."""
        return self.button.isChecked() and not self.button.isHidden()

    def name_gpu(self) -> None:
        """Name the GPU in the button's tooltip."""
        gpu = find_gpu(self._modeling.gpu)
        self.button.setToolTip(f"Add the times modeled for {name_with_article(gpu.name)}, dotted")

    def format_legend(self, other_curves: str) -> str:
        """Return the legend; `other_curves` describes the other curves."""
        gpu = find_gpu(self._modeling.gpu)
        model = next((point.modeled for point in self.points if point.modeled is not None), None)
        accuracy = "" if model is None else f"; {model.accuracy}"
        return f"●  {other_curves}    ○  dotted: modeled for {name_with_article(gpu.name)}{accuracy}"

    def start(
        self,
        pattern: Pattern,
        variants: Sequence[str],
        sizes: Sequence[int],
        params: Mapping[str, Any],
        inputs: Mapping[str, SharedArray],
    ) -> None:
        """Start modeling variants.

        Parameters
        ----------
        pattern : Pattern
        variants : sequence of str
            Variants that call a library are skipped.
        sizes : sequence of int
            Values of n, or sides of an image in pixels.
        params : mapping
            The other parameters.
        inputs : mapping
            Handles of an image; empty for generated inputs.
        """
        self.clear_points()
        modelable_variants = [variant for variant in variants if not pattern.variant(variant).library]
        self.sweep.start(pattern, modelable_variants, list(sizes), params, {}, inputs, gpu=self._modeling.gpu)

    def clear_points(self) -> None:
        """Stop modeling, and clear the points."""
        self.sweep.stop()
        if self.points:
            self.points = []
            self.changed.emit()

    def _on_toggled(self, checked: bool) -> None:
        if checked:
            self.runs_requested.emit()
        else:
            self.clear_points()
            self.changed.emit()

    def _add(self, point: Point) -> None:
        self.points.append(point)
        self.changed.emit()
