"""The command `model`: how long a pattern, or a kernel of any file, would take on a GPU that is described."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu.cli.report import as_json, rows_as_text
from gpu.declaration.pattern import Params, Pattern
from gpu.errors import InputError
from gpu.files.sources import read_source

if TYPE_CHECKING:
    from gpu.run.model import ModeledRun

KERNEL = "kernel"
"""What stands between `model` and a file's name, where somebody asks for the help of that."""

DEFAULT_GPU = "h200"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add what both forms of the command take."""
    parser.add_argument(
        "--gpu",
        metavar="NAME",
        default=DEFAULT_GPU,
        help=f"which GPU, or a .toml file that describes one ({DEFAULT_GPU})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def completed(arguments: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return a command line in which `model FILE.cu` is told from `model PATTERN`."""
    given = list(arguments)
    if (
        given[:1] == ["model"]
        and len(given) > 1
        and given[1] not in (*patterns, KERNEL)
        and not given[1].startswith("-")
    ):
        given.insert(1, KERNEL)
    return given


def of_pattern(
    pattern: Pattern, variant_name: str, params: Params, inputs: Mapping[str, Any], gpu: str, *, json: bool
) -> None:
    """Model a variant and print what comes of it."""
    from gpu.run import model

    variant = pattern.variant(variant_name)
    found = model.model_pattern(variant, inputs, params, gpu, pattern=pattern.name)
    about = {"pattern": pattern.name, "variant": variant.name}
    _print(about, f"{pattern.title}: {variant.title}", found, json=json)


def of_kernel(options: argparse.Namespace, defines: Mapping[str, str]) -> None:
    """Model a launch of a kernel of a file and print what comes of it."""
    from gpu.run import model

    if options.textures:
        raise InputError("--texture is not modeled: texture references are fetched through a cache of their own.")
    found = model.model_kernel(
        options.file,
        read_source(options.file),
        options.kernel,
        options.grid,
        options.block,
        options.arguments,
        options.gpu,
        shared_bytes=options.shared,
        defines=defines,
        include_dirs=options.include_dirs,
        constants=dict(options.constants),
    )
    about = {"file": str(options.file), "kernel": options.kernel}
    _print(about, f"{Path(options.file).name}: {options.kernel}", found, json=options.json)


def _print(about: Mapping[str, Any], title: str, found: ModeledRun, *, json: bool) -> None:
    print(as_json({**about, **found.data()}) if json else f"{title}\n{rows_as_text(found.rows())}")
