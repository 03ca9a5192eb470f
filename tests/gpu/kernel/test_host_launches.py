"""What is known of how a file launches its kernels, and what is asked for where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.cli import main as cli
from gpu.kernel.host_launches import FileLaunch, find_host_launch
from gpu.kernel.simulate import simulate
from tests.gpu.cli.no_desktop import NO_WINDOW

KERNEL = """#define BLOCK 64
const int N = 1000;
extern __shared__ int buffer[];
__global__ void f(int *out, int n) { n *= 2; buffer[threadIdx.x] = n; out[blockIdx.x] = blockDim.x; }
"""

KNOWN = {
    "f<<<4, 128>>>(p, 1);": ((4,), (128,), 0),
    "f<<<(N + BLOCK - 1) / BLOCK, BLOCK, BLOCK * sizeof(int)>>>(p, 1);": ((16,), (64,), 256),
    "dim3 block(16, 8); dim3 grid((N + block_x) / 16, 2, 1); f<<<grid, block>>>(p, 1);": (None, (16, 8), 0),
    "dim3 block(16, 8), grid((N + 15) / 16, 2); f<<<2, block, 0, stream>>>(p, 1);": ((2,), (16, 8), 0),
    "const int n = 48, t = 16; dim3 block(t), grid((n + t - 1) / t); f<<<grid, block>>>(p, 1);": (
        (3,),
        (16,),
        0,
    ),
    "dim3 grid, block(8); grid = dim3(3); f<<<grid, block>>>(p, 1);": (None, (8,), 0),
    "unsigned long n = 4; auto t(32); f<<<n, t>>>(p, 1);": ((4,), (32,), 0),
    "int n(4); n = 5; int m{6}; f<<<n, m>>>(p, n);": (None, (6,), 0),
    "dim3 grid = dim3(2, 3); dim3 block{32}; f<<<grid, block>>>(p, 1);": ((2, 3), (32,), 0),
    "int n = 1 << 10; const unsigned int t = 256u; f<<<n / t, t>>>(p, n);": ((4,), (256,), 0),
    "f<<<dim3(2, 2), dim3(8)>>>(p, 1);": ((2, 2), (8,), 0),
    "int n = 4; n = 8; f<<<n, 32>>>(p, n);": (None, (32,), 0),
    "for (int n = 1; n < 9; n++) f<<<n, 32>>>(p, n);": (None, (32,), 0),
    "dim3 g(4); g.x = 5; f<<<g, 32>>>(p, 1);": (None, (32,), 0),
    'int n = 4; scanf("%d", &n); f<<<n, 32>>>(p, n);': (None, (32,), 0),
    "f<<<count(), 32, bytes>>>(p, 1);": (None, (32,), None),
    "f<<<1, 32>>>(p, 1); f<<<2, 32>>>(p, 1);": (None, (32,), 0),
    "f<<<1 / 0, 1 << 99>>>(p, 1);": (None, None, 0),
    "f<<<0, 2 - 3>>>(p, 1);": (None, None, 0),
    "/* f<<<3, 3>>>(p); */ // f<<<4, 4>>>\n f<<<1, 32>>>(p, 1);": ((1,), (32,), 0),
    "g<<<1, 32>>>(p, 1);": (None, None, None),
}


@pytest.mark.parametrize("body", KNOWN)
def test_what_is_constant_is_known(body: str) -> None:
    launch = find_host_launch(f"{KERNEL}void run(int *p) {{ {body} }}\nvoid other(int N, int n) {{ n = N; }}", "f")
    assert (launch.grid, launch.block, launch.shared_bytes) == KNOWN[body]


def test_a_parameter_of_the_host_function_is_no_constant() -> None:
    source = f"{KERNEL}void run(int *p, int N) {{ f<<<N, BLOCK>>>(p, N); }}"
    assert find_host_launch(source, "f") == FileLaunch((5,), None, (64,), 0)
    assert find_host_launch(source, "f", {"BLOCK": 32}).block == (32,), "a macro from outside goes first"


def test_an_instantiation_has_the_launches_that_name_it() -> None:
    source = """template <typename T, int B> __global__ void r(T *a) {}
void run(int *p) { r<int, 32><<<1, 32>>>(p); r<int, 64><<<2, 64>>>(p); }"""
    assert find_host_launch(source, "r<int,  64>") == FileLaunch((2,), (2,), (64,), 0)
    assert find_host_launch(source, "r<int, 64>@1").grid == (2,)
    assert find_host_launch(source, "r<int, 16>").grid is None


def test_a_deep_chain_of_names_ends() -> None:
    chain = "".join(f"#define A{n} A{n + 1} + A{n + 1}\n" for n in range(60))
    assert find_host_launch(chain + "void run() { f<<<A0, 1>>>(); }", "f").grid is None
    assert find_host_launch("#define A A\nvoid run() { f<<<A, A + 1>>>(); }", "f").block is None


def find_launches(body: str) -> str:
    return f"{KERNEL}int main() {{ int *p; {body} }}"


def test_a_launch_takes_what_the_file_says() -> None:
    source = find_launches("f<<<2, BLOCK, BLOCK * sizeof(int)>>>(p, 1);")
    simulation = simulate("test.cu", "f", None, None, ["zeros:4", 1], source=source)
    assert simulation.written_arrays[0].first_elements == (64, 64, 0, 0)
    alone = simulate("test.cu", "f", 1, 32, ["zeros:4", 1], source=source, shared_bytes=128)
    assert alone.written_arrays[0].first_elements == (32, 0, 0, 0)


@pytest.mark.parametrize(
    ("body", "grid", "said"),
    [
        ("", None, "Give --grid: test.cu does not launch f."),
        ("", 1, "Give --block: test.cu does not launch f."),
        ("f<<<n(), 32>>>(p, 1);", None, "Give --grid: it is not a constant where test.cu launches f, line 5."),
        (
            "f<<<1, 32>>>(p, 1);\nf<<<2, 32>>>(p, 1);",
            None,
            "Give --grid: it differs, or is not a constant, in the launches of f, lines 5, 6 of test.cu.",
        ),
        ("f<<<1, 32, n()>>>(p, 1);", None, "Give --shared: it is not a constant where test.cu launches f, line 5."),
    ],
)
def test_what_is_not_known_is_asked_for(body: str, grid: int | None, said: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate("test.cu", "f", grid, None, ["zeros:4", 1], source=find_launches(body))
    assert caught.value.message == said


def test_the_command_takes_the_files_own_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test.cu"
    path.write_text(find_launches("f<<<1, 32, 32 * sizeof(int)>>>(p, 1);"))
    assert cli.main(["simulate", str(path), "f", "--arg", "zeros:2", "--arg", "3"], NO_WINDOW) == 0
    assert "out, 2 of int32: 32 0" in capsys.readouterr().out
    path.write_text(find_launches(""))
    assert cli.main(["simulate", str(path), "f", "--arg", "zeros:2", "--arg", "3"], NO_WINDOW) == 2
    said = capsys.readouterr().err
    assert said == "lockstep: Give --grid: test.cu does not launch f.\n"
