"""The command `model`: model the time of a pattern, or of any file's kernel, on a described GPU."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu.base.errors import InputError
from gpu.cli.report import format_json, format_rows
from gpu.declaration.pattern import Params, Pattern
from gpu.files.sources import read_source
from gpu.messages.modeled_time import describe_least_time

if TYPE_CHECKING:
    from gpu.run.modeling.timing_model import ModeledRun

KERNEL_WORD = "kernel"
"""Word between `model` and a file's name; it can be omitted, and gives access to that form's --help."""

DEFAULT_GPU = "h200"


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of both forms of the command."""
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        default=DEFAULT_GPU,
        help=f"name of a GPU description, or a .toml file with one (default: {DEFAULT_GPU})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def insert_kernel_word(arguments: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Insert the word `kernel` into `model FILE.cu`, to distinguish it from `model PATTERN`."""
    words = list(arguments)
    if (
        words[:1] == ["model"]
        and len(words) > 1
        and words[1] not in (*patterns, KERNEL_WORD)
        and not words[1].startswith("-")
    ):
        words.insert(1, KERNEL_WORD)
    return words


def print_modeled_pattern(
    pattern: Pattern, variant_name: str, params: Params, inputs: Mapping[str, Any], gpu: str, *, json: bool
) -> None:
    """Model a variant of a pattern and print the result.

    Parameters
    ----------
    params : mapping
        All parameters of the pattern.
    inputs : mapping of str to array
        The inputs, which the host program may read.
    gpu : str
        The name of a GPU description, or a file with one.
    json : bool
        Whether to print JSON instead of text.

    Raises
    ------
    InputError, KernelError
        As of `gpu.run.modeling.timing_model.model_pattern`.
    """
    from gpu.timing.gpus import find_gpu

    variant = pattern.variant(variant_name)
    if not json:
        cost = pattern.cost(inputs, params)
        least_time = describe_least_time(find_gpu(gpu), cost.bytes_read, cost.bytes_written)
        _print_first_figure(f"{pattern.title}: {variant.title}", least_time)

    from gpu.run.modeling import timing_model  # after the first figure, as this import takes most of a second

    modeled_run = timing_model.model_pattern(variant, inputs, params, gpu, pattern=pattern.name)
    about = {"pattern": pattern.name, "variant": variant.name}
    _print_result(about, modeled_run, json=json)


def print_modeled_kernel(options: argparse.Namespace, defines: Mapping[str, str]) -> None:
    """Model a launch of a file's kernel and print the result."""
    from gpu.run.modeling import timing_model
    from gpu.timing.gpus import find_gpu

    if options.textures:
        raise InputError("--texture cannot be modeled: the timing model has no cache for texture references.")
    launch = timing_model.UnboundLaunch(
        options.file, read_source(options.file), options.kernel, options.grid, options.block, options.arguments,
        options.shared, defines, options.include_dirs, dict(options.constants),
    )  # fmt: skip
    gpu = find_gpu(options.gpu)
    _ = launch.bound_arguments  # errors of names and arguments come before the first figure
    if not options.json:
        least_time = describe_least_time(gpu, blocks=launch.shape.blocks)
        _print_first_figure(f"{Path(options.file).name}: {options.kernel}", least_time)
    modeled_run = timing_model.model_launch(launch, gpu)
    about = {"file": str(options.file), "kernel": options.kernel}
    _print_result(about, modeled_run, json=options.json)


def _print_first_figure(title: str, least_time: str) -> None:
    """Print a bound at once, as modeling takes seconds."""
    print(f"{title}\n{format_rows([('bound', least_time)])}", flush=True)


def _print_result(identification: Mapping[str, Any], modeled_run: ModeledRun, *, json: bool) -> None:
    from gpu.run.modeling.timing_model_requests import summarize_run

    reason = summarize_run(modeled_run, 0.0).reason
    if json:
        print(format_json({**identification, **modeled_run.data(), "reason": reason}))
        return
    (gpu, time, *rows) = modeled_run.rows()
    print(format_rows([gpu, time, ("why", reason), *rows]))
