"""The command `simulate`: run any kernel of any CUDA C++ file on the simulator, and report."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpu.base import resource_limits
from gpu.base.errors import InputError, KernelError
from gpu.base.schedules import HELP, NAMES, ROUND_ROBIN
from gpu.cli.user_code import options as user_code
from gpu.cli.user_code.amounts import MAX_DIGITS, parse_megabytes, parse_seconds, parse_whole_number
from gpu.files import file_access
from gpu.files.sources import SourceLines
from gpu.hosts.driver.compiler_options import parse_define

if TYPE_CHECKING:
    from gpu.kernel.simulate import Simulation

EPILOG = """\
arguments, one --arg per kernel parameter, in order:
  for a number     5, 0x1F, 1e-3, true; for a struct by value 1,2,3,4
  for a pointer    zeros:N          N elements of the parameter's type, all 0
                   full:N:V         N elements of value V
                   arange:N         0, 1, 2, ...
                   random:N[:SEED]  N elements from 0 to 1, or integers below 100
                   1,2,3            these values; "5," for a single one
                   text:LETTERS     the characters, without a terminating zero; text:@PATH reads them from a file
                   file:PATH.npy    the elements of a NumPy file
                   empty:N          N uninitialized elements, as from cudaMalloc: reading one is a finding
                   null             a null pointer
                   texture:FILE     for a texture object: a .npy file of one or two dimensions, or an image; a fetch
                                    returns the nearest texel, beyond an edge the last one. FILE,linear interpolates,
                                    FILE,normalized uses coordinates from 0 to 1, and FILE,border|wrap|mirror chooses
                                    another border mode

exit codes:
  0    no findings; there may be warnings
  1    findings: the kernel has errors
  2    nothing was run: it does not compile, is not supported, or an option is invalid
