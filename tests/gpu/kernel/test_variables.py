"""What a kernel is given beside arrays: constants, texts, lists; and what it is said to have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.cli import main as cli
from gpu.kernel.simulate import Simulation, simulate
from tests.gpu.cli.no_desktop import NO_WINDOW

SOURCE = """__constant__ int k[3];
__constant__ float2 scale;
__device__ float total;
__device__ int *where;
__global__ void f(const unsigned char *a, unsigned *b, float2 *c) {
    if (threadIdx.x < 2) b[2 * threadIdx.x] = a[threadIdx.x] + k[threadIdx.x];
    if (threadIdx.x == 0) total = scale.x;
    c[threadIdx.x] = scale;
}"""


def run(letters: Any = "text:programming", b: Any = "empty:5", **constants: Any) -> Simulation:
    return simulate("test.cu", "f", 1, 4, [letters, b, "empty:20"], source=SOURCE, constants=constants)


def refusal(*arguments: Any, **constants: Any) -> str:
    with pytest.raises(InputError) as caught:
        run(*arguments, **constants)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_constants_are_there_before_the_launch() -> None:
    simulation = run(k="1,2", scale="2.5,-1")
    assert simulation.findings == []
    assert simulation.arrays[1][[0, 2]].tolist() == [ord("p") + 1, ord("r") + 2]
    assert simulation.arrays[2][:4].tolist() == [[2.5, -1]] * 4
    assert run(k=np.array([7, 8], np.int32)).arrays[1][0] == ord("p") + 7
    assert run(k="7").arrays[1][0] == ord("p") + 7, "one number alone is the first element"
    assert run(k="full:3:9").arrays[1][2] == ord("r") + 9


def test_constants_that_do_not_fit_are_refused() -> None:
    assert refusal(other="1") == (
        "The file has no __constant__ or __device__ variable 'other'; it has k, scale, total, where."
    )
    assert refusal(k="1,2,3,4") == "The variable k (int32 [3]) has 3 elements, but got 4."
    assert refusal(k="zeros:4") == "The variable k (int32 [3]) has 3 elements, but got 4."
    assert "takes int32, but got 1.5" in refusal(k="1.5,2")
    assert "takes an array of int32, not of float64" in refusal(k=np.zeros(3))
    assert "takes int32, but a text consists of chars" in refusal(k="text:abc")
    assert "needs values, but 'empty:3' provides none" in refusal(k="empty:3")
    assert "needs values, but 'null' provides none" in refusal(k="null")
    assert "There is no file" in refusal(k="file:/nowhere.npy")
    assert "is a struct of 2 numbers" in refusal(scale="1")
    assert "needs a number, not '1,2'" in refusal(total="1,2")
    assert "contains pointers, which cannot be set from the host" in refusal(where="0")


def test_a_text_is_its_characters(tmp_path: Path) -> None:
    assert run().arrays[0].tobytes() == b"programming"
    path = tmp_path / "text.txt"
    path.write_bytes(b"ma: ss")
    assert run(f"text:@{path}").arrays[0].tobytes() == b"ma: ss"
    assert run("text:a,b:c").arrays[0].tobytes() == b"a,b:c"


def test_texts_that_are_none_are_refused() -> None:
    assert refusal("text:") == "Argument 0 (uint8 * a) is a text without characters."
    assert "There is no file" in refusal("text:@/nowhere")
    assert "takes uint32, but a text consists of chars" in refusal("zeros:4", "text:abc")


def test_an_array_is_listed() -> None:
    assert run("7,8", "1, 2,3").arrays[1].tolist() == [7, 2, 8]
    simulation = simulate("test.cu", "f", 1, 1, ["5,", "0,0,0", "1,2,3,4"], source=SOURCE)
    assert simulation.arrays[0].tolist() == [5]
    assert simulation.arrays[2].tolist() == [[0, 0], [3, 4]]


def test_lists_that_do_not_fit_are_refused() -> None:
    assert "0 to 4294967295, but got -3" in refusal("1,2", "1,-3")
    assert "needs a number, not 'x'" in refusal("1,x")
    with pytest.raises(InputError, match="has 2 numbers per element, and 3 is not a multiple of that"):
        simulate("test.cu", "f", 1, 1, ["5,", "1,2", "1,2,3"], source=SOURCE)
    source = "struct P { int x; float y; }; __global__ void f(P *p) { p->x = 1; }"
    with pytest.raises(InputError, match="which a list of numbers cannot describe"):
        simulate("test.cu", "f", 1, 1, ["1,2"], source=source)


def test_what_is_written_is_known_with_its_first_elements() -> None:
    b, c, total = run(k="1,2", scale="2.5,-1").written_arrays
    assert (b.name, b.dtype, b.count) == ("b", "uint32", 5)
    assert b.first_elements == (ord("p") + 1, None, ord("r") + 2, None, None), "nobody wrote the others"
    assert (c.name, c.dtype, c.count, len(c.first_elements)) == ("c", "float32 x 2", 20, 16)
    assert c.first_elements[3:5] == ([2.5, -1], None)
    assert (total.name, total.first_elements) == ("total", (2.5,))
    assert run(b="zeros:5").written_arrays[0].first_elements == (ord("p"), 0, ord("r"), 0, 0), "zeros were there before"


def test_the_command_prints_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test.cu"
    path.write_text(SOURCE)
    words = ["simulate", str(path), "f", "--grid", "1", "--block", "4", "--constant", "k=1,2", "--constant"]
    words += ["scale=nan,0.25", "--arg", "text:programming", "--arg", "empty:5", "--arg", "empty:20"]
    assert cli.main(words, NO_WINDOW) == 0
    out = capsys.readouterr().out
    assert "Written by the kernel\n  b, 5 of uint32: 113 - 116 - -\n" in out
    assert "  c, 20 of float32 x 2: (nan, 0.25) (nan, 0.25) (nan, 0.25) (nan, 0.25) - - - " in out
    assert all(len(line) <= 100 for line in out.splitlines())
    assert cli.main([*words, "--json"], NO_WINDOW) == 0
    arrays = json.loads(capsys.readouterr().out)["arrays"]
    assert arrays[0] == {"name": "b", "dtype": "uint32", "count": 5, "first": [113, None, 116, None, None]}
    assert arrays[1]["first"][0] == ["nan", 0.25]


def test_a_constant_without_a_value_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("k", "k=", "=1"):
        with pytest.raises(SystemExit) as end:
            cli.main(["simulate", "f.cu", "f", "--constant", text], NO_WINDOW)
        assert end.value.code == 2
        assert f"{text!r} is not NAME=SPEC" in capsys.readouterr().err
