"""What is seen is modeled for the GPU that is chosen, beside all else, and what came of it is remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.engines.base import Device
from gpu.errors import InputError
from gpu.messages.modeled import ModeledTime
from gpu.messages.requests import Failure, ModelKernel, ModelPattern, Result
from gpu.timing.gpus import find_gpu, keys
from gui.model.counting import key_of
from gui.model.jobs import Jobs
from gui.qt.later import after

DEFAULT_GPU = "h200"
REST_MS = 350
"""How long what is seen rests before it is modeled."""
_STALE_S = 2.0
"""Seconds after which a model is stopped that nobody waits for any more."""
_REMEMBERED = 400

ModelRequest = ModelPattern | ModelKernel
Take = Callable[[ModeledTime | Failure], None]


class Modeling(QObject):
    """Has runs modeled by a process of its own: neither runs, nor typing, nor stepping wait for it.

    Parameters
    ----------
    jobs : Jobs
        The queue of that process, which starts when it is first asked.
    gpu : str
        The GPU that was chosen before; "" where none was.
    """

    gpu_changed = pyqtSignal(str)
    """The key of the GPU that times are modeled for now."""

    def __init__(self, jobs: Jobs, gpu: str, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._chosen = gpu
        self._here = ""
        self._known: OrderedDict[Hashable, ModeledTime | Failure] = OrderedDict()

    @property
    def gpu(self) -> str:
        """Return the key of the GPU that times are modeled for: the one that is chosen, or is here, or a default."""
        return self._chosen or self._here or DEFAULT_GPU

    @property
    def here(self) -> str:
        """Return the key of the GPU that is here; "" where there is none that is described."""
        return self._here

    def choose(self, gpu: str) -> None:
        """Model for another GPU."""
        self._change(gpu, self._here)

    def take_device(self, device: Device) -> None:
        """Learn which GPU is here."""
        here = ""
        if device.executor == "gpu":
            try:
                here = find_gpu(device.name).key
            except InputError:
                here = ""
        self._change(self._chosen, here)

    def _change(self, chosen: str, here: str) -> None:
        before, self._chosen, self._here = self.gpu, chosen, here
        if self.gpu != before:
            self.gpu_changed.emit(self.gpu)

    @property
    def jobs(self) -> Jobs:
        """Return the queue of the process, which is started."""
        if not self._jobs.started:
            self._jobs.start("simulator")
        return self._jobs

    @property
    def started(self) -> bool:
        """Whether there is a process."""
        return self._jobs.started

    def known(self, request: ModelRequest) -> ModeledTime | Failure | None:
        """Return what came of such a request."""
        return self._known.get(_key(request))

    def ask(self, channel: str, request: ModelRequest, take: Take, priority: int = 0) -> None:
        """Have something modeled; a newer request of the channel takes its place while it waits."""
        known = self.known(request)
        if known is not None:
            self.drop(channel)
            take(known)
            return

        def done(event: Result | Failure) -> None:
            found = event if isinstance(event, Failure) else event.modeled
            assert found is not None
            if isinstance(found, ModeledTime) or found.kind in ("input", "compile", "launch"):
                self._known[_key(request)] = found
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
            take(found)

        if self._jobs.age(channel) > _STALE_S:
            self._jobs.stop()
        self.jobs.post(channel, request, done, priority=priority)

    def drop(self, channel: str) -> None:
        """Forget what a channel waits for, and stop it where it has been running for long."""
        self._jobs.drop(channel)
        if self._jobs.age(channel) > _STALE_S:
            self._jobs.stop()

    def close(self) -> None:
        """End the process."""
        self._jobs.close()


class FollowedModel(QObject):
    """Keeps the modeled time of what is seen: whatever that becomes, the one before is taken back at once.

    Parameters
    ----------
    modeling : Modeling
    request : callable
        Returns what is seen now; None where there is nothing to model.
    busy : callable
        Whether something runs that a model would slow down.
    """

    changed = pyqtSignal(object)
    """ModeledTime, or the Failure that says why there is none; None while it is to come."""

    def __init__(
        self,
        modeling: Modeling,
        request: Callable[[], ModelRequest | None],
        busy: Callable[[], bool],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._modeling, self._request, self._busy = modeling, request, busy
        self._channel = f"model {id(self)}"
        self._shown: Hashable = None
        self._wanted: Hashable = None
        self._rest = after(REST_MS, self._ask, self)
        modeling.gpu_changed.connect(self.follow)

    @property
    def under_way(self) -> bool:
        """Whether a time is to come."""
        return self._rest.isActive() or self._wanted is not None

    def follow(self) -> None:
        """Take back what is shown if it is of something else by now, and model what is seen once that rests."""
        request = self._request()
        key = None if request is None else _key(request)
        if key is not None and key in (self._shown, self._wanted):
            return
        known = None if request is None else self._modeling.known(request)
        if known is not None:
            self._stop()
            self._show(key, known)
            return
        if self._shown is not None or self._wanted is not None:
            self.forget()
        self._rest.start()

    def forget(self) -> None:
        """Show nothing, and model nothing until it is asked to follow again."""
        self._stop()
        self._shown = None
        self.changed.emit(None)

    def _stop(self) -> None:
        self._rest.stop()
        if self._wanted is not None:
            self._wanted = None
            self._modeling.drop(self._channel)

    def _show(self, key: Hashable, found: ModeledTime | Failure) -> None:
        self._wanted, self._shown = None, key
        self.changed.emit(found)

    def _ask(self) -> None:
        if self._busy():
            self._rest.start()
            return
        request = self._request()
        if request is None:
            return
        key = self._wanted = _key(request)

        def take(found: ModeledTime | Failure) -> None:
            if key != self._wanted:
                return
            if isinstance(found, Failure) and found.kind == "cancelled":
                self._wanted = None
                self._rest.start()
            else:
                self._show(key, found)

        self._modeling.ask(self._channel, request, take, priority=1)


def _key(request: ModelRequest) -> Hashable:
    """Return what a model was of."""
    if isinstance(request, ModelKernel):
        launch = request.launch
        words = tuple(tuple(each.items()) for each in (launch.defines, launch.constants, launch.textures))
        one: Hashable = (
            launch.file, launch.text, launch.kernel, launch.grid, launch.block, launch.arguments, launch.shared_bytes,
            words, launch.include_dirs,
        )  # fmt: skip
    else:
        one = (key_of(request), request.side)
    return one, request.gpu, request.supposed, request.operations


def gpus() -> tuple[str, ...]:
    """Return the keys of the GPUs that are described, those first that the model was compared with."""
    return tuple(sorted(keys(), key=lambda key: (not find_gpu(key).validated, key != DEFAULT_GPU, key)))
