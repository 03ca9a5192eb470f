"""Which thread wrote an element of a result, against what kernels are known to do and what recordings say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu import engines
from gpu.base.errors import InputError
from gpu.base.paths import KERNELS
from gpu.messages.runs.pattern_runs import RunPattern
from gpu.messages.runs.writer import MAX_STATEMENTS, FindWriter, StepWriter, WrittenElement
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns import all_patterns, find_pattern
from gpu.recording.recording import Recording
from gpu.recording.tables import BatchRow
from gpu.run.handlers.execution import execute_request
from gpu.run.writer_search import find_writer, record_writer
from tests.gpu.simulator.kernel_runner import build

IMAGE = np.random.default_rng(5).integers(0, 256, (70, 90), np.uint8)
ELEMENTS = {
    ("convolution", "tiled"): (2, 3),
    ("convolution", "separable"): (2, 3),
    ("histogram", "interleaved"): (0, 3),
    ("histogram", "privatized"): (0, 3),
    ("histogram", "racy"): (0, 3),
    ("reduction", "neighbored"): (0,),
    ("reduction", "last-block"): (0,),
    ("scan", "brent-kung"): (5,),
    ("scan", "look-back"): (5,),
    ("compaction", "ballot"): (5,),
    ("nbody", "tiled"): (7, 2),
    ("sort", "bitonic"): (5,),
    ("sort", "radix"): (5,),
    ("matmul", "registers-1d"): (2, 3),
    ("softmax", "shuffle"): (2, 3),
    ("transpose", "padded"): (2, 3),
    ("transpose", "copy"): (2, 3),
    ("stencil", "tiled"): (6, 3),
    ("spmv", "vector"): (5,),
    ("spmv", "coo"): (5,),
}
"""Of each pattern, and of each way in which results come to be written: once, by atomics, in place, by a last block."""


@pytest.fixture(scope="module")
def folder() -> Iterator[SharedFolder]:
    folder = SharedFolder()
    yield folder
    folder.close()


def make_request(
    folder: SharedFolder, name: str, variant: str, element: tuple[int, ...], params: Any = None, **given: Any
) -> FindWriter:
    pattern = find_pattern(name)
    if pattern.is_image_pattern and not given:
        given = {"image": IMAGE, "maxval": np.array(255, np.uint32)}
    inputs = {key: folder.put(np.asarray(values)) for key, values in given.items()}
    output = getattr(pattern.presentation, "forces_output", pattern.result)
    return FindWriter(RunPattern(name, variant, params or {}, inputs), output, element)


def search_writer(request: FindWriter, **options: Any) -> WrittenElement:
    return find_writer(request, lambda progress: None, **options)


def test_a_pixel_has_the_thread_that_the_kernel_gives_it(folder: SharedFolder) -> None:
    written = search_writer(make_request(folder, "convolution", "naive", (41, 77)))
    writer = written.writer
    assert writer is not None
    assert writer.grid == (3, -(-70 // writer.block_shape[1]), 1)
    assert writer.block == (77 // 32, 41 // writer.block_shape[1], 0)
    assert writer.thread == (77 % 32, 41 % writer.block_shape[1], 0)
    assert (written.array, written.index, written.writes) == ("out", 41 * 90 + 77, 1)
    line = (KERNELS / "convolution.cu").read_text().splitlines()[writer.line - 1]
    assert writer.text == line.strip()
    assert writer.text.startswith("out[")
    # The warp has columns 64 to 89 of a row whose first byte is 4 * (41 * 90 + 64).
    first, last = 4 * (41 * 90 + 64) // 32, (4 * (41 * 90 + 90) - 1) // 32
    assert (writer.lanes, writer.sectors, writer.ideal_sectors) == (26, last - first + 1, -(-26 * 4 // 32))
    assert not writer.atomic


def test_a_color_image_has_planes(folder: SharedFolder) -> None:
    image = np.stack([IMAGE, IMAGE, IMAGE], axis=2)
    request = make_request(folder, "convolution", "naive", (41, 77, 2), image=image, maxval=np.array(255, np.uint32))
    written = search_writer(request)
    assert written.writer is not None
    assert written.writer.block[2] == 2
    assert written.index == (2 * 70 + 41) * 90 + 77


def test_all_atomics_on_a_bar_are_counted(folder: SharedFolder) -> None:
    written = search_writer(make_request(folder, "histogram", "interleaved", (0, 100)))
    writer, first = written.writer, written.first
    assert writer is not None
    assert first is not None
    threads = writer.grid[0] * writer.block_shape[0]
    owners = np.unique(np.flatnonzero(IMAGE.ravel() == 100) % threads)
    assert written.writes == np.count_nonzero(IMAGE == 100)
    assert written.threads == owners.size
    assert written.blocks == np.unique(owners // writer.block_shape[0]).size
    assert written.is_complete
    assert writer.atomic
    assert {each.block_number * 256 + each.thread_number for each in (writer, first)} <= set(owners.tolist())


def test_what_no_thread_wrote_is_said(folder: SharedFolder) -> None:
    dark = np.zeros((40, 40), np.uint8)
    request = make_request(folder, "histogram", "interleaved", (0, 100), image=dark, maxval=np.array(255, np.uint32))
    written = search_writer(request)
    assert written.writer is None
    assert "filled" in written.unknown_reason
    text = (KERNELS / "convolution.cu").read_text()
    idle = text.replace("    out[blockIdx.z * width * height + y * width + x] = sum;", "")
    request = make_request(folder, "convolution", "naive", (4, 7))
    edited = replace(request, run=replace(request.run, sources={"convolution.cu": idle}))
    assert "the host program put this value there" in search_writer(edited).unknown_reason
    nbody = make_request(folder, "nbody", "naive", (3, 2))
    computed = search_writer(replace(nbody, output="accelerations"))
    assert "the host program computed it" in computed.unknown_reason


def test_a_value_that_was_there_before_is_found_all_the_same(folder: SharedFolder) -> None:
    request = make_request(folder, "sort", "bitonic", (700,), values=np.full(1500, 7, np.int32))
    written = search_writer(request)
    assert written.writer is not None
    assert written.is_complete
    assert written.writer.launch == written.launches - 1
    assert written.index == 700


def test_a_launch_is_watched_from_what_it_found(folder: SharedFolder) -> None:
    """Blocks take the next tile from a counter: where it has been counted already there is none for them."""
    values = np.zeros(50_000, np.int32)
    values[20_000] = -1  # as the sum then is: so is what memory holds that nobody has written
    written = search_writer(make_request(folder, "scan", "look-back", (20_000,), {"kind": "inclusive"}, values=values))
    assert written.writer is not None
    assert written.is_complete
    assert written.writes == 1
    assert 0 < written.writer.block_number < written.writer.grid[0] - 1


def test_a_search_ends_in_time(folder: SharedFolder) -> None:
    request = make_request(folder, "reduction", "one-thread", (0,), {"n": 200_000})
    assert "takes more than" in search_writer(request, seconds=0).unknown_reason
    written = search_writer(request, seconds=0.05)
    assert written.writer is None
    assert "0.05 s" in written.unknown_reason


def test_no_thread_of_a_library_is_known(folder: SharedFolder) -> None:
    with pytest.raises(InputError, match="The thread is unknown: cuBLAS is a library"):
        search_writer(make_request(folder, "matmul", "cublas", (0, 0)))


def test_an_element_that_is_not_there_is_refused(folder: SharedFolder) -> None:
    for element in ((70, 0), (0,), (0, -1)):
        with pytest.raises(InputError, match="has no element"):
            search_writer(make_request(folder, "convolution", "naive", element))


def test_launches_are_shaped_as_by_the_device_that_ran(folder: SharedFolder) -> None:
    request = make_request(folder, "histogram", "privatized", (0, 100))
    device = engines.create_engine("simulator").device
    few, many = (
        search_writer(replace(request, device=replace(device, multiprocessors=number))).writer for number in (1, 3)
    )
    assert few is not None
    assert many is not None
    assert 3 * few.grid[0] == many.grid[0]


def test_every_pattern_is_asked() -> None:
    assert {name for name, _ in ELEMENTS} == set(all_patterns())


@pytest.mark.parametrize(("name", "variant"), ELEMENTS)
def test_a_recording_of_the_block_says_the_same(folder: SharedFolder, name: str, variant: str) -> None:
    """The recorder and the search know nothing of each other."""
    pattern = find_pattern(name)
    small = {"image": IMAGE[:9, :12], "maxval": np.array(255, np.uint32)} if pattern.is_image_pattern else {}
    request = make_request(folder, name, variant, ELEMENTS[name, variant], dict(pattern.step_params), **small)
    written = search_writer(request)
    assert written.writer is not None
    assert written.is_steppable
    recording = record_writer(StepWriter(request, written), lambda progress: None)
    (launch,) = recording.launches
    assert [(each.first, each.blocks) for each in map(BatchRow._make, launch.trace.data.batches.tolist())] == [
        (written.writer.block_number, 1)
    ]
    moment = recording.find_write_moment(written.array, written.index)
    assert moment is not None
    write = launch.trace.find_writer(written.array, written.index, moment)
    assert write is not None
    assert (write.block, write.thread) == (written.writer.block_number, written.writer.thread_number)
    assert recording.position(moment - 1).line == written.writer.line


def test_both_requests_are_carried_out(folder: SharedFolder) -> None:
    engine = engines.create_engine("simulator")
    request = make_request(folder, "convolution", "tiled", (41, 77))
    written = execute_request(engine, request, folder, lambda progress: None)
    stepped = StepWriter(request, written)
    recording = Recording.load(execute_request(engine, stepped, folder, lambda progress: None).path)
    moment = recording.find_write_moment("out", written.index)
    assert moment is not None
    launch, event = recording.locate_moment(moment)
    run = execute_request(engine, request.run, folder, lambda progress: None)
    value = launch.trace.array("out", event)[written.index]
    assert value == pytest.approx(run.arrays["result"].open()[41, 77], rel=1e-5)
    assert launch.trace.array("out", 0).size == IMAGE.size


def test_a_block_that_does_too_much_is_not_stepped_alone(folder: SharedFolder) -> None:
    written = search_writer(make_request(folder, "matmul", "naive", (3, 200), {"n": 512}))
    assert written.statements > MAX_STATEMENTS
    assert not written.is_steppable


def test_some_blocks_of_a_grid_run() -> None:
    body = "int b = blockIdx.y * gridDim.x + blockIdx.x; a[b * blockDim.x + threadIdx.x] = b + 1;"
    module = build(f"__global__ void k(int *a) {{ {body} }}")
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        for blocks in (range(2, 4), range(6), range(5, 5)):
            values = np.zeros(6 * 32, np.int32)
            kernel.launch((3, 2, 1), (32, 1, 1), [values.view(np.uint8)], blocks=blocks)
            assert np.unique(values[values > 0]).tolist() == [block + 1 for block in blocks]