"""


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a kernel and its launch."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a CUDA C++ file; its host code is ignored")
    parser.add_argument(
        "kernel",
        metavar="KERNEL",
        help='a __global__ function, or an instance of a template: "reduce<float, 256>"; reduce@LINE if several have '
        "the name",
    )
    parser.add_argument(
        "--grid", metavar="X[,Y[,Z]]", type=_parse_extent, help="blocks (default: as in the file's <<<...>>>)"
    )
    parser.add_argument(
        "--block", metavar="X[,Y[,Z]]", type=_parse_extent, help="threads per block (default: as in the file)"
    )
    parser.add_argument(
        "--shared",
        metavar="BYTES",
        type=parse_whole_number,
        help="size of the extern __shared__ array (default: as in the file)",
    )
    user_code.add_preprocessor_options(parser)
    parser.add_argument(
        "--arg", metavar="SPEC", dest="arguments", action="append", default=[], help="the next argument, see below"
    )
    parser.add_argument(
        "--constant",
        metavar="NAME=SPEC",
        dest="constants",
        action="append",
        type=partial(_parse_named_value, "NAME=SPEC"),
        default=[],
        help="initial value of a __constant__ or __device__ variable, written as for --arg",
    )
    parser.add_argument(
        "--texture",
        metavar="NAME=FILE",
        dest="textures",
        action="append",
        type=partial(_parse_named_value, "NAME=FILE"),
        default=[],
        help="image of a texture reference: a .npy file of one or two dimensions, or an image; followed, after commas, "
        "by linear, normalized, and clamp, border, wrap or mirror",
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    add_launch_options(parser)
    parser.add_argument(
        "--dump",
        metavar="I=FILE.npy",
        dest="dumps",
        action="append",
        type=_parse_dump,
        default=[],
        help="save array argument I after the launch; the first is 0",
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=parse_whole_number, help="loop-iteration limit (default: 200000)"
    )
    parser.add_argument(
        "--max-seconds",
        metavar="S",
        type=parse_seconds,
        default=resource_limits.CPU_SECONDS,
        help="limit on the computing time, for parsing the file and for each batch of blocks; all blocks together may "
        f"take twelve times as long (default: {resource_limits.CPU_SECONDS:g}). On a busy machine, a batch also stops "
        f"after {resource_limits.MIN_WALL_SECONDS:g} s of clock time (1.6 S if that is longer), once it has computed "
        "for S/5",
    )
    parser.add_argument(
        "--max-memory",
        metavar="MB",
        type=parse_megabytes,
        default=resource_limits.MEMORY_BYTES,
        help=f"memory limit (default: {resource_limits.MEMORY_BYTES >> 20})",
    )
    parser.add_argument(
        "--schedule",
        metavar="|".join(NAMES),
        default=ROUND_ROBIN,
        help=HELP,
    )
    parser.add_argument("--trace", metavar="FILE", type=Path, help="record every step and save the recording")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> bool:
    """Run the kernel, print the report and save arrays and trace; return whether there are no findings."""
    from gpu.cli import findings
    from gpu.cli.user_code import simulate_report as cli_simulate_text
    from gpu.kernel.simulate import simulate

    dumps: dict[int, Path] = dict(options.dumps)
    _check_dumps(dumps, options.arguments)
    if options.trace is not None:
        file_access.check_target(options.trace)
    sources = SourceLines(options.file, options.include_dirs)
    try:
        simulation = simulate(
            options.file,
            options.kernel,
            options.grid,
            options.block,
            options.arguments,
            shared_bytes=options.shared,
            defines=parse_defines(options),
            include_dirs=options.include_dirs,
            max_seconds=options.max_seconds,
            max_memory=options.max_memory,
            schedule=options.schedule,
            traced=options.trace is not None,
            constants=dict(options.constants),
            textures=dict(options.textures),
            **({} if options.max_steps is None else {"max_steps": options.max_steps}),
        )
    except KernelError as error:
        # An error from clang includes its source line; an error from the simulator gets it here.
        if error.position is not None and not error.detail:
            error.detail = findings.format_excerpt(sources, error.position)
        raise
    _save_arrays(dumps, simulation)
    if simulation.trace is not None:
        with file_access.replace_file(options.trace) as file:
            simulation.trace.save(file)
    if options.json:
        print(cli_simulate_text.format_json(simulation, options.trace))
    else:
        print(cli_simulate_text.format_text(simulation, sources, options.trace))
    return not simulation.findings


def _check_dumps(dumps: Mapping[int, Path], arguments: Sequence[str]) -> None:
    for number, target in dumps.items():
        if number >= len(arguments):
            raise InputError(f"--dump {number}={target}: there are only {len(arguments)} arguments, numbered from 0.")
        if target.suffix != ".npy":
            raise InputError(f"--dump {number}={target}: the file's name must end in .npy.")
        file_access.check_target(target)
        word = arguments[number].partition(":")
        if word[0] == "texture" or (not (word[1] and word[2]) and "," not in word[0]):
            raise InputError(f"--dump {number}={target}: argument {number} is {arguments[number]!r}, not an array.")


def _save_arrays(dumps: Mapping[int, Path], simulation: Simulation) -> None:
    for number, target in dumps.items():
        with file_access.replace_file(target) as file:
            np.save(file, simulation.arrays[number])


def _parse_named_value(form: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {form}")
    return name, value


def parse_defines(options: argparse.Namespace) -> dict[str, str]:
    """Return the macros of the -D options."""
    return dict(map(parse_define, options.defines))


def _parse_extent(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not 1 <= len(words) <= 3 or not all(word.strip().isascii() and word.strip().isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not X, X,Y or X,Y,Z")
    if len(text) > MAX_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than any GPU supports")
    extents = tuple(int(word) for word in words)
    if min(extents) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} contains 0")
    return extents


def _parse_dump(text: str) -> tuple[int, Path]:
    number, equals, name = text.partition("=")
    if not (number.isascii() and number.isdigit() and equals and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not I=FILE.npy")
    return int(number), Path(name)
