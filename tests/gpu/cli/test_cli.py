from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpu import engines
from gpu.base.devices import survey as devices
from gpu.base.devices.probe import ProbeResult
from gpu.base.errors import CompileError, EngineLostError, LaunchError, LockstepError, SourcePosition
from gpu.base.paths import KERNELS, ROOT
from gpu.cli import main as cli
from gpu.cli.report import format_verdict
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.engines.cuda import libraries
from gpu.engines.null import NullEngine
from gpu.files import images
from gpu.messages.verdicts import decide_verdict
from gpu.patterns import all_patterns
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW


class FinishedCommand:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def error_line(self) -> str:
        """The one line on stderr, of a command that was refused."""
        assert self.out == ""
        assert "Traceback" not in self.err
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.strip()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> FinishedCommand:
        try:
            code = cli.main(arguments, NO_WINDOW)
        except SystemExit as end:
            code = int(end.code or 0)
        return FinishedCommand(code, *capsys.readouterr())

    return run


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.pgm"
    images.write_image(path, np.random.default_rng(3).integers(0, 256, (20, 30), np.uint8), 255)
    return str(path)


@pytest.fixture
def colorful(tmp_path: Path) -> str:
    path = tmp_path / "colorful.ppm"
    images.write_image(path, np.random.default_rng(3).integers(0, 256, (20, 30, 3), np.uint8), 255)
    return str(path)


class FailingEngine(NullEngine):
    """Raises what a test has put here."""

    error: LockstepError | BaseException = LaunchError("")

    def build(self, *arguments: object, **options: object):
        raise self.error


