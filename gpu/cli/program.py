"""The command `program`: a whole CUDA C++ program, host code and kernels, without a GPU."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu.cli import interrupts, own_code
from gpu.cli.exit_codes import FAILED, OK, REFUSED, STOPPED
from gpu.cli.supervised import end_with_parent
from gpu.errors import InputError, KernelError, LockstepError
from gpu.files.scratch import ScratchFolder
from gpu.schedules import ROUND_ROBIN

EPILOG = """\
What stands behind -- is the program's own. Its host code is compiled by this machine's C++ compiler, its kernels run
on the simulator. Times between events are this processor's.

exit codes: the program's own, 128 and its signal's number where it crashes; with --check 1 where it ends with 0 and a
launch made a mistake, 2 where a kernel is none that the simulator runs; 2 where nothing was run; 124 where
--max-seconds ended it
"""
USAGE = "lockstep program FILE.cu [MORE.cu ...] [options] [-- ARGS ...]"
ABOUT: dict[str, Any] = {
    "usage": USAGE,
    "description": "Compiles a program's host code for this machine, and runs it with its kernels on the simulator.",
    "epilog": EPILOG,
    "formatter_class": argparse.RawDescriptionHelpFormatter,
    "allow_abbrev": False,
}
"""What its parser is made with."""


def arguments_apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command's own words, and those behind --, which are the program's; of other commands there are none."""
    words = list(arguments)
    if words[:1] == ["program"] and "--" in words:
        place = words.index("--")
        return words[:place], words[place + 1 :]
    return words, []


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser; what is the program's is taken off before."""
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="its files: .cu, .cpp, .c")
    parser.add_argument(
        "-I", metavar="DIR", dest="include_dirs", action="append", type=Path, default=[], help="look for includes there"
    )
    parser.add_argument(
        "-D",
        metavar="NAME=VALUE",
        dest="defines",
        action="append",
        default=[],
        help="define a macro; -D NAME makes it 1",
    )
    parser.add_argument(
        "-l", metavar="LIBRARY", dest="libraries", action="append", default=[], help="link the host code with a library"
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="run kernels as machine code, which checks nothing, where they keep no pointers in memory",
    )


def run(options: argparse.Namespace, words: Sequence[str]) -> int:
    """Run the program in a process of its own; return the exit code."""
    if not hasattr(os, "fork"):
        raise InputError(
            "A program's host code runs on Linux and macOS.",
            advice="On Windows run it in WSL; `simulate` runs kernels.",
        )
    for file in options.files:
        if not file.is_file():
            raise InputError(f"There is no file {file}.")
    if options.fast and (options.check or options.report or options.trace or options.schedule != ROUND_ROBIN):
        raise InputError("--fast checks nothing: it goes with neither --check, --report, --trace nor --schedule.")
    own_code.check_options(options)
    scratch = ScratchFolder()
    try:
        return _watched(options, words, Path(scratch.path))
    finally:
        scratch.close()


def _watched(options: argparse.Namespace, words: Sequence[str], folder: Path) -> int:
    reading, writing = os.pipe()
    watched, held = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(held)
        threading.Thread(target=end_with_parent, args=(watched,), daemon=True).start()
        code = FAILED
        own_code.hold(options)
        try:
            code = _program(options, words, folder, writing)
        finally:
            os._exit(code)
    os.close(writing)
    os.close(watched)
    received = bytearray()
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    try:
        while data := os.read(reading, 1 << 20):
            received += data
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.set_blocking(reading, False)
        with suppress(BlockingIOError):
            while data := os.read(reading, 1 << 20):
                received += data
        print(interrupts.SENTENCE, file=sys.stderr)
        code = STOPPED
    from gpu.driver.journal import Journal, take_down

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    _, refused = take_down(journal, bytes(received))
    if code < 0:
        if code != -signal.SIGPIPE:  # who reads has gone: a shell says nothing either
            given = "" if options.max_memory is None else f" --max-memory gave it {options.max_memory >> 20:,} MB."
            print(f"lockstep: The program crashed: {_signal_name(-code)}.{given}", file=sys.stderr)
        code = 128 - code
    code = own_code.report(options, journal, [*map(str, options.files), *words], code)
    return REFUSED if code == OK and refused else code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _program(options: argparse.Namespace, words: Sequence[str], folder: Path, writing: int) -> int:
    """Compile the program and run it, in the process that is its own; return the exit code."""
    try:
        return _compiled_and_run(options, words, folder, writing)
    except LockstepError as error:
        print(f"lockstep: {error.detail or error.message} {error.advice}".rstrip(), file=sys.stderr)
        return FAILED if isinstance(error, KernelError) else REFUSED
    except KeyboardInterrupt:
        return STOPPED
    except MemoryError:
        print("lockstep: There is not enough memory for this. Use a smaller input.", file=sys.stderr)
        return REFUSED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _compiled_and_run(options: argparse.Namespace, words: Sequence[str], folder: Path, writing: int) -> int:
    from gpu.driver.journal import Journal, JournalNews
    from gpu.program.host_compiler import HostOptions
    from gpu.program.whole import compile_and_run

    checked = options.check or options.report is not None
    journal = Journal(checked, options.schedule, options.trace, options.fast)
    news = JournalNews(journal)

    def send(refused: bool) -> None:
        rest = memoryview(news.packed(refused=refused))
        while rest:
            rest = rest[os.write(writing, rest) :]

    how = HostOptions(
        tuple(options.include_dirs), tuple(_define(each) for each in options.defines), tuple(options.libraries)
    )
    program = [str(options.files[0].with_suffix("")), *words]
    return compile_and_run(options.files, how, program, folder, journal, send)


def _define(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "1"
