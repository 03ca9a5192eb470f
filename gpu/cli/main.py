"""Command-line parser and entry point; functions that need the window are passed in."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from gpu.base import folders, schedules
from gpu.base.errors import CompileError, InputError, KernelError, LockstepError
from gpu.base.installation import format_version
from gpu.base.paths import ROOT
from gpu.cli import interrupts
from gpu.cli.exit_codes import FAILED, OK, REFUSED, STOPPED
from gpu.cli.patterns import cluster_options
from gpu.cli.patterns.run_options import RunOptions
from gpu.cli.user_code.program import split_arguments
from gpu.cli.user_code.script import split_program
from gpu.declaration.pattern import Choice, Integer, Matrix, Parameter, Pattern, Real
from gpu.declaration.presentation import BodiesPresentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import BinEdges, Numbers, Text
from gpu.process.temporary_files import own_temporary_folder

_EPILOG = f"""\
exit codes:
  {OK}    success: the result is correct (or wrong by design, in a cautionary variant)
  {FAILED}    a kernel did not compile or failed, the result is wrong, or (with --source) the checkers found errors
  {REFUSED}    nothing was run: invalid input, or an engine that is not available
  {STOPPED}  stopped by Ctrl+C
"""

_PARAMETER_PREFIX = "parameter "
"""Prefix of the parameters' destinations, so that no parameter collides with an option of every pattern."""

_SEED_HELP = "seed of random inputs; an image has no random part (default: 0)"
_MAX_LINE_LENGTH = 2000
_MAX_DIGITS = 1000
_MAX_ELEMENTS = 10**12
_MAX_OPTIONS = 5000
"""Limit on the number of options: argparse takes longer per option the more there are."""

_STREAM_ERRORS = (
    errno.ENOSPC,
    errno.EFBIG,
    errno.EIO,
    errno.EBADF,
    errno.EPIPE,
    getattr(errno, "EDQUOT", errno.ENOSPC),
)

Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Parser that reports errors in one line and accepts negative numbers such as -1e5 and -inf as values.

    `fill` adds the options when parsing starts, so that only the chosen command's options are built.
    """

    fill: Callable[[_Parser], None] | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(REFUSED, f"{_to_one_line(f'{self.prog}: {message} (see --help)')}\n")


class _PrintVersion(argparse.Action):
    """Print the version and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: Any) -> None:
        print(f"{parser.prog} {format_version()}")
        parser.exit()


class _PrintFolders(argparse.Action):
    """Print the folders that Lockstep reads and writes, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: Any) -> None:
        print(f"installation  {ROOT}")
        print(f"settings      {folders.settings_file()}")
        print(f"data          {folders.data_folder()}")
        print(f"cache         {folders.cache_folder()}")
        parser.exit()


class Desktop(NamedTuple):
    """Window functions that the commands call; all but `measure_openings` return an exit code or None.

    Parameters
    ----------
    open_window : callable
        Opens the window with a file or None and, optionally, an engine: its name, or a cluster's `ClusterSettings`.
    run_tour : callable
        Shows every pattern in the window and saves pictures in a folder.
    measure_actions : callable
        Measures the duration of user actions, a given number of times each, and writes the results to a page.
    measure_openings : callable or None
        Opens the window a given number of times; returns `wall_ms` and `cpu_ms` up to its first picture for each.
        Raises RuntimeError with the reason if it does not open.
    """

    open_window: Callable[..., int]
    run_tour: Callable[[str], int]
    measure_actions: Callable[[Path, int], int]
    measure_openings: Callable[[int], Sequence[Any]] | None = None


def main(arguments: Sequence[str], desktop: Desktop) -> int:
    """Run one command and return the exit code.

    Parameters
    ----------
    arguments : sequence of str
        The command line without the program's name.
    """
    _replace_closed_streams()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # the terminal's encoding may lack some characters
    try:
        if _is_file_argument(arguments):
            return desktop.open_window(Path(arguments[0]))
        words, program = split_program(arguments)
        if not program:
            words, program = split_arguments(arguments)
        if sum(word.startswith("-") for word in words) > _MAX_OPTIONS:
            raise InputError(f"There are more than {_MAX_OPTIONS:,} options.")
        options = _create_parser(desktop).parse_args(_insert_kernel_word(words))
        options.program = program
        _refuse_empty_names(options)
        cluster_options.refuse_window_options(options)
        command: Command = options.command
        code = command(options)
        sys.stdout.flush()
        return code
    except LockstepError as error:
        _print_error(error)
        return FAILED if isinstance(error, KernelError) else REFUSED
    except MemoryError:
        print("lockstep: There is not enough memory for this. Use a smaller input.", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # The reading process has closed the pipe, as `head` does.
        _discard_output()
        return FAILED
    except OSError as error:
        # Errors of files are InputErrors by now; what remains is output errors and refused system calls.
        _discard_output()
        failure = "Cannot write the output" if error.errno in _STREAM_ERRORS else "The operating system reports"
        reason = (error.strerror or str(error)).rstrip(".").lower()
        print(_to_one_line(f"lockstep: {failure}: {reason}."), file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(interrupts.STOPPED_MESSAGE, file=sys.stderr)
        return STOPPED


def _is_file_argument(arguments: Sequence[str]) -> bool:
    """Return whether the only argument is a file to open; no command's name ends in a file suffix."""
    return len(arguments) == 1 and Path(arguments[0]).suffix != "" and Path(arguments[0]).is_file()