def install_failing_engine(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.setattr(FailingEngine, "error", error)
    monkeypatch.setitem(engines.ENGINES, "simulator", f"{__name__}:FailingEngine")


# What works


def test_run_of_an_array_makes_it_from_the_parameters_and_the_seed(command):
    arguments = ("run", "reduction", "--engine", "simulator", "--n", "1000", "--operator", "max", "--dtype", "float32")
    done = command(*arguments, "--variant", "shuffle", "--seed", "5")
    assert done.code == 0
    table = {line[:14].strip(): line[14:] for line in done.out.splitlines()[1:]}
    assert table["input"] == "random, seed 5, 1000 x float32"
    assert table["verified"] == "yes"
    assert " Melement/s  to simulate on this CPU" in table["simulated"]
    assert "throughput" not in table
    assert table["moved"].endswith("bytes per element; minimum traffic 4.00  counted with n = 1000")
    assert table["lanes"].endswith(" of 32")
    assert done.out.index("moved") < done.out.index("simulated  ")
    assert "measured" not in done.out
    assert table["result"] == f"{np.random.default_rng(5).random(1000, np.float32).max():.9g}"
    assert command(*arguments, "--seed", "6").out != done.out


def test_run_of_an_array_takes_a_kind_or_a_file_and_saves_the_result(command, tmp_path: Path):
    numbers, out = tmp_path / "numbers.txt", tmp_path / "sum.csv"
    numbers.write_text("3\n5\n-2\n")
    arguments = ("run", "reduction", "--engine", "simulator", "--output", str(out))
    done = command(*arguments, "--input", str(numbers))
    assert "numbers.txt, 3 x int32" in done.out
    assert np.loadtxt(out) == 6
    command(*arguments, "--input", "ramp", "--n", "5")
    assert np.loadtxt(out) == 10
    numbers.write_text("-2147483647\n-1\n")
    assert "result      -2147483648\n" in command(*arguments, "--input", str(numbers)).out
    numbers.write_text("")
    command(*arguments, "--input", str(numbers))
    assert np.loadtxt(out) == 0


def test_run_of_matrices_takes_a_matrix_and_saves_one(command, tmp_path: Path):
    given, out = tmp_path / "a.npy", tmp_path / "c.npy"
    np.save(given, np.arange(6).reshape(2, 3))
    done = command("run", "matmul", "--engine", "simulator", "--input", str(given), "--n", "4", "--output", str(out))
    assert done.code == 0
    assert "a.npy, 2 x 3 x float32" in done.out
    assert " GFLOP/s" in done.out
    assert np.load(out).shape == (2, 4)
    rows = tmp_path / "rows.csv"
    rows.write_text("0, 0\n-inf, 1\n")
    done = command("run", "softmax", "--engine", "simulator", "--input", str(rows), "--output", str(out))
    assert done.code == 0
    assert np.load(out).tolist() == [[0.5, 0.5], [0, 1]]
    rows.write_text("0, 0\n1\n")
    done = command("run", "softmax", "--engine", "simulator", "--input", str(rows))
    assert done.code == 2
    assert "rows.csv, line 2: 1 numbers, but the first row has 2." in done.err


def test_help_of_an_array_pattern_offers_kinds_and_files(command):
    text = command("run", "reduction", "--help").out
    assert "--input random|signed|ones|ramp|alternating|sausage|typed|FILE" in text
    assert text.count("\n  --input ") == 1
    assert "file for the result: .npy or .csv" in text


def test_no_command_opens_the_window(command):
    assert command().code == 77


def test_bench_window_is_the_windows(command):
    assert command("bench", "window").code == 78


def test_tour_gets_its_folder(command):
    assert command("tour", "abc").code == 3


@pytest.mark.parametrize("pattern", ["convolution", "histogram"])
def test_run_prints_json_with_the_keys_that_stay(command, small: str, pattern: str):
    done = command("run", pattern, "--engine", "simulator", "--input", small, "--json")
    assert done.code == 0
    assert done.err == ""
    report = json.loads(done.out)
    assert list(report) == [
        "pattern",
        "engine",
        "executor",
        "fallback",
        "device",
        "variant",
        "time_ms",
        "throughput",
        "error",
        "verified",
        "counted",
        "findings",
        "verdict",
    ]
    assert (report["counted"]["input"], report["counted"]["elements"]) == ("30 × 20 pixels", 600)
    assert (report["findings"], report["verdict"]["kind"]) == ([], "verified")
    assert list(report["time_ms"]) == ["upload", "kernel", "download"]
    assert list(report["throughput"]) == ["value", "unit"]
    assert list(report["error"]) == ["max_abs", "max_rel"]
    assert (report["pattern"], report["engine"], report["verified"]) == (pattern, "simulator", True)
    assert report["variant"] == all_patterns()[pattern].default_variant
    assert report["throughput"]["unit"] == "Mpixel/s"
    kernel = report["time_ms"]["kernel"]
    assert report["throughput"]["value"] == pytest.approx(600 / (kernel / 1e3) / 1e6)


def test_what_runs_in_lockstep_all_the_same_says_why(command, tmp_path):
    text = (KERNELS / "transpose.cu").read_text("utf-8")
    (tmp_path / "transpose.cu").write_text(text.replace("    out[", "    out[0 + ", 1), "utf-8")
    given = ("--variant", "scatter", "--n", "40", "--source", str(tmp_path / "transpose.cu"))
    done = command("run", "transpose", "--engine", "simulator", *given, "--json")
    report = json.loads(done.out)
    assert (report["executor"], report["verified"]) == ("lockstep", True)
    assert report["fallback"] == "every access of an edited kernel is checked"
    done = command("run", "sort", "--engine", "simulator", "--executor", "lockstep", "--n", "500", "--json")
    assert (json.loads(done.out)["executor"], json.loads(done.out)["fallback"]) == ("lockstep", "")


@pytest.mark.parametrize("variant", ["naive", "constant", "tiled"])
def test_run_prints_text_with_units_and_where_numbers_come_from(command, small: str, variant: str):
    done = command("run", "convolution", "--engine", "simulator", "--input", small, "--variant", variant)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "Convolution"
    table = {line[:14].strip(): line[14:] for line in lines[1:]}
    assert table["engine"] == "simulator (compiled)"
    assert table["variant"].startswith(f"{variant}: ")
    assert table["input"] == "small.pgm, 30 x 20, gray, white is 255"
    for phase in ("upload", "kernel", "download"):
        assert table[phase].endswith(" ms  to simulate on this CPU")
    assert " Mpixel/s  to simulate on this CPU, kernel time alone" in table["simulated"]
    assert "against a reference result computed on the CPU" in table["error"]
    assert table["verified"] == "yes"


def test_run_takes_a_sample_where_no_input_is_given(command, monkeypatch: pytest.MonkeyPatch, small: str):
    monkeypatch.setattr(images, "DEFAULT_SAMPLE", Path(small))
    assert "small.pgm, 30 x 20" in command("run", "histogram", "--engine", "simulator").out


def test_the_default_sample_is_there():
    assert images.read_image(images.DEFAULT_SAMPLE).pixels.size


def test_run_takes_the_parameters(command, small: str, tmp_path: Path):
    out = tmp_path / "out.npy"
    arguments = ("--engine", "simulator", "--input", small, "--output", str(out))
    assert command("run", "convolution", *arguments, "--filter", "box", "--size", "3", "--border", "zero").code == 0
    pixels = images.read_image(small).pixels.astype(np.float64)
    assert np.load(out)[0, 0] == pytest.approx(pixels[:2, :2].sum() / 9, rel=1e-5)


def test_run_leaves_a_color_image_in_bytes_as_the_host_would_round_it(command, tmp_path: Path):
    pixels = np.random.default_rng(2).integers(0, 256, (9, 14, 3), np.uint8)
    images.write_image(tmp_path / "in.ppm", pixels)
    written = []
    for each in ("uint8", "float32"):
        out = tmp_path / f"{each}.ppm"
        given = ("--variant", "peak", "--filter", "sharpen", "--pixels", each, "--output", str(out))
        assert (
            command("run", "convolution", "--engine", "simulator", "--input", str(tmp_path / "in.ppm"), *given).code
            == 0
        )
        written.append(out.read_bytes())
    assert written[0] == written[1] != (tmp_path / "in.ppm").read_bytes()


def test_run_takes_coefficients_of_one_s_own(command, small: str, tmp_path: Path):
    shift, out = tmp_path / "shift.csv", tmp_path / "out.npy"
    shift.write_text("0,0,0\n1,0,0\n0,0,0\n")
    given = ("--filter", "custom", "--coefficients", str(shift), "--output", str(out))
    assert command("run", "convolution", "--engine", "simulator", "--input", small, *given).code == 0
    pixels = images.read_image(small).pixels
    assert np.array_equal(np.load(out)[:, 1:], pixels[:, :-1])


def test_a_variant_that_is_wrong_by_design_is_no_failure_and_says_why(command, small: str):
    """How many updates are lost depends on the processor and its load, and may be none."""
    arguments = ("run", "histogram", "--engine", "simulator", "--input", small, "--variant", "racy")
    done = command(*arguments)
    assert done.code == 0
    assert "wrong by design: Two threads that read the same count" in done.out
    assert command(*arguments, "--json").code == 0


@pytest.mark.parametrize(("right", "expected"), [(False, "no; this variant is"), (True, "correct this time, but")])
def test_a_result_that_is_wrong_by_design_is_never_verified(right: bool, expected: str):
    assert format_verdict(decide_verdict(right, lesson="It races.")) == f"{expected} wrong by design: It races."


@pytest.mark.parametrize("ending", ["pgm", "png"])
def test_output_as_an_image_keeps_the_input_s_levels(command, tmp_path: Path, ending: str):
    source, out = tmp_path / "deep.pgm", tmp_path / f"out.{ending}"
    images.write_image(source, np.full((5, 5), 3000, np.uint16), 4000)
    given = ("--input", str(source), "--output", str(out), "--engine", "simulator")
    done = command("run", "convolution", *given)
    assert done.code == 0
    assert f"saved       {out}" in done.out
    found = images.read_image(out)
    assert found.pixels.dtype == np.uint16
    assert found.pixels[2, 2] / found.maxval == pytest.approx(0.75, abs=1e-4)


def test_output_of_a_histogram_as_numbers_and_as_a_chart(command, colorful: str, tmp_path: Path):
    given = ("run", "histogram", "--engine", "simulator", "--input", colorful, "--bins", "4", "--output")
    assert command(*given, str(tmp_path / "a.csv")).code == 0
    assert np.loadtxt(tmp_path / "a.csv", delimiter=",").sum(axis=1).tolist() == [600, 600, 600]
    assert command(*given, str(tmp_path / "a.png")).code == 0
    assert images.read_image(tmp_path / "a.png").pixels.shape == (400, 1024, 3)


def test_list_names_everything_that_is_declared(command):
    done = command("list")
    data = json.loads(command("list", "--json").out)
    assert done.code == 0
    assert [entry["name"] for entry in data] == list(all_patterns())
    for entry, pattern in zip(data, all_patterns().values(), strict=True):
        assert entry["title"] == pattern.title
        assert [variant["name"] for variant in entry["variants"]] == [variant.name for variant in pattern.variants]
        assert [given["name"] for given in entry["parameters"]] == [given.name for given in pattern.parameters]
        for variant in pattern.variants:
            assert f"  {variant.name} " in done.out
        for parameter in pattern.parameters:
            assert f"  --{parameter.name} " in done.out


def test_list_says_what_textbooks_say_of_any_number_of_elements(command):
    shown = command("list", "--textbook", "1000000")
    assert shown.code == 0
    line = "textbook: 999999 operations in 20 steps, parallelism 50000, peak 500000"
    assert line in shown.out
    data = {each["name"]: each for each in json.loads(command("list", "--textbook", "16", "--json").out)}
    books = {each["name"]: each["textbook"] for each in data["sort"]["variants"]}
    assert books["bitonic"] == {"operations": 80, "steps": 10, "peak": 8, "average": 8.0}
    assert books["radix"] is None
    assert "textbook" not in json.loads(command("list", "--json").out)[0]["variants"][0]


@pytest.mark.parametrize("number", ["-1", "many", "1e6", "1" + "0" * 13])
def test_a_number_of_elements_that_is_none_is_refused(command, number: str):
    done = command("list", f"--textbook={number}")
    assert done.code == 2
    assert f"a number of elements is a whole number up to 10^12, not '{number}'" in done.err


def test_list_and_run_say_where_a_library_cannot_be_called(command, monkeypatch: pytest.MonkeyPatch):
    done = command("list")
    line = next(line for line in done.out.splitlines() if line.startswith("  cublas "))
    assert "cuBLAS (CuPy); NVIDIA GPU only." in line
    monkeypatch.setattr(libraries, "explain_missing_library", lambda: "CuPy is away.")
    assert "cuBLAS (CuPy); NVIDIA GPU only. CuPy is away.\n" in command("list").out
    data = {pattern["name"]: pattern for pattern in json.loads(command("list", "--json").out)}
    assert [each["name"] for each in data["matmul"]["variants"] if each["library"]] == ["cublas"]
    done = command("run", "matmul", "--variant", "cublas", "--n", "8", "--engine", "simulator")
    assert done.code == 2
    assert done.err == (
        "lockstep: cuBLAS cannot be called here. The simulator runs kernels from source, and libraries do not "
        "include the source of their kernels. Choose another variant.\n"
    )


def test_devices_says_what_is_there_and_why_not(command, monkeypatch: pytest.MonkeyPatch):
    survey = devices.list_device_statuses
    monkeypatch.setattr(
        devices, "list_device_statuses", lambda: survey(lambda: ProbeResult("linux", has_pci_device=True))
    )
    done = command("devices")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "cuda        NVIDIA GPU: not usable"
    assert lines[1].strip() == "There is an NVIDIA GPU, but no NVIDIA driver is installed."
    assert lines[2].strip().startswith("Install NVIDIA's driver")
    assert lines[3].startswith("simulator   ")
    data = json.loads(command("devices", "--json").out)
    assert [list(entry) for entry in data] == [["engine", "name", "usable", "reason", "remedy"]] * 2


def test_help_tells_the_parameters_and_the_exit_codes(command):
    done = command("run", "convolution", "--help")
    assert done.code == 0
    for parameter in all_patterns()["convolution"].parameters:
        assert f"--{parameter.name}" in done.out
    assert "exit codes:" in done.out


# What is refused


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run",), "the following arguments are required: PATTERN"),
        (("run", "sudoku"), "invalid choice: 'sudoku'"),
        (("jump",), "invalid choice: 'jump'"),
        (("tour",), "the following arguments are required: DIR"),
        (("run", "convolution", "--engine", "abacus"), "invalid choice: 'abacus'"),
        (("run", "convolution", "--variant", "best"), "invalid choice: 'best'"),
        (("run", "convolution", "--bins", "3"), "unrecognized arguments: --bins 3"),
        (("run", "convolution", "--siz", "3"), "unrecognized arguments: --siz 3"),
        (("run", "convolution", "--seed", "x"), "a seed is a whole number from 0, not 'x'"),
        (("run", "convolution", "--seed", "-1"), "a seed is a whole number from 0, not '-1'"),
        (("run", "convolution", "--filter", "blur"), "--filter is one of box, gaussian, "),
        (("run", "convolution", "--size", "4"), "--size is a whole number from 3 to 63 in steps of 2, not '4'."),
        (("run", "convolution", "--size", "many"), "--size is a whole number from 3 to 63 in steps of 2, not 'many'."),
        (("run", "histogram", "--bins", "0"), "--bins is a whole number from 1 to 65536, not '0'."),
        (
            ("run", "convolution", "--coefficients", "c.csv"),
            "--coefficients: There is no file c.csv.",
        ),
        (
            ("run", "convolution", "--filter", "custom", "--size", "3"),
            "--size has no effect with --filter custom, only with box, gaussian, ",
        ),
        (("run", "convolution", "--input", "nowhere.png"), "There is no file nowhere.png."),
        (("run", "convolution", "--input", "."), "is a folder, not a file."),
        (("run", "reduction", "--input", "nowhere.csv"), "There is no file nowhere.csv."),
        (("run", "reduction", "--input", "file"), "There is no file file."),
        (("run", "reduction", "--input", "x.csv", "--n", "3"), "--n has no effect with --input file, only with random"),
        (("run", "reduction", "--n", "-1"), "--n is a whole number from 0 to"),
        (("run", "reduction", "--block", "100"), "--block is one of 8, 16,"),
        (("run", "reduction", "--output", "a.png"), "the result is an array, not an image. Use .npy or .csv."),
        (("run", "convolution", "--output", "a.jpg"), ".jpg is not a known format. Use one of .pgm, .ppm,"),
        (("run", "convolution", "--output", "nowhere/a.png"), "there is no folder nowhere."),
    ],
)
def test_bad_input_is_refused_in_one_line(command, arguments: tuple[str, ...], sentence: str):
    done = command(*arguments)
    assert done.code == 2
    assert sentence in done.error_line


