"""The command `program`: run a whole CUDA C++ program, host code and kernels, without a GPU."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpu.base.child_processes import signal_name
from gpu.base.errors import InputError, KernelError, LockstepError
from gpu.base.schedules import ROUND_ROBIN
from gpu.cli import interrupts
from gpu.cli.exit_codes import FAILED, OK, REFUSED, STOPPED
from gpu.cli.user_code import options as user_code
from gpu.cli.user_code.supervision import end_with_parent
from gpu.files.scratch import ScratchFolder
from gpu.files.sources import read_source

EPILOG = """\
The arguments after -- are the program's own. This machine's C++ compiler compiles its host code; its kernels run on
the simulator. Times between device events are this processor's.

exit codes: the program's own, 128 plus the signal's number if it crashes; with --check 1 if it ends with 0 and there
are findings, 2 if the simulator does not support a kernel; 2 if nothing was run; 124 if --max-seconds stopped it
"""
USAGE = "lockstep program FILE.cu [MORE.cu ...] [options] [-- ARGS ...]"


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of `program` into the command's own and, after --, the program's arguments."""
    words = list(arguments)
    if words[:1] == ["program"] and "--" in words:
        index = words.index("--")
        return words[:index], words[index + 1 :]
    return words, []


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options; the program's own arguments are split off before."""
    parser.usage, parser.epilog, parser.formatter_class = USAGE, EPILOG, argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Compiles a program's host code for this machine, and runs it with its kernels on the simulator."
    )
    user_code.add_options(parser)
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="source files: .cu, .cpp, .c")
    user_code.add_preprocessor_options(parser)
    parser.add_argument(
        "-l", metavar="LIBRARY", dest="libraries", action="append", default=[], help="link the host code with a library"
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="run kernels as machine code, without checks, where they store no pointers in memory",
    )


def run(options: argparse.Namespace, program_arguments: Sequence[str]) -> int:
    """Run the program in a separate process; return the exit code."""
    if not hasattr(os, "fork"):
        raise InputError(
            "The host code of a program runs on Linux and macOS only.",
            advice="On Windows, use WSL; the command `simulate` runs kernels.",
        )
    for file in options.files:
        if not file.is_file():
            raise InputError(f"There is no file {file}.")
    if options.fast and (options.check or options.report or options.trace or options.schedule != ROUND_ROBIN):
        raise InputError("--fast runs without checks: it excludes --check, --report, --trace and --schedule.")
    user_code.check_options(options)
    scratch = ScratchFolder()
    try:
        return _run_in_child(options, program_arguments, Path(scratch.path))
    finally:
        scratch.close()


def _run_in_child(options: argparse.Namespace, program_arguments: Sequence[str], folder: Path) -> int:
    reading, writing = os.pipe()
    child_end, parent_end = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.close(parent_end)
        threading.Thread(target=end_with_parent, args=(child_end,), daemon=True).start()
        code = FAILED
        user_code.apply_limits(options)
        try:
            code = _run_program(options, program_arguments, folder, writing)
        finally:
            os._exit(code)
    os.close(writing)
    os.close(child_end)
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
        print(interrupts.STOPPED_MESSAGE, file=sys.stderr)
        code = STOPPED
    from gpu.hosts.driver.journal import Journal, append_received_entries

    journal = Journal(options.check or options.report is not None, options.schedule, options.trace)
    _, refused = append_received_entries(journal, bytes(received))
    if code < 0:
        if code != -signal.SIGPIPE:  # the reading process has closed the pipe; a shell reports nothing either
            limit = (
                "" if options.max_memory is None else f" The limit of --max-memory is {options.max_memory >> 20:,} MB."
            )
            print(f"lockstep: The program crashed: {signal_name(code)}.{limit}", file=sys.stderr)
        code = 128 - code
    code = user_code.print_report(options, journal, [*map(str, options.files), *program_arguments], code)
    return REFUSED if code == OK and refused else code


def _run_program(options: argparse.Namespace, program_arguments: Sequence[str], folder: Path, write_end: int) -> int:
    """Compile and run the program in this process, which is its own; return the exit code."""
    try:
        return _compile_and_run(options, program_arguments, folder, write_end)
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


def _compile_and_run(
    options: argparse.Namespace, program_arguments: Sequence[str], folder: Path, write_end: int
) -> int:
    from gpu.hosts.driver.compiler_options import parse_define
    from gpu.hosts.driver.journal import Journal, JournalPacker
    from gpu.hosts.program.host_compiler import HostOptions
    from gpu.hosts.program.include_folders import add_project_folders
    from gpu.hosts.program.program_runner import compile_and_run

    checked = options.check or options.report is not None
    journal = Journal(checked, options.schedule, options.trace, options.fast)
    news = JournalPacker(journal)

    def send_entries(refused: bool) -> None:
        rest = memoryview(news.pack_new_entries(refused=refused))
        while rest:
            rest = rest[os.write(write_end, rest) :]

    host_options = HostOptions(
        add_project_folders({file: read_source(file) for file in options.files}, options.include_dirs),
        tuple(parse_define(define) for define in options.defines),
        tuple(options.libraries),
    )
    program = [str(options.files[0].with_suffix("")), *program_arguments]
    return compile_and_run(options.files, host_options, program, folder, journal, send_entries)