def _replace_closed_streams() -> None:
    """Replace closed standard streams by the null device; otherwise the next file opened would take their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _discard_output() -> None:
    """Discard the rest of the output: Python flushes once more when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse_empty_names(options: argparse.Namespace) -> None:
    """Refuse an empty file name, such as from an unset script variable, which is different from no name."""
    names = ("input", "output", "frames", "folder", "graph", "scheduler", "csv", "junit")
    for name in (*names, f"{cluster_options.WINDOW_PREFIX}scheduler"):
        if getattr(options, name, None) == "":
            option = name.removeprefix(cluster_options.WINDOW_PREFIX)
            raise InputError(f"{'DIR' if name == 'folder' else f'--{option}'} is empty: give a name.")


def _create_parser(desktop: Desktop) -> argparse.ArgumentParser:
    from gpu.cli.user_code.script import COMMANDS

    parser = _Parser(
        prog="lockstep",
        description="Shows how parallel algorithms run on a GPU. Without a command it opens the window, with FILE if "
        "one is given.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=lambda options: _open_window(desktop, options))
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and its commit")
    parser.add_argument(
        "--where", action=_PrintFolders, nargs=0, help="print the folders of the installation, settings, data and cache"
    )
    cluster_options.add_window_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command_name")
    table: dict[str, tuple[str, Callable[[_Parser], None]]] = {
        "run": ("run a pattern without the window", _add_run),
        "list": ("list the patterns, variants and parameters", _add_list),
        "devices": ("list available devices, and why others are unavailable", _add_devices),
        "simulate": ("run any kernel on the simulator: findings and counters", _add_simulate),
        **{
            name: (f"run a {library} script on the simulator, without a GPU", partial(_add_script, name))
            for name, library in COMMANDS.items()
        },
        "program": ("run a whole CUDA C++ program on the simulator, without a GPU", _add_program),
        "check": ("check kernels, programs and scripts, as in a CI without a GPU", _add_check),
        "model": ("model the time of a pattern, or of a kernel of any CUDA C++ file, on a GPU", _add_model),
        "lessons": ("list the lessons, or check them", _add_lessons),
        "grade": ("grade submissions for a lesson's task on the simulator", _add_grade),
        "atomics": ("cost of atomics on an image or a text, and updates lost to a race", _add_atomics),
        "bench": ("benchmark every variant and its peers", partial(_add_bench, desktop)),
        "tour": ("save pictures of every pattern in the window", partial(_add_tour, desktop)),
    }
    for name, (summary, fill) in table.items():
        commands.add_parser(name, help=summary, allow_abbrev=False).fill = fill
    return parser


def _open_window(desktop: Desktop, options: argparse.Namespace) -> int:
    engine = cluster_options.read_window_engine(options)
    return desktop.open_window(None, engine) if engine else desktop.open_window(None)


def _with_temporary_files(command: Command) -> Command:
    """Return the command wrapped so that its temporary files are deleted however it ends."""

    def run(options: argparse.Namespace) -> int:
        with own_temporary_folder():
            return command(options)

    return run


def _add_run(run: _Parser) -> None:
    from gpu.engines import EXECUTORS, NAMES
    from gpu.patterns import all_patterns

    patterns = run.add_subparsers(title="patterns", metavar="PATTERN", required=True)
    for pattern in all_patterns().values():
        pattern_parser = patterns.add_parser(
            pattern.name,
            help=pattern.summary,
            description=pattern.summary,
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        pattern_parser.set_defaults(command=_with_temporary_files(_run), pattern=pattern)
        pattern_parser.add_argument(
            "--engine",
            choices=(*NAMES, cluster_options.DASK_ENGINE),
            default="auto",
            help="auto uses a GPU if one is usable, else the simulator; dask uses all GPUs of this machine, or a "
            "cluster's (default: auto)",
        )
        pattern_parser.add_argument(
            "--executor",
            choices=EXECUTORS,
            default="auto",
            help="the simulator's executor: compiled (to machine code) or lockstep; auto is compiled (default: auto)",
        )
        pattern_parser.add_argument(
            "--schedule", metavar="|".join(schedules.NAMES), default=schedules.ROUND_ROBIN, help=schedules.HELP
        )
        pattern_parser.add_argument(
            "--variant",
            choices=[variant.name for variant in pattern.variants],
            help=f"variant to run (default: {pattern.default_variant})",
        )
        _add_files(pattern_parser, pattern)
        pattern_parser.add_argument(
            "--source",
            metavar="FILE.cu",
            help="use this file instead of the pattern's kernel file, and check it for races and other errors",
        )
        pattern_parser.add_argument("--seed", metavar="N", type=_parse_seed, default=0, help=_SEED_HELP)
        pattern_parser.add_argument("--json", action="store_true", help="print JSON")
        cluster_options.add_options(pattern_parser)
        _add_parameters(pattern_parser, pattern)


def _add_list(parser: _Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--textbook",
        type=_parse_element_count,
        metavar="N",
        help="add textbook figures for N elements: operations, steps, average and peak parallelism",
    )
    parser.set_defaults(command=_list_patterns)


def _add_devices(parser: _Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    cluster_options.add_scheduler_options(parser)
    parser.set_defaults(command=_with_temporary_files(_list_devices))


def _add_simulate(parser: _Parser) -> None:
    from gpu.cli.user_code import simulate as cli_simulate

    parser.description = "Runs a kernel of a CUDA C++ file on the simulator, checks it for errors and counts its work."
    parser.epilog, parser.formatter_class = cli_simulate.EPILOG, argparse.RawDescriptionHelpFormatter
    cli_simulate.add_options(parser)
    parser.set_defaults(command=_with_temporary_files(_simulate))


def _add_script(name: str, parser: _Parser) -> None:
    from gpu.cli.user_code import script as cli_script

    cli_script.add_options(name, parser)
    parser.set_defaults(command=lambda options: cli_script.run(name, options, options.program))


def _add_program(parser: _Parser) -> None:
    from gpu.cli.user_code import program as cli_program

    cli_program.add_options(parser)
    parser.set_defaults(command=lambda options: cli_program.run(options, options.program))


def _add_parameters(pattern_parser: argparse.ArgumentParser, pattern: Pattern) -> None:
    group = pattern_parser.add_argument_group("parameters")
    for parameter in pattern.parameters:
        if parameter is not _input_choice(pattern):
            group.add_argument(
                f"--{parameter.name}",
                dest=f"{_PARAMETER_PREFIX}{parameter.name}",
                metavar=_find_metavar(parameter),
                help=_format_help(parameter),
            )


def _insert_kernel_word(arguments: Sequence[str]) -> list[str]:
    if arguments[:1] != ["model"]:
        return list(arguments)
    from gpu.cli import model as cli_model
    from gpu.patterns import all_patterns

    return cli_model.insert_kernel_word(arguments, tuple(all_patterns()))


def _add_model(modeling: _Parser) -> None:
    from gpu.cli import model as cli_model
    from gpu.cli.user_code import simulate as cli_simulate
    from gpu.patterns import all_patterns

    modeling.description = (
        "Models a pattern's launches on a described GPU, or, as `model FILE.cu KERNEL`, one launch of a file's kernel."
    )
    forms = modeling.add_subparsers(title="patterns, or a file", metavar="PATTERN|FILE.cu", required=True)
    for pattern in all_patterns().values():
        pattern_parser = forms.add_parser(
            pattern.name, help=pattern.summary, description=pattern.summary, allow_abbrev=False
        )
        pattern_parser.set_defaults(command=_with_temporary_files(_model), pattern=pattern)
        pattern_parser.add_argument(
            "--variant",
            choices=[variant.name for variant in pattern.variants],
            help=f"variant to model (default: {pattern.default_variant})",
        )
        _add_files(pattern_parser, pattern, results=False)
        pattern_parser.add_argument("--seed", metavar="N", type=_parse_seed, default=0, help=_SEED_HELP)
        cli_model.add_common_options(pattern_parser)
        _add_parameters(pattern_parser, pattern)
    file = forms.add_parser(
        cli_model.KERNEL_WORD,
        help="a file's kernel; the word `kernel` may be omitted",
        epilog=cli_simulate.EPILOG.partition("\nexit codes")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    cli_simulate.add_launch_options(file)
    cli_model.add_common_options(file)
    file.set_defaults(command=_with_temporary_files(_model_kernel))


def _input_choice(pattern: Pattern) -> Choice | None:
    """Return the choice of input values that --input sets, for a pattern of numbers; None for other patterns."""
    return pattern.source if pattern.presentation.kind == "values" else None


def _add_files(pattern_parser: argparse.ArgumentParser, pattern: Pattern, *, results: bool = True) -> None:
    source = _input_choice(pattern)
    output = ""
    if source is not None:
        kinds = [option for option in source.options if option != FROM_FILE]
        pattern_parser.add_argument(
            "--input",
            metavar="|".join([*kinds, "FILE"]),
            help="generated values, or a file of values: .npy, or text with one "
            f"{'row' if pattern.dimensions == 2 else 'number'} per line (default: {source.default})",
        )
        output = "file for the result: .npy or .csv"
    elif isinstance(pattern.presentation, BodiesPresentation):
        pattern_parser.add_argument("--input", metavar="FILE", help="bodies, as .csv (x y z vx vy vz m) or .tipsy")
        output = "file for the bodies: .csv, .tipsy or .npy"
        if results:
            pattern_parser.add_argument(
                "--frames", metavar="DIR", help="folder for a picture of the start and of each step"
            )
    else:
        others = "; a text or numbers where those are counted" if pattern.subject is not None else ""
        pattern_parser.add_argument(
            "--input", metavar="FILE", help=f"an image (default: a photograph included with Lockstep){others}"
        )
        output = "file for the result: an image, .npy or .csv"
    if results:
        pattern_parser.add_argument("--output", metavar="FILE", help=output)


def _parse_seed(text: str) -> int:
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0, not {text!r}")
    return int(text)


def _parse_element_count(text: str) -> int:
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) > _MAX_ELEMENTS:
        raise argparse.ArgumentTypeError(f"a number of elements is a whole number up to 10^12, not {text[:20]!r}")
    return int(text)


def _find_metavar(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return "|".join(parameter.options)
    if isinstance(parameter, Text):
        return "TEXT"
    return "FILE" if isinstance(parameter, Matrix) else "N,N,..." if isinstance(parameter, BinEdges | Numbers) else "N"


def _format_help(parameter: Parameter) -> str:
    text = parameter.help
    if isinstance(parameter, Choice | Integer | Real):
        unit = f" {parameter.unit}" if parameter.unit else ""
        text += f" Default: {parameter.default}{unit}."
    if parameter.only_if:
        text += f" Only with --{parameter.only_if[0]} {', '.join(parameter.only_if[1])}."
    return text.replace("%", "%%")


def _print_error(error: LockstepError, *, with_detail: bool = False) -> None:
    position = f"{error.position}: " if isinstance(error, KernelError) and error.position else ""
    if error.message.startswith(position):
        position = ""
    print(_to_one_line(f"lockstep: {position}{error.message} {error.advice}"), file=sys.stderr)
    if error.detail and (with_detail or isinstance(error, CompileError)):
        print(error.detail, file=sys.stderr)


def _to_one_line(text: str) -> str:
    """Return a text as one line without control characters, whatever file names and arguments it contains."""
    line = " ".join(text.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return (
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[: _MAX_LINE_LENGTH // 2]} … {line[-_MAX_LINE_LENGTH // 2 :]}"
    )


def _run(options: argparse.Namespace) -> int:
    from gpu.cli.patterns import bodies as cli_bodies
    from gpu.cli.patterns import run as cli_run

    cluster_options.refuse_unused_options(options)
    run_options = _read_run_options(options)
    has_bodies = isinstance(options.pattern.presentation, BodiesPresentation)
    with interrupts.end_on_ctrl_c():
        if options.stream:
            from gpu.cli.patterns import streaming as cli_streamed

            cli_streamed.run(run_options, _read_cluster_run_options(options), options.raw or "")
            return OK
        if options.engine == cluster_options.DASK_ENGINE:
            run_options = replace(run_options, cluster=_read_cluster_run_options(options))
        is_good = cli_bodies.run(run_options) if has_bodies else cli_run.run(run_options)
    return OK if is_good else FAILED


def _read_run_options(options: argparse.Namespace) -> RunOptions:
    texts, input_file = _parameter_texts(options)
    return RunOptions(
        pattern=options.pattern,
        variant=options.pattern.variant(options.variant or options.pattern.default_variant),
        texts=texts,
        engine=options.engine,
        executor=options.executor,
        schedule=options.schedule,
        input_file=input_file,
        output_file=options.output,
        source_file=options.source,
        frames=getattr(options, "frames", None),
        seed=options.seed,
        as_json=options.json,
    )


def _read_cluster_run_options(options: argparse.Namespace) -> cluster_options.ClusterRunOptions:
    settings = cluster_options.read_cluster_settings(options)
    return cluster_options.ClusterRunOptions(settings, options.chunks or (), options.graph or "")


def _parameter_texts(options: argparse.Namespace) -> tuple[dict[str, str], str | None]:
    """Return the texts of the parameters given on the command line, and the input file or None."""
    texts = {
        name.removeprefix(_PARAMETER_PREFIX): value
        for name, value in vars(options).items()
        if name.startswith(_PARAMETER_PREFIX) and value is not None
    }
    input_file = options.input
    choice = _input_choice(options.pattern)
    if choice is not None and input_file is not None:
        is_generated = input_file in choice.options and input_file != FROM_FILE
        texts[choice.name] = input_file if is_generated else FROM_FILE
        input_file = None if is_generated else input_file
    return texts, input_file


def _model(options: argparse.Namespace) -> int:
    from gpu.cli import model as cli_model
    from gpu.cli.patterns import bodies as cli_bodies
    from gpu.cli.patterns import run as cli_run

    texts, input_file = _parameter_texts(options)
    variant = options.pattern.variant(options.variant or options.pattern.default_variant)
    pattern = options.pattern.with_default_size(variant, None)
    with interrupts.end_on_ctrl_c():
        if isinstance(pattern.presentation, BodiesPresentation):
            inputs, params, _ = cli_bodies.read_inputs(pattern, texts, input_file, options.seed)
            params = {**params, **pattern.params_for_role(Role.STEPS, 0)}
        else:
            inputs, params, _ = cli_run.read_inputs(pattern, texts, input_file, None, options.seed)
        cli_model.print_modeled_pattern(pattern, variant.name, params, inputs, options.gpu, json=options.json)
    return OK


def _model_kernel(options: argparse.Namespace) -> int:
    from gpu.cli import model as cli_model
    from gpu.cli.user_code import simulate as cli_simulate

    try:
        with interrupts.end_on_ctrl_c():
            cli_model.print_modeled_kernel(options, cli_simulate.parse_defines(options))
    except KernelError as error:
        _print_error(error)
        return REFUSED  # as `simulate` if nothing ran
    return OK


def _add_lessons(lessons: _Parser) -> None:
    from gpu.cli import lessons as cli_lessons

    cli_lessons.add_options(lessons)


def _add_check(parser: _Parser) -> None:
    from gpu.cli.check import command

    parser.description, parser.epilog = command.DESCRIPTION, command.EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_options(parser)
    parser.set_defaults(command=_with_temporary_files(command.run))


def _add_grade(grading: _Parser) -> None:
    from gpu.cli import grade as cli_grade

    grading.description = (
        "Grades .cu files, each in a separate process without network, with 30 s and 1 GB: on many inputs, in several "
        "schedules, with all checkers."
    )
    cli_grade.add_options(grading)
    grading.set_defaults(command=_with_temporary_files(cli_grade.run))


def _add_bench(desktop: Desktop, benching: _Parser) -> None:
    from gpu.bench import command as benchmark

    benchmark.add_options(benching)
    benching.set_defaults(
        command=_with_temporary_files(
            lambda options: benchmark.run(options, desktop.measure_actions, desktop.measure_openings)
        )
    )


def _add_tour(desktop: Desktop, parser: _Parser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder for the pictures and the table of results")
    parser.set_defaults(command=_with_temporary_files(lambda options: desktop.run_tour(options.folder)))


def _add_atomics(parser: _Parser) -> None:
    from gpu.cli.patterns import atomics as cli_atomics

    parser.description = (
        "Counts the histogram's atomics by address, measures their cost, computes a textbook's example, "
        "and runs a race of two threads in every order."
    )
    cli_atomics.add_options(parser)
    parser.set_defaults(command=_with_temporary_files(_study_atomics))


def _study_atomics(options: argparse.Namespace) -> int:
    from gpu.cli.patterns import atomics as cli_atomics

    with interrupts.end_on_ctrl_c():
        cli_atomics.run(options)
    return OK


def _simulate(options: argparse.Namespace) -> int:
    from gpu.cli.user_code import simulate as cli_simulate

    try:
        return OK if cli_simulate.run(options) else FAILED
    except LockstepError as error:
        _print_error(error, with_detail=True)
        return REFUSED


def _list_patterns(options: argparse.Namespace) -> int:
    from gpu.cli import report as cli_text
    from gpu.patterns import all_patterns

    patterns = tuple(all_patterns().values())
    format_patterns = cli_text.format_patterns_json if options.json else cli_text.format_patterns_text
    print(format_patterns(patterns, options.textbook))
    return OK


def _list_devices(options: argparse.Namespace) -> int:
    from gpu.base.devices.survey import list_device_statuses
    from gpu.cli import report as cli_text

    if options.scheduler:
        from gpu.cli.patterns import cluster as cli_cluster

        workers = cli_cluster.find_workers(cluster_options.read_cluster_settings(options))
        data = cli_cluster.workers_data(workers)
        print(cli_text.format_json({"workers": data}) if options.json else cli_cluster.format_workers(workers))
        return OK
    statuses = list_device_statuses()
    print(cli_text.format_devices_json(statuses) if options.json else cli_text.format_devices_text(statuses))
    return OK