def test_coefficients_without_their_filter_are_refused(command, tmp_path: Path):
    path = tmp_path / "c.csv"
    path.write_text("1")
    done = command("run", "convolution", "--coefficients", str(path))
    assert done.code == 2
    assert "--coefficients has no effect with --filter gaussian, only with custom." in done.error_line


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"", "a.pgm"), (b"hello", "a.png"), (b"P5\n100 100\n255\nabc", "a.pgm"), (b"P5\n0 9\n255\n", "a.pgm")],
)
def test_a_file_that_is_no_image_is_refused_in_one_line(command, tmp_path: Path, content: bytes, name: str):
    path = tmp_path / name
    path.write_bytes(content)
    done = command("run", "histogram", "--engine", "simulator", "--input", str(path))
    assert done.code == 2
    assert str(path) in done.error_line


def test_an_output_that_cannot_be_is_refused_before_the_run(command, colorful: str, monkeypatch):
    install_failing_engine(monkeypatch, AssertionError("it ran"))
    done = command("run", "convolution", "--engine", "simulator", "--input", colorful, "--output", "a.pgm")
    assert done.code == 2
    assert "a color image needs .ppm or .png" in done.error_line


def test_an_engine_that_is_not_there_is_refused_in_one_line(command, small: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(engines.ENGINES, "cuda", "tests.gpu.fake_engines:UnavailableEngine")
    done = command("run", "convolution", "--engine", "cuda", "--input", small)
    assert done.code == 2
    assert done.error_line == "lockstep: There is no GPU. Buy one."


def test_auto_takes_the_simulator_where_there_is_no_gpu(command, small: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(engines.ENGINES, "cuda", "tests.gpu.fake_engines:UnavailableEngine")
    done = command("run", "convolution", "--input", small, "--json")
    assert json.loads(done.out)["engine"] == "simulator"


# What fails


def test_a_kernel_that_does_not_compile_shows_where_and_the_log(command, small: str, monkeypatch: pytest.MonkeyPatch):
    install_failing_engine(
        monkeypatch, CompileError("';' is missing.", position=SourcePosition("a.cu", 3, 7), detail="line 1\nline 2")
    )
    done = command("run", "convolution", "--engine", "simulator", "--input", small)
    assert done.code == 1
    assert done.err.splitlines() == ["lockstep: a.cu:3:7: ';' is missing.", "line 1", "line 2"]


@pytest.mark.parametrize("error", [LaunchError, EngineLostError])
def test_a_kernel_that_fails_is_told_in_one_line(command, small: str, monkeypatch: pytest.MonkeyPatch, error):
    install_failing_engine(monkeypatch, error("Index 9 is\nout of bounds.", advice="Check it.", detail="a\nb"))
    done = command("run", "convolution", "--engine", "simulator", "--input", small)
    assert done.code == 1
    assert done.error_line == "lockstep: Index 9 is out of bounds. Check it."


def test_a_result_that_is_not_right_fails(command, small: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(engines.ENGINES, "simulator", "gpu.engines.null:NullEngine")
    done = command("run", "convolution", "--engine", "simulator", "--input", small)
    assert done.code == 1
    assert "verified    NO: differs from reference" in done.out


def test_too_little_memory_is_told_in_one_line(command, small: str, monkeypatch: pytest.MonkeyPatch):
    install_failing_engine(monkeypatch, MemoryError())
    done = command("run", "convolution", "--engine", "simulator", "--input", small)
    assert done.code == 2
    assert done.error_line == "lockstep: There is not enough memory for this. Use a smaller input."


def test_ctrl_c_is_told_in_one_line(command, small: str, monkeypatch: pytest.MonkeyPatch):
    install_failing_engine(monkeypatch, KeyboardInterrupt())
    done = command("run", "convolution", "--engine", "simulator", "--input", small)
    assert done.code == 130
    assert done.error_line == "lockstep: Stopped."


# The program itself


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    bare = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    bare.pop("QT_QPA_PLATFORM", None)
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *arguments],
        env={**bare, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_program_runs_a_command_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = program("list")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("convolution: ")


def test_list_loads_neither_a_window_nor_an_engine_nor_scipy():
    script = """
import sys
import main
sys.argv = ["main.py", "list"]
main._run()
print([name for name in ("PyQt6", "scipy", "clang", "pycuda", "PIL", "pyqtgraph") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@needs.linux
def test_without_a_display_it_says_what_to_do_instead():
    done = program()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "There is no display" in done.stderr
    assert "tour DIR" in done.stderr


@needs.linux
@pytest.mark.parametrize("where", ["time.sleep(60)", "ctypes.CDLL(None).pthread_mutex_lock(lock)"])
def test_ctrl_c_ends_a_command_and_its_workers_even_outside_python(where: str):
    script = f"""
import ctypes, multiprocessing, sys, time
from gpu.cli import main as cli
from gpu.cli.patterns import run as cli_run

lock = ctypes.create_string_buffer(64)

def endless(*arguments, **options):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,), daemon=True).start()
    print("running", flush=True)
    while True:
        {where}

cli_run.run = endless
sys.exit(cli.main(["run", "convolution"], cli.Desktop(int, len, len)))
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)  # a worker that lived on would keep the stream open
        assert stderr == "lockstep: Stopped.\n"
        assert process.returncode == 130


