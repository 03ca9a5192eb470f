"""`run --stream`: run a pattern over files that the workers read and write themselves."""

from __future__ import annotations

from pathlib import Path

from gpu.base.errors import InputError
from gpu.cli import report as cli_text
from gpu.cli.patterns.cluster import ProgressBar
from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.cli.patterns.run import read_stream_params
from gpu.cli.patterns.run_options import RunOptions
from gpu.declaration.pattern import Variant
from gpu.distributed.cluster.dask_cluster import Cluster, open_cluster
from gpu.distributed.cluster.dask_import import load_dask
from gpu.run import export
from gpu.run.workload import Workload

_NOT_COMPARED = "not compared: a reference result would need the whole input in memory"
_PRINTED_VALUES = 10


def run(options: RunOptions, cluster_options: ClusterRunOptions, raw: str) -> None:
    """Run a variant over a file, and print a report.

    Parameters
    ----------
    raw : str
        Type and shape of an input file without a header, such as "float32:1000000".
    """
    pattern, variant, input_file, target = options.pattern, options.variant, options.input_file, options.output_file
    load_dask()
    from gpu.distributed.data.files import open_streamed_input

    if input_file is None:
        raise InputError("--stream needs an --input FILE: generated input is in memory anyway.")
    params = read_stream_params(pattern, options.texts)
    file = open_streamed_input(input_file, raw)
    with open_cluster(cluster_options.settings) as cluster:
        from gpu.distributed.streaming import run_streamed

        bar = ProgressBar(len(cluster.workers))
        try:
            workload = Workload(pattern, variant, {}, params)
            result = run_streamed(cluster, workload, file, bar, target=target or "", chunks=cluster_options.chunks)
        finally:
            bar.close()
        gathered = result.outputs.get(pattern.result)
        if gathered is not None and target:
            export.save_array(target, gathered)
        if options.as_json:
            device = cluster.workers[0].device
            about = {"pattern": pattern.name, "variant": variant.name, "engine": device.engine, "verified": None}
            moved = {"read_bytes": result.read_bytes, "written_bytes": result.written_bytes}
            print(cli_text.format_json({**about, **result.distributed_run.data(), **moved}))
            return
        rows = [*_describe_run(cluster, variant, input_file), *cli_text.format_cluster_rows(result.distributed_run)]
        rate = result.read_bytes / max(result.distributed_run.wall_s, 1e-9) / 1e9
        rows.append(
            ("read", f"{result.read_bytes} bytes, {rate:.3g} GB/s by the clock; {result.written_bytes} written")
        )
        rows.append(("verified", _NOT_COMPARED))
        for name, values in result.outputs.items():
            shown = " ".join(map(str, values.ravel()[:_PRINTED_VALUES].tolist()))
            rows.append((name, f"{shown} ... ({values.size} in all)" if values.size > _PRINTED_VALUES else shown))
        if target:
            rows.append(("saved", target))
        print(f"{pattern.title}\n{cli_text.format_rows(rows)}")


def _describe_run(cluster: Cluster, variant: Variant, input_file: str) -> list[tuple[str, str]]:
    from gpu.distributed.distributed_run import describe_devices

    device = cluster.workers[0].device
    return [
        ("engine", f"{device.engine} ({device.executor})"),
        ("device", describe_devices(cluster)),
        ("variant", f"{variant.name}: {variant.title}"),
        ("input", Path(input_file).name),
    ]
