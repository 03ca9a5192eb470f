"""SECURITY.md, and limits in the handbook: each promise has a test; those of the whole application are here."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from gpu.base.paths import ROOT
from gpu.engines.simulator import SimulatorEngine
from gpu.kernel.simulate import simulate
from gpu.simulator.compiled import native_code

PROMISES = {
    "an untrusted `.cu` file accesses only its own arrays": "gpu/kernel/test_bounds.py gpu/kernel/test_attacks.py",
    "no pickles, no NumPy objects": "gui/model/test_settings.py::test_a_pickle_in_the_settings_of_old_is_not_executed "
    "gpu/files/test_file_access.py::test_damaged_npy_headers_are_refused_in_one_sentence",
    "The files must be regular files of bounded size": "gpu/files/test_file_access.py::"
    "test_what_is_no_file_is_refused_in_one_sentence",
    "Sizes in their headers are\nchecked before memory": "gpu/files/test_file_access.py::"
    "test_a_header_that_promises_more_than_there_is_takes_no_memory",
    "are decoded in a\nprocess with resource limits": "gpu/files/test_image_bombs.py::"
    "test_a_decoder_is_held_to_the_memory_of_its_pixels",
    "Output is written completely or not at all": "gpu/files/test_file_access.py::"
    "test_a_full_disk_leaves_what_was_there",
    "only to regular files, never to devices or pipes": "gpu/files/test_file_access.py::test_only_a_file_is_replaced",
    "the new file replaces the link": "gpu/files/test_file_access.py::"
    "test_a_link_to_a_file_is_replaced_and_the_file_stays",
    "`grade` follows no symbolic links": "gpu/process/test_submissions.py::test_links_are_not_followed",
    "however an `#include` is spelled": "gpu/process/test_submissions.py::"
    "test_no_spelling_of_an_include_reaches_another_file",
    "in a process with limits, without network": "gpu/process/test_grader.py::"
    "test_a_process_that_judges_opens_no_file_of_others",
    "only if the current user wrote it": "gpu/simulator/test_disk.py::"
    "test_a_folder_that_cannot_be_trusted_is_left_alone_with_a_note",
    "a damaged, foreign or exchanged entry is ignored": "gpu/simulator/test_disk.py::test_exchanged_entries_are_none",
    "Lockstep opens no connection and sends nothing": "docs/test_security.py::test_no_command_opens_a_connection",
    "the engine's process and its children cannot open connections": "gpu/process/test_privileges.py::"
    "test_a_program_that_it_starts_has_no_network_either",
    "prints their names before it downloads them": "tools/test_setup.py::test_apt_is_called_as_allowed "
    "tools/test_setup.py::test_packages_are_installed_when_requirements_change",
    "only from the source archive with the hash": "gpu/hosts/pycuda/test_python_files.py::"
    "test_an_archive_with_another_hash_is_refused_before_its_code_runs",
    "The window runs an edited kernel in the simulator first": "gui/model/test_clearance.py::"
    "test_an_edited_text_runs_once_it_has_passed_and_is_not_checked_twice",
    "compiles a kernel from outside the project to machine code": "docs/test_security.py::"
    "test_a_kernel_from_outside_is_not_compiled_to_machine_code",
    "The window asks\n  before the first run of a file": "gui/user_kernel/program/test_page.py::"
    "test_host_code_runs_only_after_a_warning",
    "On Windows a job\n  object limits": "gpu/process/test_windows_job.py",
    "but does not connect to it on its own": "docs/test_security.py::test_no_command_opens_a_connection",
    "listens on 127.0.0.1\n  only": "gpu/distributed/test_faults.py::test_it_listens_on_this_machine_alone",
    "expands to more than its array\n  declares is an error": "gpu/distributed/data/test_zarr_arrays.py::"
    "test_a_chunk_that_expands_to_more_than_its_array_declares_is_an_error",
    "Stop and Ctrl+C end them": "gpu/cli/test_cli.py::test_ctrl_c_ends_a_command_and_its_workers_even_outside_python",
}
"""A part of each promise, as in the page, and its tests."""

LESSON_PROMISES = {
    "names file, line and reason": "gpu/lessons/test_lesson_reader.py::test_a_wrong_step_is_told_with_its_line",
    "The program reads the arguments from standard input": "gpu/lessons/test_programs.py::"
    "test_right_programs_are_accepted",
    "rejects a program that crashes, does not end, launches no kernel": "gpu/lessons/test_programs.py::"
    "test_wrong_programs_are_rejected",
    "Kernels must compute the results": "gpu/lessons/test_programs.py::"
    "test_programs_must_compute_on_the_gpu_and_report_errors",
    'An "in" array must keep its values': "gpu/lessons/test_grading.py::test_an_input_must_keep_its_values",
    "The verdict names the smallest input that fails": "gpu/lessons/test_grading.py::"
    "test_the_smallest_failing_input_is_told",
    "with 30 s of computing, 1 GB and no network": "gpu/process/test_grader.py::test_a_class_is_graded_and_reported "
    "gpu/process/test_grader.py::test_a_process_that_judges_opens_no_file_of_others",
    "clang sees only CUDA's headers": "gpu/process/test_submissions.py::"
    "test_headers_of_cuda_are_visible_to_submissions",
    "opens no connection or process, and has 5 s of computing": "gpu/process/test_program_confinement.py::"
    "test_a_program_reaches_no_file_process_or_network gpu/process/test_program_confinement.py::"
    "test_limits_of_time_memory_and_output_end_a_run_and_the_next_one_works",
    "Symbolic links are not followed": "gpu/process/test_submissions.py::test_links_are_not_followed",
    "Ctrl+C keeps all finished grades": "gpu/process/test_submissions.py::"
    "test_ending_the_command_keeps_what_was_graded_and_leaves_no_process",
    "If Lockstep itself fails": "gpu/process/test_submissions.py::test_a_failure_of_the_grader_is_not_the_submissions",
    "because the machine is busy": "gpu/process/test_grader.py::"
    "test_a_submission_is_not_wrong_because_the_machine_is_busy",
    "without it, the seed is random and printed": "gpu/process/test_submissions.py::"
    "test_the_seed_is_secret_unless_named",
}
"""The same of docs/lessons.md."""

RELIABILITY_PROMISES = {
    "Limits count computing time": "gpu/base/test_resource_limits.py::test_computing_ends_when_its_time_is_up",
    "they also count clock time": "gpu/base/test_resource_limits.py::test_waiting_ends_too",
    "once it has computed for one second": "gpu/kernel/test_bounds.py::test_a_wait_alone_ends_nothing",
    "`grade` counts computing time only": "gpu/base/test_resource_limits.py::"
    "test_only_computing_counts_where_nobody_waits",
    "The areas share the computing time equally": "tools/test_fuzz.py::"
    "test_the_limit_counts_computing_time_and_no_area_takes_all_inputs",
    'The verdict must not be "verified"': "tools/test_barriers.py::test_without_it_nothing_is_verified",
    "A separate process decodes all other images": "gpu/files/test_image_bombs.py::"
    "test_bombs_take_no_more_than_their_pixels",
    "ends with the engine's process": "gpu/files/test_image_bombs.py::"
    "test_an_image_that_is_being_decoded_is_stopped_with_the_engine",
}
"""The same of docs/reliability.md."""


@pytest.mark.parametrize(
    ("page", "promises"),
    [
        ("SECURITY.md", PROMISES),
        ("docs/lessons.md", LESSON_PROMISES),
        ("docs/reliability.md", RELIABILITY_PROMISES),
    ],
)
def test_each_promise_is_in_the_page_and_has_a_test(page, promises):
    text = (ROOT / page).read_text("utf-8")
    words = " ".join(text.split())
    assert [promise for promise in promises if " ".join(promise.split()) not in words] == []
    for name in " ".join(promises.values()).split():
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in functions if function else functions, name
    named = re.findall(r"`(\w+/[\w/]+\.py)`", text)
    assert [name for name in named if not any((ROOT / root / name).exists() for root in ("", "tests"))] == []


_WITHOUT_NETWORK = """
import runpy, socket, sys