@pytest.mark.parametrize(("schedule", "right"), [("round-robin", True), ("lanes:1", False), ("cached:0", True)])
def test_run_in_an_order(command, schedule: str, right: bool):
    words = ["reduction", "--variant", "volatile", "--input", "ramp", "--n", "64", "--block", "64", "--dtype", "int32"]
    done = command("run", *words, "--engine", "simulator", "--schedule", schedule, "--json")
    assert json.loads(done.out)["verified"] is right


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schedule", "lanes"), "'lanes' is not a schedule: use round-robin, shuffle:SEED"),
        (("--schedule", "lanes:1", "--executor", "compiled"), "leave out --engine and --executor"),
        (("--schedule", "lanes:1", "--engine", "cuda"), "leave out --engine and --executor"),
    ],
)
def test_run_refuses_an_order(command, words: tuple[str, ...], said: str):
    done = command("run", "reduction", "--n", "8", *words)
    assert done.code == 2
    assert said in done.error_line


def test_run_counts_the_letters_of_a_text_that_is_given_or_in_a_file(command, tmp_path: Path):
    file = tmp_path / "letters.txt"
    file.write_text("Zebra, 12!")
    for given in (["--text", "Zebra, 12!"], ["--of", "letters", "--input", str(file)]):
        done = command("run", "histogram", "--engine", "simulator", "--executor", "lockstep", *given)
        assert done.code == 0, done.err
        assert "a–d 2   e–h 1   i–l 0   m–p 0   q–t 1   u–x 0   y–z 1   other 5" in done.out
        assert "10 characters" in done.out


