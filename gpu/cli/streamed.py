"""`run --stream`: run a pattern over files that the workers read and write themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpu.cli import report as cli_text
from gpu.cli.cluster import Bar
from gpu.cli.run import asked_of_file
from gpu.declaration.pattern import Pattern, Variant
from gpu.distributed.asked import Asked
from gpu.distributed.cluster import Cluster, opened
from gpu.distributed.library import load_dask
from gpu.errors import InputError
from gpu.run import export

_NOT_COMPARED = "not compared: a reference result would need the whole input in memory"
_PRINTED = 10


def run(
    pattern: Pattern,
    variant_name: str,
    texts: Mapping[str, str],
    settings: Asked,
    *,
    input_file: str | None,
    raw: str,
    output_file: str,
    chunks: tuple[int, ...],
    as_json: bool,
) -> None:
    """Run a variant over a file, and print a report.

    Parameters
    ----------
    pattern : Pattern
    variant_name : str
    texts : mapping
        Texts of the parameters given on the command line, by name.
    settings : Asked
        Cluster to run on.
    input_file : str or None
    raw : str
        Type and shape of an input file without a header, such as "float32:1000000".
    output_file : str
        File for the result; "" for none.
    chunks : tuple of int
    as_json : bool
    """
    load_dask()
    from gpu.distributed.files import open_streamed

    if input_file is None:
        raise InputError("--stream needs an --input FILE: generated input is in memory anyway.")
    variant = pattern.variant(variant_name)
    params = asked_of_file(pattern, texts)
    file = open_streamed(input_file, raw)
    with opened(settings) as cluster:
        from gpu.distributed.streamed import stream

        bar = Bar(len(cluster.workers))
        try:
            result = stream(cluster, pattern, variant, file, params, bar, target=output_file, chunks=chunks)
        finally:
            bar.close()
        gathered = result.outputs.get(pattern.result)
        if gathered is not None and output_file:
            export.save(output_file, gathered)
        if as_json:
            device = cluster.workers[0].device
            about = {"pattern": pattern.name, "variant": variant.name, "engine": device.engine, "verified": None}
            moved = {"read_bytes": result.read_bytes, "written_bytes": result.written_bytes}
            print(cli_text.as_json({**about, **result.done.data(), **moved}))
            return
        rows = [*_about(cluster, variant, input_file), *cli_text.cluster_rows(result.done)]
        rate = result.read_bytes / max(result.done.wall_s, 1e-9) / 1e9
        rows.append(
            ("read", f"{result.read_bytes} bytes, {rate:.3g} GB/s by the clock; {result.written_bytes} written")
        )
        rows.append(("verified", _NOT_COMPARED))
        for name, values in result.outputs.items():
            shown = " ".join(map(str, values.ravel()[:_PRINTED].tolist()))
            rows.append((name, f"{shown} ... ({values.size} in all)" if values.size > _PRINTED else shown))
        if output_file:
            rows.append(("saved", output_file))
        print(f"{pattern.title}\n{cli_text.rows_as_text(rows)}")


def _about(cluster: Cluster, variant: Variant, input_file: str) -> list[tuple[str, str]]:
    from gpu.distributed.run import devices_text

    device = cluster.workers[0].device
    return [
        ("engine", f"{device.engine} ({device.executor})"),
        ("device", devices_text(cluster)),
        ("variant", f"{variant.name}: {variant.title}"),
        ("input", Path(input_file).name),
    ]
