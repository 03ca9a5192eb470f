"""Child process of a program: run with `python -m` and a folder, which contains the request file.

Messages are written to a file, which is complete up to the last launch however this process ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu.base.errors import CompileError, LockstepError
from gpu.hosts.driver.journal import Journal, JournalPacker, set_current_journal

REQUEST_FILE, JOURNAL_FILE, CURRENT_LAUNCH_FILE, FAILURE_FILE, RECORDINGS_FOLDER = (
    "request.json",
    "journal",
    "current_launch",
    "failure.json",
    "recordings",
)
"""File names in the folder of a run."""
MAX_THREADS = 4096
"""Most threads of a launch that is recorded without a request."""
MAX_RECORDINGS = 500
MAX_BYTES = 256 << 20
"""Most bytes of all recordings made without a request."""
MAX_LANE_EVENTS = 4_000_000
"""Most recorded events of single lanes per launch."""


def main(folder: Path) -> int:
    """Run the program of a folder's request file; return its exit code."""
    request = json.loads((folder / REQUEST_FILE).read_text(encoding="utf-8"))
    recordings = folder / RECORDINGS_FOLDER
    recordings.mkdir(exist_ok=True)
    requested_launch: int | None = request["only"]
    journal = Journal(
        requested_launch is None,
        request["schedule"],
        recordings,
        should_record=_small_launch_filter(recordings)
        if requested_launch is None
        else lambda number, threads: number == requested_launch,
        max_lane_events=MAX_LANE_EVENTS,
        on_begin=lambda kernel, location: _write_current_launch(folder, len(journal.entries) + 1, kernel, location),
    )
    if request["gpu"]:
        from gpu.hosts.driver.attributes import emulate_gpu_attributes
        from gpu.timing.gpus import find_gpu

        gpu = find_gpu(request["gpu"])
        emulate_gpu_attributes(gpu)
        if requested_launch is None:
            from gpu.run.programs.launch_modeler import LaunchModeler

            journal.model_launch = LaunchModeler(gpu)
    packer = JournalPacker(journal)
    with (folder / JOURNAL_FILE).open("ab", buffering=0) as journal_file:

        def write_entries(refused: bool) -> None:
            journal_file.write(packer.pack_new_entries(refused=refused))

        os.chdir(Path(request["path"]).parent)
        try:
            if request["script"]:
                return _run_script(request, journal, lambda: write_entries(False))
            return _run_program(request, folder, journal, write_entries)
        except LockstepError as error:
            failure = {"compile": isinstance(error, CompileError), "message": error.message, "advice": error.advice}
            (folder / FAILURE_FILE).write_text(json.dumps({**failure, "detail": error.detail}), encoding="utf-8")
            return 1


def _write_current_launch(folder: Path, number: int, kernel: str, location: str) -> None:
    (folder / CURRENT_LAUNCH_FILE).write_text(f"launch {number}: {kernel}, at {location}", encoding="utf-8")


def _small_launch_filter(recordings: Path) -> Callable[[int, int], bool]:
    """Return a predicate that accepts small launches for recording until their number or size limit is reached."""
    known_files: set[Path] = set()
    total_bytes = 0

    def is_recorded(number: int, threads: int) -> bool:
        nonlocal total_bytes
        if threads > MAX_THREADS or len(known_files) >= MAX_RECORDINGS or total_bytes > MAX_BYTES:
            return False
        for file in set(recordings.iterdir()) - known_files:
            known_files.add(file)
            total_bytes += file.stat().st_size
        return True

    return is_recorded


def _run_script(request: dict[str, Any], journal: Journal, write_entries: Callable[[], None]) -> int:
    from gpu.hosts.script import find_libraries, run_script

    set_current_journal(journal)
    journal.on_entry = write_entries
    libraries = find_libraries(request["text"])
    if libraries != ("cupy",):
        from gpu.hosts.pycuda import driver

        driver.install()
    if libraries == ("pycuda",):
        return run_script([request["path"], *request["words"]], request["text"])
    from gpu.hosts.cupy import installation
    from gpu.hosts.cupy.forwarding import format_forwarded_functions

    installation.install()
    code = run_script([request["path"], *request["words"]], request["text"])
    if line := format_forwarded_functions():
        print(line, file=sys.stderr)
    return code


def _run_program(request: dict[str, Any], folder: Path, journal: Journal, write_entries: Callable[[bool], None]) -> int:
    from gpu.hosts.program.host_compiler import HostOptions
    from gpu.hosts.program.include_folders import add_project_folders
    from gpu.hosts.program.program_runner import compile_and_run

    # stdout to a pipe is fully buffered by default; make it line-buffered.
    stdout = "__stdoutp" if sys.platform == "darwin" else "stdout"
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, stdout), None, 1, ctypes.c_size_t(0))
    path = Path(request["path"])
    file = folder / path.name
    file.write_text(request["text"], encoding="utf-8")
    words = [str(path.with_suffix("")), *request["words"]]
    include_dirs = add_project_folders({path: request["text"]}, [path.parent, *map(Path, request["include_dirs"])])
    options = HostOptions(include_dirs, tuple(request["defines"].items()))
    return compile_and_run([file], options, words, folder, journal, write_entries)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