def test_run_counts_numbers_of_a_file_by_ranges(command, tmp_path: Path):
    file = tmp_path / "numbers.csv"
    file.write_text("-1\n0.25\n0.75\n1\n9\n")
    done = command(
        "run", "histogram", "--executor", "lockstep", "--engine", "simulator", "--edges", "0,.5,1", "--input", str(file)
    )
    assert done.code == 0, done.err
    assert "0 to 0.5 1   0.5 to 1 2   outside 2" in done.out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--of", "levels", "--text", "x"], "--text has no effect with --of levels"),
        (["--edges", "1,0"], "must increase"),
        (["--of", "letters", "--input", "none.txt"], "There is no file none.txt"),
        (["--of", "ranges", "--numbers", "file"], "No file of numbers is open"),
    ],
)
def test_run_refuses_what_cannot_be_counted(command, options: list[str], why: str):
    done = command("run", "histogram", *options)
    assert done.code == 2
    assert why in done.error_line


# --- a pattern's kernel with another text


def parse_table(done):
    return {line[:14].strip(): line[14:] for line in done.out.splitlines()[1:]}


@pytest.fixture
def edited(tmp_path):
    """Return a function that writes reduction's kernels with something put in the place of something else."""

    def write(old, new):
        text = (KERNELS / "reduction.cu").read_text()
        assert old in text
        (tmp_path / "mine.cu").write_text(text.replace(old, new))
        return str(tmp_path / "mine.cu")

    return write


