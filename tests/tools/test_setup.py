"""What set-up decides, with the machine's answers put in its place."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gui.qt import system_libraries
from tools import setup
from tools.installation import gpu_support, probe
from tools.installation.probe import Toolkit

TOOLKIT_12 = Toolkit(Path("/opt/cuda-12.4"), (12, 4))
TOOLKIT_13 = Toolkit(Path("/opt/cuda-13.1"), (13, 1))


# --- PyCUDA: toolkit, wheels or neither


@pytest.mark.parametrize(
    ("driver", "found", "expected"),
    [
        ((13, 1), [TOOLKIT_13], TOOLKIT_13),
        ((13, 2), [TOOLKIT_13, TOOLKIT_12], TOOLKIT_13),
        ((13, 0), [TOOLKIT_13, TOOLKIT_12], TOOLKIT_12),
        ((12, 4), [TOOLKIT_12], TOOLKIT_12),
    ],
)
def test_a_toolkit_not_newer_than_the_driver_is_taken(driver, found, expected):
    assert gpu_support.plan_build(driver, found, []) == gpu_support.BuildPlan(toolkit=expected)


@pytest.mark.parametrize(
    ("driver", "bound"), [((13, 0), ">=13.0,<13.1"), ((13, 4), ">=13.0,<13.5"), ((14, 0), ">=13.0,<14.1")]
)
@pytest.mark.parametrize("found", [[], [Toolkit(Path("/opt/newer"), (15, 0))]])
def test_without_one_the_wheels_are_not_newer_than_the_driver(driver, bound, found):
    how = gpu_support.plan_build(driver, found, [])
    assert how.wheels == f"cuda-toolkit[cudart,curand,nvcc,profiler]{bound}"
    assert how.toolkit is None


def test_an_old_driver_without_a_toolkit_is_told():
    assert "12.4" in gpu_support.plan_build((12, 4), [], []).obstacle
    assert "newer" in gpu_support.plan_build((12, 4), [TOOLKIT_13], []).obstacle


def test_a_missing_compiler_is_told():
    assert gpu_support.plan_build((13, 1), [TOOLKIT_13], ["g++", "python3.11-dev"]).obstacle == (
        "building it needs g++ and python3.11-dev"
    )


def test_links_and_environment_of_a_build(tmp_path):
    toolkit, driver = tmp_path / "nvidia" / "cu13", tmp_path / "libcuda.so.1"
    (toolkit / "lib").mkdir(parents=True)
    (toolkit / "lib" / "libcudart.so.13").touch()
    (toolkit / "lib" / "libcurand.so.10").touch()
    driver.touch()
    links = tmp_path / "links"
    for _ in range(2):
        gpu_support.link_libraries(toolkit, driver, links)
    assert {link.name: link.resolve().name for link in links.iterdir()} == {
        "libcudart.so": "libcudart.so.13",
        "libcurand.so": "libcurand.so.10",
        "libcuda.so": "libcuda.so.1",
    }
    environment = gpu_support.build_environment(toolkit, links, {"PATH": "/bin", "LDFLAGS": "-s"})
    assert environment["PATH"].split(os.pathsep) == [str(toolkit / "bin"), "/bin"]
    assert environment["LIBRARY_PATH"].split(os.pathsep) == [str(links), str(toolkit / "lib")]
    assert environment["LDFLAGS"] == f"-s -Wl,-rpath,{toolkit / 'lib'}"


def test_the_wheels_toolkit_is_found(tmp_path):
    assert gpu_support.wheels_folder(tmp_path) is None
    (tmp_path / "nvidia" / "cu13" / "bin").mkdir(parents=True)
    (tmp_path / "nvidia" / "cu13" / "bin" / "nvcc").touch()
    assert gpu_support.wheels_folder(tmp_path) == tmp_path / "nvidia" / "cu13"


def test_a_toolkit_is_read_from_what_nvcc_says(tmp_path):
    assert probe.read_toolkit(tmp_path) is None
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text("#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n")
    nvcc.chmod(0o755)
    assert probe.read_toolkit(tmp_path) is None, "no headers"
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").touch()
    assert probe.read_toolkit(tmp_path) is None, "not all that PyCUDA includes"
    (tmp_path / "include" / "cudaProfiler.h").touch()
    (tmp_path / "include" / "curand.h").touch()
    assert probe.read_toolkit(tmp_path) == Toolkit(tmp_path, (12, 4))


# --- PyCUDA must not stop the window


@pytest.fixture
def gpu_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "driver_cuda_version", lambda: (13, 0))
    monkeypatch.setattr(probe, "missing_build_packages", list)
    monkeypatch.setattr(probe, "find_toolkits", lambda: [Toolkit(Path("/opt/cuda"), (13, 0))])
    monkeypatch.setattr(probe, "driver_library", lambda: None)
    monkeypatch.setattr(setup, "_is_runnable", lambda *_command: False)
    monkeypatch.setattr(setup.platform, "system", lambda: "Linux")
    return tmp_path


def test_a_failed_build_is_told_and_not_repeated(gpu_machine, monkeypatch, capsys):
    builds = []

    def fail(*arguments):
        builds.append(arguments)
        return "error: something in C++"

    monkeypatch.setattr(gpu_support, "install", fail)
    setup.ensure_pycuda(Path("python"), gpu_machine)
    assert "PyCUDA could not be installed: error: something in C++" in capsys.readouterr().out
    setup.ensure_pycuda(Path("python"), gpu_machine)
    assert len(builds) == 1
    assert "simulator" in capsys.readouterr().out
    setup.ensure_pycuda(Path("python"), gpu_machine, retry=True)
    assert len(builds) == 2


def test_a_build_that_worked_is_silent_the_second_time(gpu_machine, monkeypatch, capsys):
    builds = []
    monkeypatch.setattr(gpu_support, "install", lambda *arguments: builds.append(arguments) or "")
    setup.ensure_pycuda(Path("python"), gpu_machine)
    capsys.readouterr()
    setup.ensure_pycuda(Path("python"), gpu_machine, retry=True)
    assert len(builds) == 1
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(probe, "driver_cuda_version", lambda: (13, 1))
    setup.ensure_pycuda(Path("python"), gpu_machine)
    assert len(builds) == 2, "another driver, another build"


def test_without_a_driver_nothing_is_done(gpu_machine, monkeypatch):
    monkeypatch.setattr(probe, "driver_cuda_version", lambda: None)
    setup.ensure_pycuda(Path("python"), gpu_machine)
    assert not list(gpu_machine.iterdir())


def test_a_build_is_from_scratch_and_tried(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(gpu_support, "_run", lambda command, _environment: commands.append(command) or "")
    how = gpu_support.BuildPlan(toolkit=Toolkit(tmp_path, (13, 0)))
    requirements = tmp_path / "requirements-cuda.txt"
    assert gpu_support.install(Path("python"), requirements, how, None, tmp_path) == ""
    uninstall, build, others, attempt = commands
    assert uninstall[-1] == "pycuda"
    assert "--no-cache-dir" in build
    assert "--require-hashes" in build
    assert others[-1] == str(requirements)
    assert attempt == ["python", "-c", "import pycuda.driver"]


def test_the_line_that_says_best_what_went_wrong():
    log = "building\nx.hpp: in python::detail::error::must_be()\nx.cpp:1: fatal error: cuda.h: no such file\nbye"
    script = f"print({log!r}); raise SystemExit(1)"
    said = gpu_support._run([sys.executable, "-c", script], dict(os.environ))
    assert said == "x.cpp:1: fatal error: cuda.h: no such file"


# --- Qt's system libraries


@pytest.fixture
def linux(monkeypatch):
    monkeypatch.setattr(probe.platform, "system", lambda: "Linux")
    monkeypatch.setattr(probe, "_has_font", lambda: True)


def test_what_does_not_load_is_missing(linux):
    absent = {"libEGL.so.1", "libxcb-cursor.so.0"}
    assert probe.missing_qt_packages(system_libraries.WINDOW_LIBRARIES, lambda name: name not in absent) == [
        "libegl1",
        "libxcb-cursor0",
    ]
    assert probe.missing_qt_packages(system_libraries.OFFSCREEN_LIBRARIES, lambda name: name not in absent) == [
        "libegl1"
    ]
    assert probe.missing_qt_packages(system_libraries.WINDOW_LIBRARIES, lambda _name: True) == []


def test_a_font_is_needed_too(linux, monkeypatch):
    monkeypatch.setattr(probe, "_has_font", lambda: False)
    assert probe.missing_qt_packages({}, lambda _name: True) == ["fonts-dejavu-core"]


def test_the_line_to_type_where_nothing_may_be_installed(monkeypatch):
    monkeypatch.setattr(probe, "missing_qt_packages", lambda _libraries: ["libegl1", "libgl1"])
    monkeypatch.setattr(probe, "find_apt_prefix", lambda: None)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(setup.SetupError) as caught:
        setup.ensure_qt_libraries(system_libraries.WINDOW_LIBRARIES, "The window")
    assert str(caught.value).endswith("Run: sudo apt-get install -y --no-install-recommends libegl1 libgl1")


def test_the_libraries_are_named_where_there_is_no_apt(monkeypatch):
    monkeypatch.setattr(probe, "missing_qt_packages", lambda _libraries: ["libxcb-cursor0"])
    monkeypatch.setattr(setup.shutil, "which", lambda _name: None)
    with pytest.raises(setup.SetupError, match=r"libxcb-cursor\.so\.0: install them with this system's"):
        setup.ensure_qt_libraries(system_libraries.WINDOW_LIBRARIES, "The window")


def test_apt_is_called_as_allowed(monkeypatch):
    called = []

    def run(command, **_options):
        called.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(setup.subprocess, "run", run)
    assert setup.apt_install(["libegl1"], ["sudo", "-n"])
    assert [command[:2] for command in called] == [["sudo", "-n"]] * 2
    assert called[0][-1] == "update"
    assert called[1][-1] == "libegl1"
    called.clear()
    assert not setup.apt_install(["libegl1"], None)
    assert not called


def test_who_may_install(monkeypatch):
    assert probe.find_apt_prefix(which=lambda _name: None) is None
    monkeypatch.setattr(probe.os, "geteuid", lambda: 0)
    assert probe.find_apt_prefix(which=lambda name: name) == []
    monkeypatch.setattr(probe.os, "geteuid", lambda: 1000)
    for status, expected in ((0, ["sudo", "-n"]), (1, None)):
        done = subprocess.CompletedProcess([], status)
        monkeypatch.setattr(probe.subprocess, "run", lambda *_a, done=done, **_k: done)
        assert probe.find_apt_prefix(which=lambda name: name) == expected


# --- a display or none


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"DISPLAY": ""}, False),
        ({"DISPLAY": ":4242"}, False),
        ({"DISPLAY": "localhost:4242.0"}, False),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"QT_QPA_PLATFORM": "vnc"}, True),
    ],
)
def test_display(linux, environment, expected):
    assert probe.has_display(environment) == expected


def test_an_x_server_that_answers(linux, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "_X_SOCKETS", str(tmp_path))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "X7"))
        server.listen()
        assert probe.has_display({"DISPLAY": ":7.0"})


@pytest.fixture
def started(monkeypatch):
    seen = {}

    def prepare(*, window, requirements=setup.RUN_REQUIREMENTS, retry=False):
        seen.update(window=window, packages=requirements[-1].name)
        return Path("python")

    def start(_python, arguments, environment):
        seen.update(arguments=list(arguments), platform=environment.get("QT_QPA_PLATFORM"))
        return 0

    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.setattr(setup, "prepare", prepare)
    monkeypatch.setattr(setup, "start", start)
    return seen


def test_run_opens_the_window_where_there_is_a_display(started, monkeypatch):
    monkeypatch.setattr(probe, "has_display", lambda: True)
    assert setup.main(["run"]) == 0
    assert started == {
        "window": True,
        "packages": "requirements-run.txt",
        "arguments": ["main.py"],
        "platform": None,
    }


def test_run_makes_the_tour_where_there_is_none(started, monkeypatch, capsys):
    monkeypatch.setattr(probe, "has_display", lambda: False)
    assert setup.main(["run"]) == 0
    assert started == {
        "window": False,
        "packages": "requirements-run.txt",
        "arguments": ["main.py", "tour", "tour"],
        "platform": "offscreen",
    }
    assert "no display" in capsys.readouterr().out


def test_the_tests_run_without_a_screen(started):
    setup.main(["test", "-m", "gpu"])
    assert started == {
        "window": False,
        "packages": "requirements.txt",
        "arguments": ["-m", "pytest", "-m", "gpu"],
        "platform": "offscreen",
    }


COLLECTED = {
    "tests/gui/test_time.py::test_it[1]": ["alone"],
    "tests/gui/test_time.py::test_it[2]": ["alone", "timeout"],
    "tests/gui/test_gpu.py::test_it": ["gpu"],
    "tests/gpu/test_both.py::test_time": ["alone"],
    "tests/gpu/test_both.py::test_engine": ["gpu"],
    "tests/gpu/test_engine.py::test_it[cuda]": ["gpu", "sweep"],
    "tests/gpu/test_engine.py::test_it[simulator]": [],
    "tests/gpu/patterns/test_sort.py::test_it[cuda]": ["gpu"],
    "tests/test_other.py::test_it": [],
}


@pytest.mark.parametrize("codes", [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 5, 0, 0)])
def test_all_tests_run_on_every_core_but_those_that_measure_time_and_are_accounted_for(started, monkeypatch, codes):
    passes = []

    def finish(command, **settings):
        assert settings["env"]["QT_QPA_PLATFORM"] == "offscreen"
        passes.append(command[1:])
        if len(passes) == 1:
            Path(command[-1].removeprefix("--ledger="), "collected-0.json").write_text(json.dumps(COLLECTED))
        return subprocess.CompletedProcess(command, codes[len(passes) - 1])

    monkeypatch.setattr(setup.subprocess, "run", finish)
    assert setup.main(["test"]) == (1 if 1 in codes else 0)
    *runs, compared = passes
    assert [each[each.index("-m", 2) + 1] for each in runs] == [
        "not sweep and not alone", "not sweep and alone", "gpu and not hardware",
    ]  # fmt: skip
    assert [[word for word in each if word.startswith("tests/")] for each in runs] == [
        [],
        ["tests/gpu/test_both.py", "tests/gui/test_time.py"],
        ["tests/gpu/test_both.py", "tests/gpu/test_engine.py"],
    ]
    (folder,) = {each[-1].removeprefix("--ledger=") for each in runs}
    assert compared == ("-m", "tests.ledger", folder)


def test_the_exhaustive_tier_has_its_tests_and_every_tool(started, monkeypatch):
    commands = []

    def finish(command, **settings):
        commands.append(command[1:])
        return subprocess.CompletedProcess(command, 5 if "pytest" in command else "tools.kills" in command)

    monkeypatch.setattr(setup.subprocess, "run", finish)
    assert setup.main(["sweep"]) == 1
    assert [each[each.index("-m", 2) + 1] for each in commands[:3]] == [
        "sweep and not alone", "sweep and alone", "gpu and not hardware",
    ]  # fmt: skip
    tools = ("mutants", "lesson_mutants", "fuzz", "kills", "barriers", "flaky")
    assert [each[1] for each in commands[3:-1]] == [f"tools.{name}" for name in tools]
    assert commands[-1] == ["main.py", "lessons", "check"]


# --- Python and the virtual environment


def test_an_old_python_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(setup.sys, "version_info", (3, 10, 4))
    assert setup.main(["setup"]) == 1
    assert "Python 3.11 or newer is needed" in capsys.readouterr().err


def test_packages_are_installed_when_requirements_change(tmp_path, monkeypatch, capsys):
    installs = []

    def run(command, **_options):
        installs.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(setup.subprocess, "run", run)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("a")
    for text, count in (("a", 1), ("a", 1), ("# of c\n-r d.txt\nb>=1\nb-2==3", 2)):
        requirements.write_text(text)
        setup.ensure_packages(Path("python"), tmp_path, (requirements,))
        assert len(installs) == count
    first, second = capsys.readouterr().out.splitlines()
    assert "downloading a from PyPI" in first
    assert "downloading b, b-2 from PyPI" in second


def test_only_what_a_command_needs_is_installed(tmp_path, monkeypatch):
    installs = []

    def run(command, **_options):
        assert "--no-compile" in command, "Python compiles what it imports, a small part, at its first import"
        installs.append([Path(word).name for word in command if str(word).endswith(".txt")])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(setup.subprocess, "run", run)
    monkeypatch.setattr(setup, "ensure_venv", lambda: Path("python"))
    monkeypatch.setattr(setup.ensure_packages, "__defaults__", (tmp_path, setup.RUN_REQUIREMENTS))
    for requirements in (setup.RUN_REQUIREMENTS, setup.TEST_REQUIREMENTS, setup.RUN_REQUIREMENTS):
        setup.ensure_packages(Path("python"), requirements=requirements)
    assert setup.main(["packages"]) == 0
    assert installs == [["requirements-run.txt"], ["requirements.txt"], ["requirements-dev.txt"]]


def test_optional_packages_do_not_delay_the_first_window(monkeypatch):
    installed = []
    steps = ("ensure_packages", "ensure_qt_libraries", "ensure_dask", "ensure_pycuda", "ensure_pycuda_files")
    for name in steps:
        monkeypatch.setattr(setup, name, lambda *_values, name=name, **_options: installed.append(name))
    monkeypatch.setattr(setup, "ensure_venv", lambda: Path("python"))
    setup.prepare(window=True)
    assert set(steps) - set(installed) == {"ensure_dask", "ensure_pycuda_files"}
    setup.prepare(window=False, requirements=setup.TEST_REQUIREMENTS)
    assert set(installed) == set(steps)


def test_a_failed_install_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(setup.subprocess, "run", lambda command, **_options: subprocess.CompletedProcess(command, 1))
    for _ in range(2):
        with pytest.raises(setup.SetupError, match="output above"):
            setup.ensure_packages(Path("python"), tmp_path, setup.RUN_REQUIREMENTS)


def test_without_dask_set_up_goes_on(tmp_path, monkeypatch, capsys):
    installs, code = [], 1

    def run(command, **_options):
        installs.append(command)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(setup.subprocess, "run", run)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("dask")
    setup.ensure_dask(Path("python"), tmp_path, requirements)
    output = capsys.readouterr().out
    assert "downloading dask from PyPI" in output
    assert "no Dask" in output
    setup.ensure_dask(Path("python"), tmp_path, requirements)
    assert len(installs) == 1, "what failed is not tried at every start"
    code = 0
    for _ in range(2):
        setup.ensure_dask(Path("python"), tmp_path, requirements, retry=True)
    assert len(installs) == 2


def test_a_missing_venv_module_gives_the_line(tmp_path, monkeypatch):
    monkeypatch.setattr(setup.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(probe, "find_apt_prefix", lambda: None)
    with pytest.raises(setup.SetupError, match=r"apt-get install .* python3\.\d+-venv"):
        setup.ensure_venv(tmp_path / "venv")


def test_a_broken_environment_is_made_anew(tmp_path):
    venv = tmp_path / "venv"
    setup.venv_python(venv).parent.mkdir(parents=True)
    setup.venv_python(venv).symlink_to(tmp_path / "gone")
    python = setup.ensure_venv(venv)
    assert subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def test_an_unknown_command(capsys):
    assert setup.main(["fly"]) == 2
    assert "setup, run, test" in capsys.readouterr().out
