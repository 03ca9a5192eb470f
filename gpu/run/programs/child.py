"""The process that a program runs in: `python -m` this file, with the file that says what is asked.

What it tells goes to a file too, which is whole up to the last launch however this process ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu.driver.journal import Journal, JournalNews, begin
from gpu.errors import CompileError, LockstepError

ASKED, NEWS, UNDER_WAY, FAILED, RECORDINGS = "asked.json", "news", "underway", "failed.json", "recordings"
"""Names in the folder of a run."""
MOST_THREADS = 4096
"""Of a launch that is recorded unasked."""
MOST_RECORDINGS = 500
MOST_BYTES = 256 << 20
"""Of all recordings that are made unasked."""
MOST_LANE_EVENTS = 4_000_000
"""Statements of single lanes of a launch, that are recorded."""


def main(folder: Path) -> int:
    """Run the program that a folder's file names; return its exit code."""
    asked = json.loads((folder / ASKED).read_text(encoding="utf-8"))
    recordings = folder / RECORDINGS
    recordings.mkdir(exist_ok=True)
    only: int | None = asked["only"]
    journal = Journal(
        only is None,
        asked["schedule"],
        recordings,
        recorded=_small(recordings) if only is None else lambda number, threads: number == only,
        max_lane_events=MOST_LANE_EVENTS,
        begun=lambda kernel, place: _say_under_way(folder, len(journal.entries) + 1, kernel, place),
    )
    if asked["gpu"]:
        from gpu.driver.attributes import describe
        from gpu.timing.gpus import find_gpu

        describe(find_gpu(asked["gpu"]))
        if only is None:
            from gpu.run.programs.modeling import LaunchModeler

            journal.modeled = LaunchModeler(asked["gpu"])
    told = JournalNews(journal)
    with (folder / NEWS).open("ab", buffering=0) as news:

        def tell(refused: bool) -> None:
            news.write(told.packed(refused=refused))

        os.chdir(Path(asked["path"]).parent)
        try:
            if asked["script"]:
                return _script(asked, journal, lambda: tell(False))
            return _program(asked, folder, journal, tell)
        except LockstepError as error:
            said = {"compile": isinstance(error, CompileError), "message": error.message, "advice": error.advice}
            (folder / FAILED).write_text(json.dumps({**said, "detail": error.detail}), encoding="utf-8")
            return 1


def _say_under_way(folder: Path, number: int, kernel: str, place: str) -> None:
    (folder / UNDER_WAY).write_text(f"launch {number}: {kernel}, at {place}", encoding="utf-8")


def _small(recordings: Path) -> Callable[[int, int], bool]:
    """Return what lets launches be recorded that are small, until there is enough of them."""
    seen: set[Path] = set()
    total = 0

    def recorded(number: int, threads: int) -> bool:
        nonlocal total
        if threads > MOST_THREADS or len(seen) >= MOST_RECORDINGS or total > MOST_BYTES:
            return False
        for file in set(recordings.iterdir()) - seen:
            seen.add(file)
            total += file.stat().st_size
        return True

    return recorded


def _script(asked: dict[str, Any], journal: Journal, tell: Callable[[], None]) -> int:
    from gpu.pycuda import driver
    from gpu.pycuda.script import run_script

    begin(journal)
    journal.entered = tell
    driver.install()
    return run_script([asked["path"], *asked["words"]], asked["text"])


def _program(asked: dict[str, Any], folder: Path, journal: Journal, tell: Callable[[bool], None]) -> int:
    from gpu.program.host_compiler import HostOptions
    from gpu.program.whole import compile_and_run

    # A pipe's writer keeps what is printed for itself until it is much.
    stdout = "__stdoutp" if sys.platform == "darwin" else "stdout"
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, stdout), None, 1, ctypes.c_size_t(0))
    path = Path(asked["path"])
    file = folder / path.name
    file.write_text(asked["text"], encoding="utf-8")
    words = [str(path.with_suffix("")), *asked["words"]]
    how = HostOptions((path.parent, *map(Path, asked["include_dirs"])), tuple(asked["defines"].items()))
    return compile_and_run([file], how, words, folder, journal, tell)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
