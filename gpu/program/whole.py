"""A whole program, compiled and run in this process, which is its own."""

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
    """Compile a program and call its `main`; return what that returns. `exit` in the program ends this process.

    Parameters
    ----------
    files : sequence of Path
    how : HostOptions
    words : sequence of str
        The program's name, and its arguments.
    folder : Path
        Where what is made is put.
    journal : Journal
        Where launches are taken down.
    on_launch : callable
        As `gpu.program.runtime.Runtime` takes it.

    Raises
    ------
    CompileError, EngineUnavailableError
        As of `gpu.program.host_compiler.compiled`.
    """
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(compiled, files, how, folder)
        # Meanwhile the simulator is imported.
        from gpu.program.running import run_main
        from gpu.program.runtime import ProgramUnit

        shared_object = making.result()
    begin(journal)
    units = [ProgramUnit(file, dict(how.defines), of_program(how.include_dirs)) for file in files]
    return run_main(shared_object, units, words, on_launch)