def test_a_pattern_runs_with_another_text_and_is_checked(command, edited):
    done = command("run", "reduction", "--n", "5000", "--source", edited("// ", "//  "))
    assert (done.code, done.err) == (0, "")
    table = parse_table(done)
    assert table["verified"] == "yes"
    assert table["checked"].endswith(
        "nothing. The results for 20 edge cases are right. 3 other schedules with n = 1025, block = 256 gave the same "
        "result."
    )


def test_an_edit_that_is_right_for_the_input_only_fails(command, edited):
    source = edited("VALUE value = IDENTITY;", "VALUE value = 0;")
    done = command("run", "reduction", "--operator", "max", "--n", "5000", "--variant", "shuffle", "--source", source)
    assert done.code == 1
    assert parse_table(done)["verified"] == "NO: right for this input, wrong for n = 0"


def test_an_edit_of_the_stencil_is_judged(command, tmp_path):
    text = (KERNELS / "stencil.cu").read_text()
    for old, new, verified in (
        ("(z * rows + y) * columns + x;", "x + columns * (y + rows * z);", "yes"),
        ("center * in[place]", "in[place]", "NO: differs from reference"),
    ):
        assert old in text
        (tmp_path / "mine.cu").write_text(text.replace(old, new, 1))
        source = str(tmp_path / "mine.cu")
        done = command("run", "stencil", "--n", "24", "--variant", "naive", "--engine", "simulator", "--source", source)
        assert parse_table(done)["verified"] == verified


