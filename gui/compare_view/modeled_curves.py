"""Modeled curves, drawn dotted in the plot of measured or recorded curves."""

from __future__ import annotations

from dataclasses import replace

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.modeled_time import name_with_article
from gpu.timing.gpus import find_gpu
from gui.compare_view.sweep import Point, Sweep, SweepPlan
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import TimeModeler
from gui.widgets.basic import button


class ModeledCurves(QObject):
    """A toggle button for modeled curves, and their points.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
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

    def start(self, plan: SweepPlan) -> None:
        """Start modeling the variants of a plan, except those that call a library."""
        self.clear_points()
        variants = [variant for variant in plan.variants if not plan.pattern.variant(variant).library]
        self.sweep.start(replace(plan, variants=variants, gpu=self._modeling.gpu))

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
