"""The commands, made from the declarations: run, list, devices; what needs the window is handed in."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from gpu import __version__, schedules
from gpu.cli import cluster_options, interrupts
from gpu.cli.exit_codes import FAILED, OK, REFUSED, STOPPED
from gpu.cli.program import arguments_apart
from gpu.cli.pycuda import program_apart
from gpu.declaration.pattern import Choice, Integer, Matrix, Parameter, Pattern, Real
from gpu.declaration.presentation import BodiesPresentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import BinEdges, Numbers, Text
from gpu.errors import CompileError, InputError, KernelError, LockstepError
from gpu.process.temporaries import own_temporaries

_EPILOG = f"""\
exit codes:
  {OK}    it ran, and the result is right (or wrong by design, in a cautionary variant)
  {FAILED}    a kernel did not compile, failed while it ran, gave a result that is not right, or (with --source) makes
       mistakes that the checkers find
  {REFUSED}    nothing was run: bad input, or an engine that is not there
  {STOPPED}  stopped by Ctrl+C
"""

_PARAMETER = "parameter "
"""How the parameters' names begin among the options, so that none can be taken for an option of every pattern."""

_LONGEST_LINE = 2000
_MOST_DIGITS = 1000
_MOST_ELEMENTS = 10**12
_MOST_OPTIONS = 5000
"""Each takes longer the more there are."""

_OF_STREAMS = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE, getattr(errno, "EDQUOT", errno.ENOSPC))

Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Complains in one line, and takes every negative number for a value, -1e5 and -inf too.

    What `fill` adds is added when the first word is parsed: only one command's options are ever wanted.
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
        self.exit(REFUSED, f"{_on_one_line(f'{self.prog}: {message} (--help tells more)')}\n")


class Desktop(NamedTuple):
    """What commands do with the window; each returns the exit code.

    Parameters
    ----------
    open : callable
        Opens it, with a file or None, and where that is said on an engine: its name, or a cluster's `Asked`.
    tour : callable
        Drives it through every pattern and saves pictures in a folder.
    measure : callable
        Measures how long it takes for a move, each as often as is said, and writes that to a page.
    openings : callable or None
        Opens it anew as often as is said; of each, `wall_ms` and `cpu_ms` up to its first picture. RuntimeError says
        why it does not open.
    """

    open: Callable[..., int]
    tour: Callable[[str], int]
    measure: Callable[[Path, int], int]
    openings: Callable[[int], Sequence[Any]] | None = None


