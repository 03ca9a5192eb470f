"""Compilation and execution of a whole program in a dedicated process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu.driver.journal import Journal, begin
from gpu.program.host_compiler import HostOptions, compiled, of_program


def compile_and_run(
    files: Sequence[Path],
    how: HostOptions,
    words: Sequence[str],
    folder: Path,
    journal: Journal,
    on_launch: Callable[[bool], None],
) -> int:
    """Compile a program, call its `main` and return the result; `exit` in the program ends this process.

    Parameters
    ----------
    files : sequence of Path
    how : HostOptions
    words : sequence of str
        The program's name and arguments.
    folder : Path
        Folder for generated files.
    journal : Journal
        Journal of launches.
    on_launch : callable
        As for `gpu.program.runtime.Runtime`.

    Raises
    ------
    CompileError, EngineUnavailableError
        As for `gpu.program.host_compiler.compiled`.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(compiled, files, how, folder)
        # Import the simulator meanwhile.
        from gpu.program.running import run_main
        from gpu.program.runtime import ProgramUnit

        shared_object = future.result()
    begin(journal)
    units = [ProgramUnit(file, dict(how.defines), of_program(how.include_dirs)) for file in files]
    return run_main(shared_object, units, words, on_launch)
