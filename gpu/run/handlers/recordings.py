"""Handlers of requests for recordings."""

from __future__ import annotations

from io import BytesIO

import numpy as np

from gpu.messages.kernels import StepKernel
from gpu.messages.runs.recordings import RecordingFile, StepPattern
from gpu.messages.runs.writer import StepWriter
from gpu.messages.shared_arrays import SharedFolder
from gpu.recording.recording import Recording
from gpu.run.handlers.registry import RequestContext, handles
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload


def share_recording(recording: Recording, folder: SharedFolder) -> RecordingFile:
    """Store a recording in a new file of `folder`."""
    file = BytesIO()
    recording.save(file)
    return RecordingFile({"recording": folder.put(np.frombuffer(file.getbuffer(), np.uint8))})


@handles(StepPattern)
def _step_pattern(context: RequestContext, request: StepPattern) -> RecordingFile:
    recording = record_pattern(Workload.open(request), context.report_progress, schedule=request.schedule)
    return share_recording(recording, context.folder)


@handles(StepWriter)
def _step_writer(context: RequestContext, request: StepWriter) -> RecordingFile:
    from gpu.run.writer_search import record_writer

    return share_recording(record_writer(request, context.report_progress), context.folder)


@handles(StepKernel)
def _step_kernel(context: RequestContext, request: StepKernel) -> RecordingFile:
    from gpu.run.kernel_launch import record_kernel

    return share_recording(record_kernel(request.launch, request.schedule), context.folder)