def report(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        sys.stderr.write(f"OPENED {event}\\n")
    if event in ("socket.connect", "socket.bind", "socket.sendto") and arguments[0].family != socket.AF_UNIX:
        sys.stderr.write(f"OPENED {event} {arguments[1:]}\\n")

sys.addaudithook(report)
if sys.argv[1] == "window":
    import json, pathlib
    from gui.driving.window_session import open_window
    from gui.model.settings import SavedSettings
    settings = pathlib.Path(sys.argv[2], "settings.json")
    settings.write_text(json.dumps({"engine": "dask", "cluster": ["tcp://127.0.0.1:9", "0"]}))
    assert SavedSettings(settings).cluster.scheduler == "tcp://127.0.0.1:9"
    with open_window(SavedSettings(settings).engine, settings.parent):
        pass
elif sys.argv[1] == "control":
    socket.create_server(("127.0.0.1", 0)).close()
else:
    sys.argv[0] = "main.py"
    runpy.run_path("main.py", run_name="__main__")
"""
_COMMANDS = {
    "control": True,
    "devices": False,
    "run reduction --engine simulator --n 1000": False,
    "simulate kernels/histogram.cu histogram_global --arg random:64 --arg zeros:256 --arg 64 --arg 256": False,
    "window": False,
}


@pytest.mark.parametrize("command", _COMMANDS)
def test_no_command_opens_a_connection(command, tmp_path):
    """The first command opens one, to show that the hook reports it; the window's settings name a scheduler."""
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NETWORK, *command.split(), *([str(tmp_path)] if command == "window" else [])],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ("OPENED" in ended.stderr) == _COMMANDS[command], ended.stderr
    assert "Traceback" not in ended.stderr


_KERNEL = 'extern "C" __global__ void twice(float *a) { a[threadIdx.x] *= 2; }'


def test_a_kernel_from_outside_is_not_compiled_to_machine_code(tmp_path, monkeypatch):
    """Neither a kernel file nor an edited kernel of the window is; `--executor compiled` compiles one."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a kernel from outside the project is compiled")

    monkeypatch.setattr(native_code, "compile_text", refuse)
    monkeypatch.setattr(native_code, "read_cached_code", refuse)
    file = tmp_path / "k.cu"
    file.write_text(_KERNEL)
    values = np.arange(32, dtype=np.float32)
    assert simulate(file, "twice", 1, 32, [values.copy()]).findings == []
    engine = SimulatorEngine()
    engine.sources = {"reduction.cu": _KERNEL}
    buffer = engine.upload(values)
    engine.launch(engine.build("reduction.cu").kernel("twice"), (1, 1, 1), (32, 1, 1), buffer)
    assert engine.download(buffer).tolist() == (2 * values).tolist()
    unchecked = SimulatorEngine("compiled")
    unchecked.sources = engine.sources
    with pytest.raises(AssertionError, match="from outside"):
        unchecked.launch(
            unchecked.build("reduction.cu").kernel("twice"), (1, 1, 1), (32, 1, 1), unchecked.upload(values)
        )
