"""Compilation and execution of a whole program in a dedicated process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu.hosts.driver.journal import Journal, set_current_journal
from gpu.hosts.program.host_compiler import HostOptions, compile_program, exclude_thrust


def compile_and_run(
    files: Sequence[Path],
    options: HostOptions,
    command_line: Sequence[str],
    folder: Path,
    journal: Journal,
    on_launch: Callable[[bool], None],
) -> int:
    """Compile a program, call its `main` and return the result; `exit` in the program ends this process.

    Parameters
    ----------
    command_line : sequence of str
        The program's name and arguments.
    folder : Path
        Folder for generated files.
    journal : Journal
        Journal of launches.
    on_launch : callable
        As for `gpu.hosts.program.runtime.Runtime`.

    Raises
    ------
    CompileError, EngineUnavailableError
        As for `gpu.hosts.program.host_compiler.compile_program`.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compile_program, files, options, folder)
        # Import the simulator meanwhile.
        from gpu.hosts.program.main_runner import run_main
        from gpu.hosts.program.program_units import ProgramUnit

        shared_object = future.result()
    set_current_journal(journal)
    units = [ProgramUnit(file, dict(options.defines), exclude_thrust(options.include_dirs)) for file in files]
    return run_main(shared_object, units, command_line, on_launch)
