"""A window with a host that only pretends, so that a test decides what the engine answers and when."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PyQt6 import sip
from PyQt6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PyQt6.QtGui import QCursor, QMouseEvent
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gpu.base.errors import Diagnostic, InputError
from gpu.engines.base import Device, PhaseTimes
from gpu.engines.null import NullEngine
from gpu.lessons import handlers  # noqa: F401 - registers them
from gpu.messages.bodies import (
    AdvanceBodies,
    BodiesResult,
    BodyFigures,
    ConservedQuantities,
    LoadBodies,
    PickBody,
    PickedBody,
    SaveBodies,
)
from gpu.messages.events import Failure, Ready
from gpu.messages.files import LoadArray, LoadImage, LoadText, SaveArray
from gpu.messages.kernels import CheckSource, CountKernel, DescribeKernels, RunKernel, StepKernel
from gpu.messages.lessons import JudgeTask, ReadLessons, ShowStep, StepFailure
from gpu.messages.modeled_time import LIMITS, KernelTime, LineCode, ModeledTime, ModelKernel, ModelPattern
from gpu.messages.programs import RunProgram
from gpu.messages.requests import Acknowledgment, ArrayResult
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.atomics import StudyAtomics
from gpu.messages.runs.pattern_runs import (
    CheckPattern,
    CountPattern,
    Deviation,
    Report,
    RunPattern,
    RunResult,
    Throughput,
)
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.runs.writer import FindWriter, StepWriter
from gpu.messages.shared_arrays import SharedFolder
from gpu.messages.verdicts import Check, Mistake
from gpu.patterns import find_pattern
from gpu.patterns.nbody.files import read_bodies
from gpu.patterns.nbody.presets import generate
from gpu.run.handlers.execution import execute_request, to_failure
from gpu.timing.gpus import find_gpu
from gpu.timing.validation import ErrorBound
from tests.engine_forks import fork_engines

DEVICE = Device("null", "no device", "null", 1024, 49152, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Hold what a test has left on screen: it is painted once more before it is closed.

    Nobody else holds a plot when its test has returned: Python's collector, which may come while it is painted, took
    its axis from under the painter.
    """
    before = _find_windows()
    try:
        return (yield)
    finally:
        numbers = set(map(id, before))  # two widgets are compared within Qt: of many this takes long
        _SHOWN[:] = [widget for widget in _find_windows() if id(widget) not in numbers]


def _find_windows() -> list[QWidget]:
    return [] if QApplication.instance() is None else QApplication.topLevelWidgets()


_SHOWN = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Hide what a test has left on screen, and fail where a later test would not get its own keys and clicks."""
    result = yield
    for widget in _SHOWN:
        if not sip.isdeleted(widget) and widget.parent() is None:
            widget.hide()
    if QApplication.instance() is not None and (left := _release_input()):
        pytest.fail(", ".join(left), pytrace=False)
    return result


def _release_input():
    """Close an open dialog, and release mouse and keyboard; return what a test has left open, pressed or grabbed."""
    left = []
    if (dialog := QApplication.activeModalWidget()) is not None:
        dialog.close()
        left.append(f"a {type(dialog).__name__} is left open")
    for grabber, release in ((QWidget.mouseGrabber(), "releaseMouse"), (QWidget.keyboardGrabber(), "releaseKeyboard")):
        if grabber is not None:
            getattr(grabber, release)()
            left.append(f"a {type(grabber).__name__} is left without {release}")
    for mouse_button in (each for each in PRESSABLE if each in QApplication.mouseButtons()):
        QTest.mouseRelease(QPushButton(), mouse_button)
        left.append(f"the {mouse_button.name} is left pressed")
    return left


PRESSABLE = (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton)
PATIENCE_MS = 60_000


class PatientBot(QtBot):
    """Waits for a state as long as a machine may need on which much else runs; what never comes fails all the same."""

    def waitUntil(self, callback, *, timeout=PATIENCE_MS):
        super().waitUntil(callback, timeout=max(timeout, PATIENCE_MS))

    def waitSignal(self, signal, *, timeout=PATIENCE_MS, **options):
        return super().waitSignal(signal, timeout=timeout, **options)

    def waitExposed(self, widget, *, timeout=PATIENCE_MS):
        return super().waitExposed(widget, timeout=max(timeout, PATIENCE_MS))

    @staticmethod
    def mouseDClick(widget, button, modifier=Qt.KeyboardModifier.NoModifier, pos=None):
        """Release the button in the end, as a hand does: QTest's double click leaves it pressed."""
        pos = widget.rect().center() if pos is None else pos
        QtBot.mouseDClick(widget, button, modifier, pos)
        QtBot.mouseRelease(widget, button, modifier, pos)

    @staticmethod
    def mouseMove(widget, pos=None, delay=-1):
        """Move until the widget hears of it, at most ten times; then send it the event, as QTest sends clicks.

        Qt sends no event of a cursor that a test before left there, and sends it elsewhere where a layout that waits
        for its turn moves the widget, or a window that a test before left lies above it.
        """
        pos = widget.rect().center() if pos is None else pos
        spy = _MouseSpy(widget)
        QApplication.instance().installEventFilter(spy)
        try:
            for _ in range(10):
                QApplication.processEvents()
                if QCursor.pos() == widget.mapToGlobal(pos):
                    QtBot.mouseMove(widget, pos + QPoint(1, 0), delay)
                    spy.heard = False
                QtBot.mouseMove(widget, pos, delay)
                if spy.heard:
                    return
            if widget.hasMouseTracking():
                moved = QMouseEvent(
                    QEvent.Type.MouseMove,
                    QPointF(pos),
                    QPointF(widget.mapToGlobal(pos)),
                    Qt.MouseButton.NoButton,
                    Qt.MouseButton.NoButton,
                    Qt.KeyboardModifier.NoModifier,
                )
                QApplication.sendEvent(widget, moved)
        finally:
            QApplication.instance().removeEventFilter(spy)


