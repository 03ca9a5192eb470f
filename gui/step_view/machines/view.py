"""Step view of a run on several devices: its Dask tasks, played one by one, and a timeline of its workers."""

from __future__ import annotations

import re

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPaintEvent
from PyQt6.QtWidgets import QFrame, QScrollArea, QWidget

from gpu.declaration.distributed_program import DistributedProgram
from gpu.distributed.task_layout import format_short_time
from gpu.messages.runs.distributed_run import DistributedRun
from gui.painting.colors import warp_color
from gui.painting.theme import look
from gui.qt.events import StyleListener
from gui.step_view.machines.graph import TaskGraph
from gui.step_view.machines.lanes import KINDS, WorkerLanes, kind_colors
from gui.step_view.machines.moments import MachineMoments
from gui.step_view.time.player import Player
from gui.step_view.time.transport import Transport
from gui.widgets.basic import Card, ElidedLabel, column, label, row
from gui.widgets.view_keys import ViewKeys
from gui.widgets.wrapping import WrappingLayout

MAX_TASKS = 256
"""Maximum number of tasks drawn as cells; for more, only the timeline is shown."""
_TASKS_PER_SECOND = 2.0
"""Tasks per second at speed 1."""
_ZOOM_STEP = 1.5
_BREAKABLE = re.compile(r"(?<=\d) (?=[A-Za-z])|(?<=worker) (?=\d)")
_STAGES = (("Each worker", "local"), ("Exchange", "exchange"), ("Afterwards", "fix_up"))


class _Sample(QWidget):
    """A color sample for the legend: one of `KINDS`, or None for a transfer from another worker."""

    def __init__(self, kind: int | None) -> None:
        super().__init__()
        self._kind = kind
        self.setFixedSize(QSize(14, 10))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        theme = look().theme
        if self._kind is None:
            painter.fillRect(self.rect().adjusted(0, 3, 0, -3), warp_color(theme, 1))
        else:
            painter.fillRect(self.rect(), kind_colors(warp_color(theme, 0))[self._kind])
        painter.end()


class MachinesView(StyleListener, QWidget):
    """A view of runs of a program on several devices: task graph, timeline and description."""

    def __init__(self, program: DistributedProgram) -> None:
        super().__init__()
        self.setAccessibleName("Workers")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.moments: MachineMoments | None = None
        self.player = Player(self, _TASKS_PER_SECOND)
        self.transport = Transport(self.player, "task")
        self.graph, self.lanes = TaskGraph(), WorkerLanes()
        self.description = label("", wrap=True, name="Description of the task")
        self.description.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.too_many_message = label("", "muted", name="Why no cells are shown")
        self._scroll = QScrollArea()
        self._picked: str | None = None
        self._lay_out(program)
        self.player.moved.connect(self._show_moment)
        for canvas in (self.graph, self.lanes):
            canvas.task_picked.connect(self.pick)
        player = self.player
        ViewKeys(
            self,
            {
                "Space": player.toggle,
                "Left": lambda: player.step(-1),
                "Right": lambda: player.step(1),
                "Shift+Left": lambda: player.go_to_border(-1),
                "Shift+Right": lambda: player.go_to_border(1),
                "Home": lambda: player.go_to_end(last=False),
                "End": lambda: player.go_to_end(last=True),
                **{key: lambda: self.lanes.zoom(_ZOOM_STEP) for key in ("+", "=")},
                "-": lambda: self.lanes.zoom(1 / _ZOOM_STEP),
                "F": self.lanes.fit,
            },
            non_repeating=("Space",),
        )

    def _lay_out(self, program: DistributedProgram) -> None:
        tasks = Card("Tasks and transfers", margins=(14, 8, 14, 10))
        tasks.head.addWidget(label("thick lines: between workers", "caption"))
        self.clock = ElidedLabel("caption", "Time since the start", right=True)
        tasks.head.addWidget(self.clock, 1)
        self._scroll.setWidget(self.graph)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        tasks.body.addWidget(self.too_many_message)
        tasks.body.addWidget(self._scroll, 1)
        line = row(self.transport.count, self.transport, 0, self.transport.speed, self.transport.loop)
        tasks.body.addLayout(line)
        self.time_card = time = Card("Timeline", margins=(14, 6, 14, 8))
        legend = WrappingLayout(across=12, down=2)
        kinds: list[tuple[int | None, str]] = [(None, "transfer, in source's color"), *enumerate(KINDS)]
        for kind, name in kinds:
            entry = QWidget()
            entry.setLayout(row(_Sample(kind), label(name, "caption")))
            legend.addWidget(entry)
        time.body.addLayout(legend)
        time.body.addWidget(self.lanes)
        left = column(tasks, time, stretch=0)
        self.side_card = Card("Stages", margins=(14, 8, 14, 12))
        for title, name in _STAGES:
            if text := getattr(program, name):
                self.side_card.body.addWidget(label(title, "caption"))
                self.side_card.body.addWidget(label(text, wrap=True))
        self.side_card.body.addSpacing(8)
        self.task_state = ElidedLabel("card-title", "Task")
        self.side_card.body.addWidget(self.task_state)
        self.side_card.body.addWidget(self.description)
        self.side_card.body.addStretch(1)
        self.setLayout(row(left, self.side_card, stretch=0))
        self._restyle()

    def show_run(self, run: DistributedRun) -> None:
        """Show a run at its end, where the whole picture is visible."""
        self.moments = moments = MachineMoments(run)
        self._picked = None
        simulated = any(worker.device.engine == "simulator" for worker in run.workers)
        self.time_card.title.setText("Timeline, simulated on CPUs" if simulated else "Timeline")
        few = moments.end <= MAX_TASKS
        self._scroll.setVisible(few)
        self.too_many_message.setText("" if few else f"{moments.end} tasks are too many to show as cells.")
        self.too_many_message.setVisible(not few)
        for canvas in (self.graph, self.lanes):
            canvas.open(moments)
        self.player.open(moments.end, moments.borders, moments.end)
        self._show_moment(self.player.moment)

    def pick(self, task: str | None) -> None:
        """Highlight a task until another is picked; picking it again clears the highlight."""
        self._picked = task if task != self._picked else None
        for canvas in (self.graph, self.lanes):
            canvas.pick(self._picked)
        self._describe_task()

    def _show_moment(self, moment: int) -> None:
        if self.moments is None:
            return
        for canvas in (self.graph, self.lanes):
            canvas.show_moment(moment)
        now = self.moments.task_ending_at(moment)
        if now is not None:
            center = self.graph.box(self.moments.layout.tasks[now.task]).center()
            self._scroll.ensureVisible(int(center.x()), int(center.y()), 0, look().px(60))
        duration = self.moments.end_time - self.moments.begin_time
        self.clock.show_text(f"{format_short_time(self.moments.elapsed_time(moment))} of {format_short_time(duration)}")
        self._describe_task()

    def _describe_task(self) -> None:
        """Describe the selected task, or else the task that has just ended."""
        if self.moments is None:
            return
        now = self.moments.task_ending_at(self.player.moment)
        if self._picked is not None:
            now = self.moments.layout.tasks[self._picked].record
        self.task_state.show_text(
            "Selected" if self._picked is not None else "Finished" if now is not None else "Before the first task"
        )
        # No line break between a number and its unit, or between "worker" and its number.
        self.description.setText("" if now is None else _BREAKABLE.sub("\u00a0", self.moments.describe_task(now)))

    def _restyle(self) -> None:
        self.side_card.setFixedWidth(look().px(246))