@pytest.mark.parametrize("as_json", [False, True])
def test_a_right_result_of_a_kernel_that_races_fails(command, edited, as_json):
    source = edited("__syncthreads();", "")
    # On a GPU the result of a race is right in some runs only.
    options = ("--engine", "simulator", "--variant", "interleaved", "--n", "5000", "--source", source)
    done = command("run", "reduction", *options, *(["--json"] * as_json))
    assert done.code == 1
    assert done.err == ""
    if as_json:
        report = json.loads(done.out)
        assert {each["kind"] for each in report["findings"]} == {"race"}
        assert report["findings"][0]["files"] == ["reduction.cu", "reduction.cu"]
        assert report["verdict"]["kind"] == "flawed"
        assert report["verdict"]["words"].startswith("right by chance: race in line")
        assert report["verified"] is False
    else:
        assert parse_table(done)["verified"].startswith("NO: right by chance: race in line")
        assert "Race reported between" in done.out
        assert "Insert __syncthreads(); before line" in done.out


def test_a_kernel_that_ends_at_a_mistake_has_findings_and_no_result(command, edited):
    source = edited("partial[blockIdx.x] = ", "partial[blockIdx.x + 100000000] = ")
    done = command("run", "reduction", "--variant", "interleaved", "--source", source, "--json")
    assert done.code == 1
    report = json.loads(done.out)
    assert [each["kind"] for each in report["findings"]] == ["out-of-bounds"]
    assert (report["verified"], report["verdict"]["kind"]) == (False, "wrong")
    done = command("run", "reduction", "--variant", "interleaved", "--source", source)
    assert done.code == 1
    assert "NO: wrong" not in done.out
    assert "out-of-bounds access" in parse_table(done)["verified"]