class _MouseSpy(QObject):
    """Whether a widget, or one inside it, was told that the mouse moved."""

    def __init__(self, widget):
        super().__init__()
        self._widget = widget
        self.heard = False

    def eventFilter(self, target, event):
        if event.type() == QEvent.Type.MouseMove and isinstance(target, QWidget):
            self.heard |= target is self._widget or self._widget.isAncestorOf(target)
        return False


@pytest.fixture
def qtbot(qapp, request):
    return PatientBot(request)


_CARRIED_OUT = (DescribeKernels, RunKernel, CountKernel, StepKernel, FindWriter, StepWriter, RunProgram)
"""What is as quick as an answer that is made up."""

SHELVES = {}
"""Lockstep's own lessons, once they have been read."""
STUDIES = {}
"""Studies of atomics that were made, by what was counted."""


class FakeHost:
    """Has the shape of EngineHost. It answers at once unless `answers_later`; then `answer` lets the oldest go."""

    instances: ClassVar[list[FakeHost]] = []

    def __init__(self, engine, deliver):
        self.folder = SharedFolder()
        self.engine, self.deliver = engine, deliver
        self.requests = []
        self.pending = {}
        self.answers_later = False
        self.cancels = 0
        self.closed = False
        self.updates_lost = 0
        self.simulations = {}
        self.step_ms, self.measuring_ms = 0.1, 0.1
        FakeHost.instances.append(self)

    def start(self):
        self.deliver(0, Ready(DEVICE))

    def submit(self, request):
        self.requests.append(request)
        number = len(self.requests)
        self.pending[number] = request
        if not self.answers_later:
            self.answer()
        return number

    def answer(self, event=None):
        number = next(iter(self.pending))
        request = self.pending.pop(number)
        self.deliver(number, event or self.result_of(request))

    def answer_all(self):
        while self.pending:
            self.answer()

    def cancel(self):
        self.cancels += 1
        for number in list(self.pending):
            del self.pending[number]
            self.deliver(number, Failure("cancelled", "Stopped."))
        self.deliver(0, Ready(DEVICE))

    def close(self):
        self.closed = True
        self.folder.close()

    def runs(self, pattern=None):
        return [r for r in self.requests if isinstance(r, RunPattern) and pattern in (None, r.pattern)]

    def share_array(self, values):
        return self.folder.put(np.asarray(values))

    def result_of(self, request):
        if isinstance(request, LoadImage):
            return self._load(Path(request.path))
        if isinstance(request, CheckSource):
            return find_marks(request.text, "BAD")
        if isinstance(request, CheckPattern):
            found = find_marks("".join(request.sources.values()), "RACE")
            mistakes = tuple(Mistake("race", (each.line,)) for each in found)
            return Check(mistakes, found, input="n = 4999", orders=("shuffle:1", "shuffle:2"))
        if isinstance(request, CountPattern):
            place = [each.name for each in find_pattern(request.pattern).variants].index(request.variant)
            return RunCounts("n = 8", 8, "element", 64, requests=1, sectors=place + 2)
        if isinstance(request, ModelPattern | ModelKernel):
            return make_modeled_time(request)
        if isinstance(
            request, DescribeKernels | RunKernel | CountKernel | StepKernel | FindWriter | StepWriter | RunProgram
        ):
            try:
                return execute_request(NullEngine(), request, self.folder, lambda progress: None)
            except Exception as error:
                return to_failure(error)
        if isinstance(request, ReadLessons | ShowStep | JudgeTask | StepFailure):
            return self._answer_lesson(request)
        if isinstance(request, StepPattern):
            return Failure("input", "Nothing is recorded here.")
        if isinstance(request, SaveArray):
            Path(request.path).write_bytes(b"saved")
            return Acknowledgment()
        if isinstance(request, StudyAtomics):
            shapes = tuple((name, handle.shape) for name, handle in request.inputs.items())
            key = (request.params["of"], request.params["text"], shapes)
            if key not in STUDIES:
                STUDIES[key] = execute_request(NullEngine(), request, self.folder, lambda progress: None)
            return STUDIES[key]
        if isinstance(request, LoadText):
            return ArrayResult({"text": self.share_array(np.frombuffer(Path(request.path).read_bytes(), np.uint8))})
        if isinstance(request, LoadArray):
            return self._load_values(Path(request.path))
        if isinstance(request, LoadBodies | SaveBodies | AdvanceBodies):
            return self._run_bodies(request)
        if isinstance(request, PickBody):
            # Of the left half of the picture the one body, of the right none.
            picked = 3 if request.x < request.width / 2 else -1
            return PickedBody({"bodies": self.share_array(generate("plummer", 300, 0))}, picked)
        pattern = find_pattern(request.pattern)
        if pattern.input_kind(pattern.check(request.params)) != "image":
            return self._run_array(request)
        image = request.inputs["image"].open()
        if request.pattern == "histogram":
            bins = request.params.get("bins", 256)
            planes = image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, 2, 0)
            counts = np.stack([np.bincount(p.ravel().astype(int) * bins // 256, minlength=bins) for p in planes])
            wrong = bool(find_pattern("histogram").variant(request.variant).deliberate_error)
            if wrong:
                counts[0, counts[0].argmax()] -= 7
            arrays = {"counts": self.share_array(counts.astype(np.uint32)), "picture": self.share_array(image)}
        else:
            wrong = False
            darker = image // 2
            arrays = {
                "result": self.share_array(darker.astype(np.float32)),
                "image": self.share_array(darker),
                "picture": self.share_array(darker),
            }
        return RunResult(arrays, self._report(request, wrong))

    def _answer_lesson(self, request):
        if not isinstance(request, ReadLessons) or request not in SHELVES:
            try:
                result = execute_request(NullEngine(), request, self.folder, lambda progress: None)
            except Exception as error:
                return to_failure(error)
            if request != ReadLessons():
                return result
            SHELVES[request] = result
        return SHELVES[request]

    def _report(self, request, wrong=False):
        deviation = Deviation(7.0 if wrong else 0.0, 0.1 if wrong else 0.0) if request.verify else None
        return Report(
            request.pattern, DEVICE.engine, "null", "no device", request.variant, PhaseTimes(1.0, 20.0, 0.5),
            Throughput(12.5, "Mpixel/s"), deviation, None if deviation is None else not wrong,
        )  # fmt: skip

    def _run_array(self, request):
        try:
            inputs = {name: handle.open() for name, handle in request.inputs.items()}
            arrays = (_reference_result if inputs else _reference_of_params)(request.pattern, request.params, inputs)
        except InputError as error:
            return Failure("input", error.message, error.advice)
        return RunResult({name: self.share_array(values) for name, values in arrays.items()}, self._report(request))

    def _run_bodies(self, request):
        if isinstance(request, SaveBodies):
            Path(request.path).write_text(f"simulation {request.simulation}")
            return Acknowledgment()
        if isinstance(request, LoadBodies):
            try:
                return ArrayResult({"bodies": self.share_array(read_bodies(request.path))})
            except InputError as error:
                return to_failure(error)
        steps, time = self.simulations.get(request.simulation, (0, 0.0))
        steps, time = steps + request.steps, time + request.steps * request.params["dt"]
        self.simulations[request.simulation] = steps, time
        count = request.params["bodies"] if request.bodies is None else request.bodies.shape[0]
        conserved = ConservedQuantities(0.5, -1.0, -0.5, 1e-5 * steps, (0.0, 0.0, 0.0), (0.0, 0.0, 2.0))
        figures = BodyFigures(
            count, time, steps, self.step_ms * request.steps, 5e9 if request.steps else 0.0,
            100.0 if request.steps else 0.0, 2.0, "null", conserved=conserved if request.measure else None,
            measuring_ms=self.measuring_ms if request.measure else 0.0,
        )  # fmt: skip
        picture = np.full((request.height, request.width, 3), 12 * steps % 256, np.uint8)
        return BodiesResult({"picture": self.share_array(picture)} if picture.size else {}, figures)

    def _load_values(self, path):
        if not path.is_file():
            return Failure("input", f"There is no file {path}.")
        values = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, ndmin=1)
        return ArrayResult({"values": self.share_array(values)})

    def _load(self, path):
        if not path.is_file() or path.suffix == ".pdf":
            return Failure("input", f"{path.name} is not an image that can be read.", "Open a PGM.", "no magic number")
        shape = (30, 40) if path.suffix == ".pgm" else (30, 40, 3)
        values = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
        handles = {"image": values, "maxval": np.array(255, np.uint32), "picture": values}
        return ArrayResult({name: self.share_array(array) for name, array in handles.items()})


def make_modeled_time(request):
    """Return a time that a request's rung and size tell from others: it waits for memory, then for shared memory."""
    place, n = 0, 1
    if isinstance(request, ModelPattern):
        pattern = find_pattern(request.pattern)
        place = [each.name for each in pattern.variants].index(request.variant)
        n = pattern.count_elements(pattern.check(request.params)) or 64
    name = find_gpu(request.gpu).name
    body = (place + 1) * n / 1000 / request.gpu_scaling.bandwidth
    limits = {**dict.fromkeys(LIMITS, 0.0), "DRAM": body, "shared": place * n / 4000, "launch": 3.0}
    block = request.launch.block if isinstance(request, ModelKernel) else (256, 1, 1)
    kernel = KernelTime("kernel", (n,), block, 1, body, 32, 0, 8, 64, "warps")
    known = ErrorBound(0.25, 40, "", "2026-11-22") if find_gpu(request.gpu).validated else None
    return ModeledTime(
        request.gpu, name, find_gpu(request.gpu).validated, body + 3 + len(getattr(request, "sources", ())), limits,
        "DRAM", "waits for memory", (kernel,), 1, 10.0 * n, 8.0 * n, 16.0 * n, "sass", known, True, 2.0 * n, 4.0 * n,
        lines={"scan.cu": {50: LineCode(12, 3, {"IADD3": 9, "LDL": 3})}},
    )  # fmt: skip


def _reference_result(name, params, given):
    """Return all that a run of a pattern gives, as the reference says."""
    pattern = find_pattern(name)
    params = pattern.check(params)
    inputs = pattern.prepare_inputs(given, params, 0)
    result = pattern.reference(inputs, params)
    return {pattern.result: result, **pattern.present(inputs, params, {"keys": result, pattern.result: result})}


REFERENCES = {}
"""What was run on input that is made from parameters, by these: every window begins with some of it."""


def _reference_of_params(name, params, given):
    key = (name, repr(sorted(params.items())))
    if key not in REFERENCES:
        REFERENCES[key] = _reference_result(name, params, given)
    return REFERENCES[key]


def find_marks(text, word):
    """Return a diagnostic for each line that holds a word."""
    places = ((number, line.find(word) + 1) for number, line in enumerate(text.split("\n"), 1))
    return tuple(Diagnostic(number, at, at + len(word), "error", f"{word} {number}") for number, at in places if at)


@pytest.fixture(autouse=True)
def _reset_look():
    """Leave no theme and no size of text behind: what is laid out next goes by them."""
    from gui.painting.theme import look, set_look

    before = look()
    yield
    set_look(before)


FOREVER_MS = 3_600_000


@pytest.fixture(scope="package", autouse=True)
def _no_work_at_rest():
    """Let no window make pages, rehearse or model while it rests: that takes seconds, and when is left to chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gui.window.pages.preparation.IDLE_MS", FOREVER_MS)
        patch.setattr("gui.window.pages.preparation.SIMULATOR_DELAY_MS", FOREVER_MS)
        patch.setattr("gui.model.time_modeler.SETTLE_MS", FOREVER_MS)
        yield


@pytest.fixture(scope="package", autouse=True)
def _engine_forks(engine_context):
    """Have engines' processes forked."""
    with fork_engines(engine_context):
        yield


@pytest.fixture(scope="module", autouse=True)
def _collects_recordings():
    """Free the recordings of closed windows, whose cycles keep files open: a large process seldom collects them."""
    yield
    if sys.platform.startswith("linux") and len([*Path("/proc/self/fd").iterdir()]) > 200:
        gc.collect()
        gc.freeze()  # the next file's collection looks only through what is new


@pytest.fixture
def store(tmp_path):
    return tmp_path / "settings.json"


@pytest.fixture
def saved_settings(store):
    from gui.model.settings import SavedSettings

    return SavedSettings(store)


@pytest.fixture
def idle_delays_ms():
    """How long a window rests before it makes a page that nobody has seen, and then before it rehearses: for ever."""
    return FOREVER_MS, FOREVER_MS


@pytest.fixture
def model_delay_ms():
    """How long what is seen rests before it is modeled: for ever, but where that is what is tested."""
    return FOREVER_MS


@pytest.fixture
def drafts(tmp_path):
    from gui.editor.drafts import Drafts

    return Drafts(tmp_path / "drafts")


@pytest.fixture
def make_window(qtbot, saved_settings, drafts, monkeypatch, idle_delays_ms, model_delay_ms):
    from gui.window.main_window import MainWindow

    for name, interval in zip(("IDLE_MS", "SIMULATOR_DELAY_MS"), idle_delays_ms, strict=True):
        monkeypatch.setattr(f"gui.window.pages.preparation.{name}", interval)
    monkeypatch.setattr("gui.model.time_modeler.SETTLE_MS", model_delay_ms)
    FakeHost.instances = []
    windows = []

    def make(saved_settings=saved_settings, **options):
        window = MainWindow(saved_settings, "null", factory=FakeHost, survey=list, drafts=drafts, **options)
        windows.append(window)
        with qtbot.waitExposed(window):
            window.show()
        return window

    yield make
    for window in windows:
        close_window(window)
        # Its connections hold it together: without this, hundreds of windows and their recordings are there in the end.
        sip.delete(window)


def close_window(window):
    """Close a window without its question about edited kernels."""
    for document in window.bench.sources.unsaved:
        document.replace(document.original)
    window.close()


@pytest.fixture
def first_pattern():
    """The pattern whose page a window opens: a test of another one needs no page of the convolution before."""
    return "convolution"


@pytest.fixture
def window(qtbot, make_window, saved_settings, gray, first_pattern):
    """A window that has opened an image and run its first pattern."""
    saved_settings.pattern = first_pattern
    made = make_window()
    made.bench.open_image(gray)
    wait_until_idle(qtbot, made)
    made.host = made.jobs._host
    return made


def wait_until_idle(qtbot, window):
    """Wait until nothing runs, waits or is about to be asked for."""
    bench = window.bench

    def idle():
        assert not window.jobs._queued
        assert window.jobs._running is None
        assert not bench.pending
        assert bench.pattern_name in bench.outcomes

    qtbot.waitUntil(idle, timeout=10_000)


@pytest.fixture
def gray(tmp_path):
    path = tmp_path / "gray.pgm"
    path.write_bytes(b"only its name counts")
    return path


@pytest.fixture
def color(tmp_path):
    path = tmp_path / "color.png"
    path.write_bytes(b"only its name counts")
    return path
