"""Attacks on the grader by whole programs, whose host code runs on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from gpu.base.child_processes import keep_user_packages, start_python
from gpu.base.errors import CompileError, InputError
from gpu.cli import main as cli
from gpu.lessons.lesson_reader import LIBRARY, read_kernel_file
from gpu.lessons.program_runner import ProgramRunner
from gpu.process.file_access import is_supported
from gpu.process.programs.confinement import CPU_LIMIT_S, MAX_MEMORY_BYTES, MAX_OUTPUT_BYTES
from tests import needs
from tests.gpu.cli.no_desktop import NO_WINDOW
from tests.gpu.process.host_listener import is_alive, wait_until

pytestmark = [needs.cplusplus, needs.needs(is_supported(), "Landlock: run the tests on Linux 5.13 or newer")]

PROBE = r"""
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static void tell(const char *what, long result) {
    printf("%s %s\n", what, result >= 0 ? "works" : strerrorname_np(errno));
    fflush(stdout);
}

int main() {
    char path[4096];
    if (scanf("%4095s", path) != 1) return 1;
    std::string folder = path;
    folder.resize(folder.rfind('/'));
    tell("read", open(path, O_RDONLY));
    tell("list", open(folder.c_str(), O_RDONLY));
    tell("write", open((folder + "/written").c_str(), O_WRONLY | O_CREAT, 0600));
    tell("own-folder", open("written", O_WRONLY | O_CREAT, 0600));
    tell("remove", unlink(path));
    tell("link", symlink(path, "/tmp/lockstep-link"));
    tell("folder", mkdir((folder + "/made").c_str(), 0700));
    tell("other-memory", open(("/proc/" + std::to_string(getppid()) + "/mem").c_str(), O_RDONLY));
    tell("other-arguments", open(("/proc/" + std::to_string(getppid()) + "/environ").c_str(), O_RDONLY));
    tell("tcp", socket(AF_INET, SOCK_STREAM, 0));
    tell("packet", socket(AF_PACKET, SOCK_RAW, 0));
    tell("signal", kill(getppid(), SIGTERM));
    tell("group", kill(0, SIGTERM));
    tell("new-session", setsid());
    tell("new-group", setpgid(0, 0));
    tell("trace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    char byte;
    iovec own = {&byte, 1}, other = {(void *)&tell, 1};
    tell("peek", process_vm_readv(getppid(), &own, 1, &other, 1, 0));
    tell("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    tell("clone3", syscall(435, 0, 0));
    tell("spawn", system("true") == 0 ? 0 : (errno = EPERM, -1));
    char *words[] = {(char *)"true", nullptr};
    tell("execute", execv("/bin/true", words));
    for (int handle = 4; handle < 64; ++handle)
        if (fcntl(handle, F_GETFD) != -1) tell("descriptor", 0);
    printf("secret %s\n", getenv("LOCKSTEP_SECRET") || getenv("LOCKSTEP_CACHE") ? "works" : "hidden");
    std::thread([] { tell("thread", 0); }).join();
    return 0;
}
"""


@pytest.fixture(scope="module")
def probe() -> Iterator[ProgramRunner]:
    os.environ["LOCKSTEP_SECRET"] = "hidden"
    try:
        with ProgramRunner("probe.cu", PROBE) as runner:
            yield runner
    finally:
        del os.environ["LOCKSTEP_SECRET"]


def test_a_program_reaches_no_file_process_or_network(probe: ProgramRunner, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", "utf-8")
    run = probe.run(f"{secret}\n")
    assert run.code == 0, run.errors
    found = dict(line.split() for line in run.output.splitlines())
    assert found.pop("thread") == "works"
    assert found.pop("secret") == "hidden"
    assert found.pop("clone3") == "ENOSYS"
    assert "descriptor" not in found
    assert set(found.values()) <= {"EACCES", "EPERM"}, found
    assert len(found) == 20
    assert [*tmp_path.iterdir()] == [secret]


LIMITED = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
int main() {
    char what[32];
    if (scanf("%31s", what) != 1) return 1;
    if (!strcmp(what, "flood")) for (;;) puts("a line of output");
    if (!strcmp(what, "memory")) for (size_t size = 1 << 20;; size *= 2) {
        volatile char *bytes = (char *)malloc(size);
        *bytes = 1;  // filling them would take longer than the time limit on a busy machine
        printf("%zu\n", size);
        fflush(stdout);
    }
    rlimit limit;
    getrlimit(RLIMIT_CPU, &limit);
    printf("%d %d\n", (int)limit.rlim_cur, (int)limit.rlim_max);
    limit.rlim_cur = 1;  // which takes less time to reach
    setrlimit(RLIMIT_CPU, &limit);
    if (!strcmp(what, "endless")) for (volatile int k = 0;; k = k + 1) { }
    if (!strcmp(what, "abort")) abort();
    return 3;
}
"""


def test_limits_of_time_memory_and_output_end_a_run_and_the_next_one_works() -> None:
    with ProgramRunner("limited.cu", LIMITED) as runner:
        flooded = runner.run("flood")
        assert flooded.signal == "SIGXFSZ"
        assert len(flooded.output) <= MAX_OUTPUT_BYTES
        exhausted = runner.run("memory")
        assert exhausted.signal == "SIGSEGV"
        assert sum(map(int, exhausted.output.split())) < MAX_MEMORY_BYTES
        assert runner.run("abort").signal == "SIGABRT"
        # Its limit is of processor time, or of the clock if the machine is busy.
        assert runner.run("endless").signal in ("SIGXCPU", "SIGKILL")
        other = runner.run("other")
        assert (other.code, other.output) == (3, f"{CPU_LIMIT_S} {CPU_LIMIT_S + 1}\n")


@pytest.mark.parametrize("text", ["int main() { return undeclared; }", "__global__ void k("])
def test_a_program_that_cannot_be_built_is_reported(text: str) -> None:
    with pytest.raises(CompileError, match=r"not declared|declared void"):
        ProgramRunner("broken.cu", text)


def test_a_program_without_main_ends_with_an_error() -> None:
    with ProgramRunner("empty.cu", "int other() { return 0; }") as runner:
        run = runner.run("")
        assert run.code != 0
        assert "main" in run.errors


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        with ProgramRunner("good.cu", "#include <builtin_types.h>\nint main() { return 3; }") as runner:
            assert runner.run("").code == 3
    assert len([*(tmp_path / "cache").glob("*.host")]) == 1


def test_programs_that_cannot_be_confined_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProgramRunner("good.cu", "int main() { return 0; }") as runner:
        assert runner.run("").code == 0
        ask = runner._ask
        monkeypatch.setattr(runner, "_ask", lambda request: {**ask(request), "unsupported": "needs Landlock"})
        with pytest.raises(InputError, match="needs Landlock"):
            runner.run("")


@pytest.mark.parametrize(
    ("probes", "error"), [({"results": ["no number"]}, "ValueError"), ({"failing": 3}, "TypeError")]
)
def test_an_error_of_lockstep_is_no_result_of_the_program(probes: dict[str, object], error: str) -> None:
    with (
        ProgramRunner("good.cu", "int main() { return 0; }") as runner,
        pytest.raises(RuntimeError, match=error),
    ):
        runner.run("", **probes)


def test_an_error_of_lockstep_within_a_call_is_no_result_of_the_program() -> None:
    text = "int main() { int *a; return cudaMalloc(&a, 4) != 0; }"
    with ProgramRunner("good.cu", text) as runner, pytest.raises(RuntimeError, match="unhashable"):
        runner.run("", failing=(["unhashable"], 1))


_GRADER = """
from gpu.lessons.program_runner import ProgramRunner
with ProgramRunner("sleeping.cu", "#include <unistd.h>\\nint main() { setsid(); for (;;) pause(); }") as runner:
    print(runner._process.pid, flush=True)
    runner.run("")
"""


def test_a_running_program_ends_when_the_grader_is_killed() -> None:
    grader = start_python("-c", _GRADER)
    assert grader.stdout is not None
    server = int(grader.stdout.readline())
    children = Path(f"/proc/{server}/task/{server}/children")
    assert wait_until(lambda: children.read_text().strip() != "")
    program = int(children.read_text())
    status = Path(f"/proc/{program}/status")
    assert wait_until(lambda: "Seccomp:\t2" in status.read_text() and "State:\tS" in status.read_text())
    grader.kill()
    grader.communicate()
    assert wait_until(lambda: not is_alive(server) and not is_alive(program), 5)


_OTHER_PLACE = """
import platformdirs
from gpu.process.file_access import find_python_folders, restrict_file_access
from pathlib import Path
import sys
folder, inside = Path(sys.argv[1]), Path(platformdirs.__file__)
assert inside.parents[1] == folder
assert restrict_file_access(find_python_folders())
inside.read_text()
try:
    (folder.parent / "solutions.cu").read_text()
except PermissionError:
    print("hidden")
"""


def test_packages_in_another_place_are_read_and_nothing_beside_them(tmp_path: Path) -> None:
    """As `pip install --user` has it, or PYTHONPATH."""
    packages = tmp_path / "packages"
    shutil.copytree(Path(platformdirs.__file__).parent, packages / "platformdirs")
    (tmp_path / "solutions.cu").write_text("")
    python = start_python(
        "-c", _OTHER_PLACE, str(packages), environment={"PYTHONPATH": str(packages)}, stderr=subprocess.STDOUT
    )
    assert python.communicate() == (b"hidden\n", None)


def test_the_users_packages_are_found_with_another_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("site.ENABLE_USER_SITE", True)
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path))
    show = "import site; print(site.getuserbase())"
    python = start_python("-c", show, environment={"HOME": "/nowhere", **keep_user_packages()})
    assert python.communicate()[0].decode().strip() == str(tmp_path)