@pytest.mark.parametrize(
    ("text", "code", "said"), [("int x = ;", 1, "expected expression"), (None, 2, "There is no file")]
)
def test_a_text_that_is_none_is_one_sentence(command, tmp_path, text, code, said):
    path = tmp_path / "mine.cu"
    if text is not None:
        path.write_text(text)
    done = command("run", "nbody", "--bodies", "16", "--source", str(path))
    assert done.code == code
    assert said in done.err


def test_bodies_run_with_another_text_too(command, tmp_path):
    text = (KERNELS / "nbody.cu").read_text()
    (tmp_path / "nbody.cu").write_text(text.replace("__syncthreads();", ""))
    done = command("run", "nbody", "--bodies", "300", "--source", str(tmp_path / "nbody.cu"), "--json")
    assert done.code == 1
    assert json.loads(done.out)["findings"]


def test_values_are_typed(command):
    ran = command("run", "scan", "--values", "3 1 7 0 4 1 6 3", "--engine", "simulator", "--executor", "lockstep")
    assert ran.code == 0
    assert "result      3 4 11 11 15 16 22 25" in ran.out
    assert "input       typed, 8 x int32" in ran.out
    refused = command("run", "scan", "--values", "3 1", "--input", "ones")
    assert (refused.code, refused.out) == (2, "")
    assert "--values has no effect with --input ones, only with typed." in refused.err


def test_a_file_alone_opens_the_window_with_it(small):
    opened = []
    desktop = cli.Desktop(lambda file: opened.append(file) or 0, len, len)
    assert cli.main([small], desktop) == 0
    assert cli.main([], desktop) == 0
    assert opened == [Path(small), None]


def test_a_file_that_is_not_there_opens_nothing(command):
    assert "nowhere.py" in command("nowhere.py").error_line


def test_the_window_can_begin_with_a_cluster():
    begun = []
    desktop = cli.Desktop(lambda file, engine="": begun.append(engine) or 0, len, len)
    assert cli.main(["--engine", "dask", "--workers", "3"], desktop) == 0
    assert cli.main(["--engine", "dask", "--scheduler", "tcp://127.0.0.1:8786"], desktop) == 0
    assert cli.main(["--engine", "simulator"], desktop) == 0
    assert cli.main([], desktop) == 0
    assert begun == [ClusterSettings(workers=3), ClusterSettings("tcp://127.0.0.1:8786"), "simulator", ""]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "3"], "--workers has no effect without --engine dask."),
        (["--engine", "dask", "run", "scan"], "--engine must follow the command: `run ...`."),
    ],
)
def test_what_is_said_of_the_window_in_vain_is_refused(words, said, capsys):
    assert cli.main(words, cli.Desktop(len, len, len)) == 2
    assert said in capsys.readouterr().err
