"""Model the visible runs for the selected GPU in a separate process, and cache the results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import InputError
from gpu.declaration.pattern import Progress
from gpu.engines.base import Device
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModeledTime, ModelKernel, ModelPattern
from gpu.timing.gpus import find_gpu, list_gpu_keys
from gui.model.request_queue import RequestQueue
from gui.model.run_counter import compute_run_key
from gui.qt.timers import create_single_shot_timer

DEFAULT_GPU = "h200"
SETTLE_MS = 350
"""How long the visible settings must be unchanged before they are modeled."""
_STALE_S = 2.0
"""Seconds after which an obsolete modeling request is stopped."""
_MAX_CACHED = 400
_NO_REQUEST = "no request"
"""Key of the result that is shown while there is nothing to model."""

ModelRequest = ModelPattern | ModelKernel
ModelCallback = Callable[[ModeledTime | Failure], None]


class TimeModeler(QObject):
    """Model runs in a separate process, so that runs, typing and stepping do not wait for it.

    Parameters
    ----------
    jobs : RequestQueue
        The queue of that process, which starts with the first request.
    gpu : str
        The GPU selected earlier; "" for none.
    """

    gpu_changed = pyqtSignal(str)
    """The key of the GPU that times are modeled for."""

    def __init__(self, jobs: RequestQueue, gpu: str, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._selected_gpu = gpu
        self._local_gpu = ""
        self._cache: OrderedDict[Hashable, ModeledTime | Failure] = OrderedDict()
        self._obsolete_channel = ""
        """The channel of the running request, if nothing needs its result."""
        self._obsolete_timer = create_single_shot_timer(0, self._interrupt_obsolete_request, self)

    @property
    def gpu(self) -> str:
        """The key of the GPU that times are modeled for: the selected, the local, or the default one."""
        return self._selected_gpu or self._local_gpu or DEFAULT_GPU

    @property
    def models_local_gpu(self) -> bool:
        """Whether times are modeled for the GPU that the engine runs on."""
        return bool(self._local_gpu) and self.gpu == self._local_gpu

    def select_gpu(self, gpu: str) -> None:
        """Select the GPU that times are modeled for."""
        self._change_gpu(gpu, self._local_gpu)

    def set_device(self, device: Device) -> None:
        """Set the local GPU from the engine's device."""
        local = ""
        if device.executor == "gpu":
            try:
                local = find_gpu(device.name).key
            except InputError:
                local = ""
        self._change_gpu(self._selected_gpu, local)

    def _change_gpu(self, chosen: str, local: str) -> None:
        before, self._selected_gpu, self._local_gpu = self.gpu, chosen, local
        if self.gpu != before:
            self.gpu_changed.emit(self.gpu)

    @property
    def jobs(self) -> RequestQueue:
        """The queue of the process, which is started if needed."""
        if not self._jobs.started:
            self._jobs.start("simulator")
        return self._jobs

    @property
    def started(self) -> bool:
        """Whether the process has been started."""
        return self._jobs.started

    @property
    def busy(self) -> bool:
        """Whether a request runs or waits."""
        return self._jobs.busy

    def find_cached_model(self, request: ModelRequest) -> ModeledTime | Failure | None:
        """Return the cached result of a request, or None."""
        return self._cache.get(_compute_key(request))

    def request_model(
        self,
        channel: str,
        request: ModelRequest,
        on_model: ModelCallback,
        priority: int = 0,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Model a request, or pass on its cached result.

        Parameters
        ----------
        channel : str
            A waiting request of this channel is replaced.
        on_model : callable
            Receives the ModeledTime or Failure.
        on_progress : callable or None
            Receives a Progress with a bound of the time, before it is modeled.
        """
        cached = self.find_cached_model(request)
        if cached is not None:
            self.cancel_request(channel)
            on_model(cached)
            return

        def on_result(model: ModeledTime | Failure) -> None:
            if channel == self._obsolete_channel:
                self._obsolete_channel = ""
            if isinstance(model, ModeledTime) or model.kind in ("input", "compile", "launch"):
                self._cache[_compute_key(request)] = model
                if len(self._cache) > _MAX_CACHED:
                    self._cache.popitem(last=False)
            on_model(model)

        self.cancel_request(channel)
        self.jobs.post(channel, request, on_result, on_progress, priority)

    def cancel_request(self, channel: str) -> None:
        """Drop the waiting request of a channel; a running one may take two seconds, as a restart takes one."""
        self._jobs.drop(channel)
        if self._jobs.has_request(channel):
            self._obsolete_channel = channel
            self._interrupt_obsolete_request()

    def _interrupt_obsolete_request(self) -> None:
        if not self._obsolete_channel:
            return
        remaining_s = _STALE_S - self._jobs.age(self._obsolete_channel)
        if remaining_s < 0:
            self._jobs.interrupt()
        else:
            self._obsolete_timer.start(round(remaining_s * 1000) + 1)

    def close(self) -> None:
        """End the process."""
        self._obsolete_timer.stop()
        self._jobs.close()


class ModelFollower(QObject):
    """Keep the modeled time of the visible settings up to date; an outdated time is cleared at once.

    Parameters
    ----------
    request : callable
        Returns the request for the visible settings, or None if there is nothing to model.
    busy : callable
        Returns whether work is running that modeling would slow down.
    """

    changed = pyqtSignal(object)
    """ModeledTime, or the Failure that explains its absence; None while it is being computed."""
    bound_found = pyqtSignal(str)
    """A clause with a bound of the time that is being computed."""

    def __init__(
        self,
        modeling: TimeModeler,
        request: Callable[[], ModelRequest | None],
        busy: Callable[[], bool],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._modeling, self._request, self._busy = modeling, request, busy
        self._channel = f"model {id(self)}"
        self._displayed_key: Hashable = None
        self._pending_key: Hashable = None
        self._settle_timer = create_single_shot_timer(SETTLE_MS, self._request_model, self)
        modeling.gpu_changed.connect(self.update_model)

    @property
    def under_way(self) -> bool:
        """Whether a time is being computed."""
        return self._settle_timer.isActive() or self._pending_key is not None

    def update_model(self) -> None:
        """Clear an outdated time, and model the visible settings once they have been unchanged for a while."""
        request = self._request()
        key = _NO_REQUEST if request is None else _compute_key(request)
        if key in (self._displayed_key, self._pending_key):
            return
        cached = None if request is None else self._modeling.find_cached_model(request)
        if cached is not None:
            self._cancel_request()
            self._show_model(key, cached)
            return
        if self._displayed_key is not None or self._pending_key is not None:
            self.clear_model()
        self._settle_timer.start()

    def clear_model(self) -> None:
        """Clear the time, and stop modeling until the next call of `update_model`."""
        self._cancel_request()
        self._displayed_key = None
        self.changed.emit(None)

    def _cancel_request(self) -> None:
        self._settle_timer.stop()
        if self._pending_key is not None:
            self._pending_key = None
            self._modeling.cancel_request(self._channel)

    def _show_model(self, key: Hashable, model: ModeledTime | Failure) -> None:
        self._pending_key, self._displayed_key = None, key
        self.changed.emit(model)

    def _request_model(self) -> None:
        if self._busy():
            self._settle_timer.start()
            return
        request = self._request()
        if request is None:
            self._show_model(_NO_REQUEST, Failure("input", "There is no complete launch or input to model."))
            return
        key = self._pending_key = _compute_key(request)

        def on_model(model: ModeledTime | Failure) -> None:
            if key != self._pending_key:
                return
            if isinstance(model, Failure) and model.kind == "cancelled":
                self._pending_key = None
                self._settle_timer.start()
            else:
                self._show_model(key, model)

        def on_progress(progress: Progress) -> None:
            if key == self._pending_key:
                self.bound_found.emit(progress.message)

        self._modeling.request_model(self._channel, request, on_model, 1, on_progress)


def _compute_key(request: ModelRequest) -> Hashable:
    """Return the cache key of a request."""
    if isinstance(request, ModelKernel):
        launch = request.launch
        words = tuple(tuple(each.items()) for each in (launch.defines, launch.constants, launch.textures))
        subject: Hashable = (
            launch.file, launch.text, launch.kernel, launch.grid, launch.block, launch.arguments, launch.shared_bytes,
            words, launch.include_dirs,
        )  # fmt: skip
    else:
        subject = (compute_run_key(request), request.side)
    return subject, request.gpu, request.gpu_scaling, request.count_operations


def list_gpus() -> tuple[str, ...]:
    """Return the keys of the described GPUs, those first that the timing model was validated on."""
    return tuple(sorted(list_gpu_keys(), key=lambda key: (not find_gpu(key).validated, key != DEFAULT_GPU, key)))
