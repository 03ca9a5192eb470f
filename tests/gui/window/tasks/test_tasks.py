"""What a lecturer, a student and a programmer do, by real keys and clicks, at three sizes and in both themes.

`LOCKSTEP_TASK_PICTURES=folder make test ARGS="-m 'sweep or not sweep' tests/gui/window/tasks"` saves pictures of all.
"""

from __future__ import annotations

from itertools import product

import pytest

from gui.driving.window_session import open_window, wait_until
from tests.gui.window.tasks.desk import Desk
from tests.gui.window.tasks.table import TASKS
from tests.gui.window.walker import PATIENCE_S

pytestmark = pytest.mark.timeout(300)

SMALL, MEDIUM, LARGE = (1024, 700), (1280, 720), (1920, 1080)
FIRST_TIER = ("01-first-start", "messages", "values")
"""Tasks of the first tier: other tests of it have most actions of the others."""


@pytest.fixture(scope="module")
def models():
    """Model what is visible: tasks read modeled times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gui.model.time_modeler.SETTLE_MS", 350)
        yield


@pytest.fixture(scope="module")
def desk(qapp, models, request):
    with open_window("simulator") as window:
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        yield Desk(window, *request.param)
        for document in window.bench.sources.unsaved:
            document.replace(document.original)


# At the function, before the mark of all tests of the window: pytest-qt reads only the first one.
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=() if task in FIRST_TIER else pytest.mark.sweep) for task in TASKS]
)
@pytest.mark.parametrize(
    "desk",
    [
        pytest.param(
            (size, theme),
            id=f"{size[0]}-{theme}",
            marks=() if (size, theme) == (SMALL, "dark") else pytest.mark.sweep,
        )
        for size, theme in product((SMALL, MEDIUM, LARGE), ("dark", "light"))
    ],
    indirect=True,
    scope="module",
)
def test_a_task(desk, task, tmp_path):
    desk.files = tmp_path
    try:
        for act in TASKS[task]:
            act(desk)
    finally:
        desk.leave()
