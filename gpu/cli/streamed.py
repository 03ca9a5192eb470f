"""`run --stream`: a pattern over files that workers read and write by themselves."""

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

_NOT_COMPARED = "not compared: nothing is gathered that a reference could be made of"
_PRINTED = 10


def run(
    pattern: Pattern,
    variant_name: str,
    given: Mapping[str, str],
    asked: Asked,
    *,
    source: str | None,
    raw: str,
    target: str,
    chunks: tuple[int, ...],
    as_json: bool,
) -> None:
    """Run a variant over a file, and print what was done.

    Parameters
    ----------
    pattern, variant_name
    given : mapping
        Texts of parameters.
    asked : Asked
        The cluster.
    source : str or None
        The file with the input.
    raw : str
        Its type and shape, where it has no header.
    target : str
        Where the result goes.
    chunks : tuple of int
    as_json : bool
    """
    load_dask()
    from gpu.distributed.files import open_streamed

    if source is None:
        raise InputError("--stream wants an --input FILE: what is made is in memory already.")
    variant = pattern.variant(variant_name)
    params = asked_of_file(pattern, given)
    found = open_streamed(source, raw)
    with opened(asked) as cluster:
        from gpu.distributed.streamed import stream

        bar = Bar(len(cluster.workers))
        try:
            done = stream(cluster, pattern, variant, found, params, bar, target=target, chunks=chunks)
        finally:
            bar.close()
        small = done.outputs.get(pattern.result)
        if small is not None and target:
            export.save(target, small)
        if as_json:
            device = cluster.workers[0].device
            about = {"pattern": pattern.name, "variant": variant.name, "engine": device.engine, "verified": None}
            moved = {"read_bytes": done.read_bytes, "written_bytes": done.written_bytes}
            print(cli_text.as_json({**about, **done.done.data(), **moved}))
            return
        rows = [*_about(cluster, variant, source), *cli_text.cluster_rows(done.done)]
        rate = done.read_bytes / max(done.done.wall_s, 1e-9) / 1e9
        rows.append(("read", f"{done.read_bytes} bytes, {rate:.3g} GB/s by the clock; {done.written_bytes} written"))
        rows.append(("verified", _NOT_COMPARED))
        for name, values in done.outputs.items():
            shown = " ".join(map(str, values.ravel()[:_PRINTED].tolist()))
            rows.append((name, f"{shown} ... ({values.size} in all)" if values.size > _PRINTED else shown))
        if target:
            rows.append(("saved", target))
        print(f"{pattern.title}\n{cli_text.rows_as_text(rows)}")


def _about(cluster: Cluster, variant: Variant, source: str) -> list[tuple[str, str]]:
    from gpu.distributed.run import devices_text

    device = cluster.workers[0].device
    return [
        ("engine", f"{device.engine} ({device.executor})"),
        ("device", devices_text(cluster)),
        ("variant", f"{variant.name}: {variant.title}"),
        ("input", Path(source).name),
    ]