def main(arguments: Sequence[str], desktop: Desktop) -> int:
    """Run one command and return the exit code.

    Parameters
    ----------
    arguments : sequence of str
        What stands after the program's name.
    desktop : Desktop
    """
    _open_what_is_closed()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # where a terminal has not every letter
    try:
        if _is_file(arguments):
            return desktop.open(Path(arguments[0]))
        own, program = program_apart(arguments)
        if not program:
            own, program = arguments_apart(arguments)
        if sum(word.startswith("-") for word in own) > _MOST_OPTIONS:
            raise InputError(f"There are more than {_MOST_OPTIONS:,} options.")
        options = _parser(desktop).parse_args(_completed(own))
        options.program = program
        _refuse_empty_names(options)
        cluster_options.refuse_before_command(options)
        command: Command = options.command
        code = command(options)
        sys.stdout.flush()
        return code
    except LockstepError as error:
        _complain(error)
        return FAILED if isinstance(error, KernelError) else REFUSED
    except MemoryError:
        print("lockstep: There is not enough memory for this. Use a smaller input.", file=sys.stderr)
        return REFUSED
    except BrokenPipeError:
        # Who reads has gone, as `head` does.
        _write_nowhere()
        return FAILED
    except OSError as error:
        # Files have their own sentences: what is left is what is printed, or what the system does not give.
        _write_nowhere()
        what = "The output cannot be written" if error.errno in _OF_STREAMS else "The system refuses"
        print(_on_one_line(f"lockstep: {what}: {(error.strerror or str(error)).rstrip('.').lower()}."), file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(interrupts.SENTENCE, file=sys.stderr)
        return STOPPED


def _is_file(arguments: Sequence[str]) -> bool:
    """Whether the window is to be opened with a file: no command has a name that ends like a file's."""
    return len(arguments) == 1 and Path(arguments[0]).suffix != "" and Path(arguments[0]).is_file()


def _open_what_is_closed() -> None:
    """Let what is written to a stream that is closed go nowhere; the next file to be opened would stand in for it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _write_nowhere() -> None:
    """Have what is still to be printed go nowhere: Python flushes once more when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse_empty_names(options: argparse.Namespace) -> None:
    """Refuse a file without a name, such as what a script's variable left: it is not the same as none."""
    for name in ("input", "output", "frames", "folder"):
        if getattr(options, name, None) == "":
            raise InputError(f"{'DIR' if name == 'folder' else f'--{name}'} is empty: it is a name that is wanted.")


def _parser(desktop: Desktop) -> argparse.ArgumentParser:
    from gpu.cli import own_code
    from gpu.cli import program as cli_program
    from gpu.cli import pycuda as cli_pycuda
    from gpu.cli import simulate as cli_simulate

    parser = _Parser(
        prog="lockstep",
        description="Shows how parallel algorithms run on a GPU. Without a command it opens a window, or a FILE in it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=lambda options: _open_window(desktop, options))
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}", help="print the version")
    cluster_options.add_window(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="word")
    running = commands.add_parser("run", help="run a pattern without the window", allow_abbrev=False)
    running.fill = _add_run

    listing = commands.add_parser("list", help="the patterns, their variants and parameters", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.add_argument(
        "--textbook",
        type=_elements,
        metavar="N",
        help="with what textbooks say of N elements: operations, steps, average and peak parallelism",
    )
    listing.set_defaults(command=_list)

    devices = commands.add_parser("devices", help="what there is to run on, and why not", allow_abbrev=False)
    devices.add_argument("--json", action="store_true", help="print JSON")
    cluster_options.add_scheduler(devices)
    devices.set_defaults(command=_tidily(_devices))

    simulating = commands.add_parser(
        "simulate",
        help="any kernel on the simulator: findings and counters",
        description="Runs a kernel of a CUDA C++ file on the simulator, finds its mistakes, and counts what it does.",
        epilog=cli_simulate.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    cli_simulate.add_options(simulating)
    simulating.set_defaults(command=_tidily(_simulate))

    scripts = commands.add_parser("pycuda", help="a PyCUDA script on the simulator, without a GPU", **cli_pycuda.ABOUT)
    own_code.add_options(scripts)
    scripts.set_defaults(command=lambda options: cli_pycuda.run(options, options.program))
    programs = commands.add_parser(
        "program", help="a whole CUDA C++ program on the simulator, without a GPU", **cli_program.ABOUT
    )
    own_code.add_options(programs)
    cli_program.add_options(programs)
    programs.set_defaults(command=lambda options: cli_program.run(options, options.program))
    modeling = commands.add_parser(
        "model",
        help="how long a pattern, or a kernel of any CUDA C++ file, would take on a GPU",
        description="Models a pattern's launches on a GPU that is described, or, as `model FILE.cu KERNEL`, one launch "
        "of a file's kernel.",
        allow_abbrev=False,
    )
    modeling.fill = _add_model

    lessons = commands.add_parser(
        "lessons", help="the lessons, and whether each holds what it promises", allow_abbrev=False
    )
    lessons.fill = _add_lessons
    grading = commands.add_parser(
        "grade",
        help="submissions for a lesson's task, judged by the simulator",
        description="Judges .cu files, each in a process of its own without network, with 30 s and 1 GB: on many "
        "inputs, in several orders of threads, before all checkers.",
        allow_abbrev=False,
    )
    grading.fill = _add_grade

    contending = commands.add_parser(
        "atomics",
        help="what atomics cost on an image or a text, and what a race loses",
        description="Counts the histogram's atomics by address, models and measures their cost, and runs a race of two "
        "threads in every order.",
        allow_abbrev=False,
    )
    contending.fill = _add_atomics

    benching = commands.add_parser("bench", help="measure every variant beside its peers", allow_abbrev=False)
    benching.fill = partial(_add_bench, desktop)

    touring = commands.add_parser("tour", help="save pictures of every pattern in the window", allow_abbrev=False)
    touring.add_argument("folder", metavar="DIR", help="where the pictures and the table of results go")
    touring.set_defaults(command=_tidily(lambda options: desktop.tour(options.folder)))
    return parser


def _open_window(desktop: Desktop, options: argparse.Namespace) -> int:
    engine = cluster_options.of_window(options)
    return desktop.open(None, engine) if engine else desktop.open(None)


def _tidily(command: Command) -> Command:
    """Return a command whose temporary files are gone with it, however it ends."""

    def run(options: argparse.Namespace) -> int:
        with own_temporaries():
            return command(options)

    return run


def _add_run(run: _Parser) -> None:
    from gpu.engines import EXECUTORS, NAMES
    from gpu.patterns import all_patterns

    patterns = run.add_subparsers(title="patterns", metavar="PATTERN", required=True)
    for pattern in all_patterns().values():
        own = patterns.add_parser(
            pattern.name,
            help=pattern.summary,
            description=pattern.summary,
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        own.set_defaults(command=_tidily(_run), pattern=pattern)
        own.add_argument(
            "--engine",
            choices=(*NAMES, cluster_options.ENGINE),
            default="auto",
            help="auto takes a GPU where one can be used; dask all GPUs of this machine, or a cluster's",
        )
        own.add_argument(
            "--executor",
            choices=EXECUTORS,
            default="auto",
            help="how the simulator runs kernels: compiled to machine code, or in lockstep; auto compiles",
        )
        own.add_argument(
            "--schedule", metavar="|".join(schedules.NAMES), default=schedules.ROUND_ROBIN, help=schedules.HELP
        )
        own.add_argument(
            "--variant",
            choices=[variant.name for variant in pattern.variants],
            help=f"default: {pattern.default_variant}",
        )
        _add_files(own, pattern)
        own.add_argument(
            "--source",
            dest="kernel",
            metavar="FILE.cu",
            help="take this text for the pattern's kernel file; it is checked for races and other mistakes too",
        )
        own.add_argument("--seed", type=_seed, default=0, help="what random inputs grow from; an image is not random")
        own.add_argument("--json", action="store_true", help="print JSON")
        cluster_options.add_options(own)
        _add_parameters(own, pattern)


def _add_parameters(own: argparse.ArgumentParser, pattern: Pattern) -> None:
    group = own.add_argument_group("parameters")
    for parameter in pattern.parameters:
        if parameter is not _input_choice(pattern):
            group.add_argument(
                f"--{parameter.name}",
                dest=f"{_PARAMETER}{parameter.name}",
                metavar=_metavar(parameter),
                help=_help(parameter),
            )


def _completed(arguments: Sequence[str]) -> list[str]:
    from gpu.cli import model as cli_model
    from gpu.patterns import all_patterns

    return cli_model.completed(arguments, tuple(all_patterns()) if arguments[:1] == ["model"] else ())


def _add_model(modeling: _Parser) -> None:
    from gpu.cli import model as cli_model
    from gpu.cli import simulate as cli_simulate
    from gpu.patterns import all_patterns

    what = modeling.add_subparsers(title="patterns, or a file", metavar="PATTERN|FILE.cu", required=True)
    for pattern in all_patterns().values():
        own = what.add_parser(pattern.name, help=pattern.summary, description=pattern.summary, allow_abbrev=False)
        own.set_defaults(command=_tidily(_model), pattern=pattern)
        own.add_argument(
            "--variant",
            choices=[variant.name for variant in pattern.variants],
            help=f"default: {pattern.default_variant}",
        )
        _add_files(own, pattern, results=False)
        own.add_argument("--seed", type=_seed, default=0, help="what random inputs grow from; an image is not random")
        cli_model.add_common(own)
        _add_parameters(own, pattern)
    file = what.add_parser(
        cli_model.KERNEL,
        help="a file's kernel; the word may be left out",
        epilog=cli_simulate.EPILOG.partition("\nexit codes")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    cli_simulate.add_launch_options(file)
    cli_model.add_common(file)
    file.set_defaults(command=_tidily(_model_kernel))


def _input_choice(pattern: Pattern) -> Choice | None:
    """Return the parameter of a pattern of numbers that says how they are made: --input has it, or a file's name."""
    return pattern.source if pattern.presentation.kind == "values" else None


def _add_files(own: argparse.ArgumentParser, pattern: Pattern, *, results: bool = True) -> None:
    source = _input_choice(pattern)
    output = ""
    if source is not None:
        kinds = [option for option in source.options if option != FROM_FILE]
        own.add_argument(
            "--input",
            metavar="|".join([*kinds, "FILE"]),
            help="how the values are made, or a file of them: .npy, or text with one "
            f"{'row' if pattern.dimensions == 2 else 'number'} a line (default: {source.default})",
        )
        output = "where the result goes: .npy or .csv"
    elif isinstance(pattern.presentation, BodiesPresentation):
        own.add_argument("--input", metavar="FILE", help="bodies, as .csv (x y z vx vy vz m) or .tipsy")
        output = "where the bodies go: .csv, .tipsy or .npy"
        if results:
            own.add_argument("--frames", metavar="DIR", help="where a picture goes after each step, and one before")
    else:
        others = "; a text or numbers where those are counted" if pattern.subject is not None else ""
        own.add_argument(
            "--input", metavar="FILE", help=f"an image (default: a photograph that comes with Lockstep){others}"
        )
        output = "where the result goes: an image, .npy or .csv"
    if results:
        own.add_argument("--output", metavar="FILE", help=output)


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0, not {text!r}")
    return int(text)


def _elements(text: str) -> int:
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) > _MOST_ELEMENTS:
        raise argparse.ArgumentTypeError(f"a number of elements is a whole number up to 10^12, not {text[:20]!r}")
    return int(text)


def _metavar(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return "|".join(parameter.options)
    if isinstance(parameter, Text):
        return "TEXT"
    return "FILE" if isinstance(parameter, Matrix) else "N,N,..." if isinstance(parameter, BinEdges | Numbers) else "N"


def _help(parameter: Parameter) -> str:
    text = parameter.help
    if isinstance(parameter, Choice | Integer | Real):
        unit = f" {parameter.unit}" if parameter.unit else ""
        text += f" Default: {parameter.default}{unit}."
    if parameter.only_if:
        text += f" Only with --{parameter.only_if[0]} {', '.join(parameter.only_if[1])}."
    return text.replace("%", "%%")


def _complain(error: LockstepError, *, evidence: bool = False) -> None:
    position = f"{error.position}: " if isinstance(error, KernelError) and error.position else ""
    if error.message.startswith(position):
        position = ""
    print(_on_one_line(f"lockstep: {position}{error.message} {error.advice}"), file=sys.stderr)
    if error.detail and (evidence or isinstance(error, CompileError)):
        print(error.detail, file=sys.stderr)


def _on_one_line(text: str) -> str:
    """Return a text as a line that no file's name, or whatever else was typed, can break or color."""
    line = " ".join(text.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 2 :]}"


def _run(options: argparse.Namespace) -> int:
    from gpu.cli import bodies as cli_bodies
    from gpu.cli import run as cli_run

    cluster_options.refuse_without(options)
    given, source = _given(options)
    of_bodies = isinstance(options.pattern.presentation, BodiesPresentation)
    run = partial(cli_bodies.run, frames=options.frames) if of_bodies else cli_run.run
    if options.stream:
        return _stream(options, given, source)
    if options.engine == cluster_options.ENGINE:
        asked = cluster_options.asked_of(options)
        run = partial(run, cluster=cluster_options.OnCluster(asked, options.chunks or (), options.graph or ""))
    with interrupts.ctrl_c_reaches_everywhere(STOPPED):
        right = run(
            options.pattern,
            options.variant or options.pattern.default_variant,
            given,
            engine_name=options.engine,
            executor=options.executor,
            schedule=options.schedule,
            source=source,
            seed=options.seed,
            target=options.output,
            kernel=options.kernel,
            as_json=options.json,
        )
    return OK if right else FAILED


def _stream(options: argparse.Namespace, given: Mapping[str, str], source: str | None) -> int:
    from gpu.cli import streamed as cli_streamed

    with interrupts.ctrl_c_reaches_everywhere(STOPPED):
        cli_streamed.run(
            options.pattern,
            options.variant or options.pattern.default_variant,
            given,
            cluster_options.asked_of(options),
            source=source,
            raw=options.raw or "",
            target=options.output or "",
            chunks=options.chunks or (),
            as_json=options.json,
        )
    return OK


def _given(options: argparse.Namespace) -> tuple[dict[str, str], str | None]:
    """Return the parameters that were given, as texts, and the file with the input."""
    given = {
        name.removeprefix(_PARAMETER): value
        for name, value in vars(options).items()
        if name.startswith(_PARAMETER) and value is not None
    }
    source = options.input
    choice = _input_choice(options.pattern)
    if choice is not None and source is not None:
        made = source in choice.options and source != FROM_FILE
        given[choice.name] = source if made else FROM_FILE
        source = None if made else source
    return given, source


def _model(options: argparse.Namespace) -> int:
    from gpu.cli import bodies as cli_bodies
    from gpu.cli import model as cli_model
    from gpu.cli import run as cli_run

    given, source = _given(options)
    with interrupts.ctrl_c_reaches_everywhere(STOPPED):
        if isinstance(options.pattern.presentation, BodiesPresentation):
            inputs, params, _ = cli_bodies.read_inputs(options.pattern, given, source, options.seed)
            params = {**params, **options.pattern.with_value(Role.STEPS, 0)}
        else:
            inputs, params, _ = cli_run.read_inputs(options.pattern, given, source, None, options.seed)
        variant = options.variant or options.pattern.default_variant
        cli_model.of_pattern(options.pattern, variant, params, inputs, options.gpu, json=options.json)
    return OK


def _model_kernel(options: argparse.Namespace) -> int:
    from gpu.cli import model as cli_model
    from gpu.cli import simulate as cli_simulate

    with interrupts.ctrl_c_reaches_everywhere(STOPPED):
        cli_model.of_kernel(options, cli_simulate.defined(options))
    return OK


def _add_lessons(lessons: _Parser) -> None:
    from gpu.cli import lessons as cli_lessons

    cli_lessons.add_options(lessons)


def _add_grade(grading: _Parser) -> None:
    from gpu.cli import grade as cli_grade

    cli_grade.add_options(grading)
    grading.set_defaults(command=_tidily(cli_grade.run))


def _add_bench(desktop: Desktop, benching: _Parser) -> None:
    from gpu.bench import command as benchmark

    benchmark.add_options(benching)
    benching.set_defaults(command=_tidily(lambda options: benchmark.run(options, desktop.measure, desktop.openings)))


def _add_atomics(parser: _Parser) -> None:
    from gpu.cli import atomics as cli_atomics

    cli_atomics.add_options(parser)
    parser.set_defaults(command=_tidily(_atomics))


def _atomics(options: argparse.Namespace) -> int:
    from gpu.cli import atomics as cli_atomics

    with interrupts.ctrl_c_reaches_everywhere(STOPPED):
        cli_atomics.run(options)
    return OK


def _simulate(options: argparse.Namespace) -> int:
    from gpu.cli import simulate as cli_simulate

    try:
        return OK if cli_simulate.run(options) else FAILED
    except LockstepError as error:
        _complain(error, evidence=True)
        return REFUSED


def _list(options: argparse.Namespace) -> int:
    from gpu.cli import report as cli_text
    from gpu.patterns import all_patterns

    patterns = tuple(all_patterns().values())
    told = cli_text.patterns_as_json if options.json else cli_text.patterns_as_text
    print(told(patterns, options.textbook))
    return OK


def _devices(options: argparse.Namespace) -> int:
    from gpu.cli import report as cli_text
    from gpu.devices.survey import survey

    if options.scheduler:
        from gpu.cli import cluster as cli_cluster

        workers = cli_cluster.workers_of(cluster_options.asked_of(options))
        data = cli_cluster.workers_data(workers)
        print(cli_text.as_json({"workers": data}) if options.json else cli_cluster.workers_text(workers))
        return OK
    found = survey()
    print(cli_text.devices_as_json(found) if options.json else cli_text.devices_as_text(found))
    return OK
