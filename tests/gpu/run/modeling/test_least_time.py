"""The first figure of a modeled time: a bound that follows from the least traffic, before anything is modeled."""

from __future__ import annotations

import pytest

from gpu.base.errors import KernelError
from gpu.cli import main as cli
from gpu.messages.modeled_time import describe_least_time
from gpu.run.modeling import timing_model
from gpu.timing.gpus import find_gpu
from tests.gpu.cli.no_desktop import NO_WINDOW

H200 = find_gpu("h200")
GIB = 1 << 30


def test_the_bound_is_the_launch_and_the_longer_of_traffic_and_block_starts() -> None:
    assert describe_least_time(H200) == "at least 2.9 µs, because of the launch"  # 2.85 us
    read = 2.85 + GIB / 4525e3  # GB/s, in bytes per us
    assert describe_least_time(H200, GIB).startswith(f"at least {read:.0f} µs, because of the launch and 1.07 GB of")
    retained = 0.64 * 62914560
    both = 2.85 + (2 * GIB - retained) / 4525e3
    assert describe_least_time(H200, GIB, GIB).startswith(f"at least {both:.0f} µs")
    assert "DRAM" not in describe_least_time(H200, 0, 1 << 20), "L2 retains what is written"
    starts = 2.85 + 10_000 * 0.611e-3
    assert describe_least_time(H200, blocks=10_000) == (
        f"at least {starts:.1f} µs, because of the launch and of the starts of 10,000 blocks"
    )


@pytest.mark.parametrize("words", [["reduction", "--n", "2048"], ["FILE", "add", "--arg", "zeros:4096"]])
def test_the_command_prints_the_bound_before_it_models(tmp_path, monkeypatch, capsys, words) -> None:
    file = tmp_path / "add.cu"
    file.write_text(
        "__global__ void add(int *a) { a[threadIdx.x] += 1; }\nvoid run() { add<<<64, 64>>>(0); }\n", "utf-8"
    )

    def refuse(*arguments: object, **options: object) -> None:
        raise KernelError("too difficult")

    monkeypatch.setattr(timing_model, "model_pattern", refuse)
    monkeypatch.setattr(timing_model, "model_launch", refuse)
    assert cli.main(["model", *(str(file) if word == "FILE" else word for word in words)], NO_WINDOW) != 0
    printed = capsys.readouterr()
    assert "at least 2.9 µs" in printed.out
    assert "too difficult" in printed.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["ad", "--arg", "zeros:4096"], "has no kernel 'ad'"),
        (["ad", "--grid", "1", "--block", "2000"], "has no kernel 'ad'"),
        (["add"], "takes 1 argument"),
        (["add", "--arg", "zeros:4096", "--constant", "tabel=1"], "no variable 'tabel'"),
        (["add", "--arg", "zeros:4096", "--block", "2000"], "2000"),
    ],
)
def test_a_wrong_name_or_argument_is_refused_before_any_figure(tmp_path, capsys, words, named) -> None:
    file = tmp_path / "add.cu"
    file.write_text("__global__ void add(int *a) { a[threadIdx.x] += 1; }\n", "utf-8")
    extents = [] if "--grid" in words else ["--grid", "64", *([] if "--block" in words else ["--block", "64"])]
    assert cli.main(["model", str(file), *words, *extents], NO_WINDOW) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert named in printed.err


def test_a_wrong_name_comes_before_missing_extents(tmp_path, capsys) -> None:
    file = tmp_path / "add.cu"
    file.write_text("__global__ void add(int *a) { a[threadIdx.x] += 1; }\n", "utf-8")
    for command in ("model", "simulate"):
        assert cli.main([command, str(file), "ad"], NO_WINDOW) == 2
        assert "has no kernel 'ad'" in capsys.readouterr().err


def test_the_command_prints_why_a_launch_takes_its_time(tmp_path, capsys) -> None:
    file = tmp_path / "add.cu"
    file.write_text("__global__ void add(int *a) { atomicAdd(a, (int)threadIdx.x); }\n", "utf-8")
    words = ["model", str(file), "add", "--grid", "65536", "--block", "32", "--arg", "zeros:1"]
    assert cli.main(words, NO_WINDOW) == 0
    assert "limited by atomic operations: those on one word run one after the other" in capsys.readouterr().out