@pytest.fixture
def own_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a C++ compiler as conda, Spack and environment modules do: not in the system's folders."""
    system_compiler = shutil.which("g++") or ""
    if not system_compiler:  # clang++ finds its parts elsewhere
        needs.skip(needs.COMPILER)
    parts = tmp_path / "toolchain" / "lib"
    parts.mkdir(parents=True)
    for name in ("cc1plus", "collect2"):
        command = [system_compiler, f"-print-prog-name={name}"]
        shutil.copy(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip(), parts)
    program = tmp_path / "toolchain" / "bin" / "g++"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {system_compiler} -B{parts}/ "$@"\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))  # where no compiled program is


@pytest.mark.usefixtures("own_compiler")
def test_the_compiler_may_be_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class").mkdir()
    solution = read_kernel_file(LIBRARY / "26-host-launches", "copies.cu")
    (tmp_path / "class" / "solution.cu").write_text(solution, "utf-8")
    code = cli.main(["grade", "26-host-launches/copies", str(tmp_path / "class"), "--json"], NO_WINDOW)
    (graded,) = json.loads(capsys.readouterr().out)["submissions"]
    assert graded["accepted"], graded["sentences"]
    assert code == 0


def test_a_class_of_programs_is_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lesson"
    shutil.copytree(LIBRARY / "26-host-launches", folder)
    words = (folder / "lesson.md").read_text("utf-8")
    sizes = "sizes = [1, 5, 127, 128, 129, 2050]"
    assert sizes in words
    (folder / "lesson.md").write_text(words.replace(sizes, "sizes = [5, 129]"), "utf-8")
    solution = read_kernel_file(folder, "copies.cu")
    lesson = str(folder / "copies.cu")
    spy = f'FILE *file = fopen("{lesson}", "r"); if (file || fopen("{tmp_path}/class/b-host.cu", "r")) return 1;'
    texts = {
        "a-spy.cu": solution.replace("int n;", f"int n; {spy}"),
        "b-host.cu": solution.replace("scale<<<(n + 127) / 128, 128>>>(device_x, device_y, n);", "").replace(
            '"%.9g\\n", value', '"%.9g\\n", 0 * value'
        ),
        "c-include.cu": f'#include "{lesson}"\n',
    }
    (tmp_path / "class").mkdir()
    for name, text in texts.items():
        (tmp_path / "class" / name).write_text(text, "utf-8")
    code = cli.main(["grade", f"{folder}/copies", str(tmp_path / "class"), "--json", "--seed", "5"], NO_WINDOW)
    graded = {each["name"]: each for each in json.loads(capsys.readouterr().out)["submissions"]}
    assert code == 1
    assert [each["accepted"] for each in graded.values()] == [True, False, False], graded
    assert "no kernel runs" in graded["b-host.cu"]["words"]
    assert "forbidden include" in graded["c-include.cu"]["words"]
    assert all(each["graded"] for each in graded.values())
