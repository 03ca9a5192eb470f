"""Windows has modules, functions and signals less: nothing of the project asks for them when it is imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpu.base.paths import ROOT

FOLDERS = ("gpu", "gui", "package", "tools", "tests", "assets")
MODULES = [ROOT / "main.py", *sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]

UNIX_MODULES = {
    *("crypt", "curses", "fcntl", "grp", "nis", "ossaudiodev", "posix", "pty", "pwd", "readline", "resource", "spwd"),
    *("syslog", "termios", "tty"),
}
UNIX_NAMES = {
    "os": {
        *("EX_OK", "O_NONBLOCK", "WNOHANG", "chown", "environb", "fork", "forkpty", "getegid", "geteuid", "getgid"),
        *("getloadavg", "getpgid", "getpgrp", "getuid", "killpg", "mkfifo", "nice", "openpty", "pread", "pwrite"),
        *("register_at_fork", "sched_getaffinity", "sched_setaffinity", "setpgid", "setsid", "setuid", "statvfs"),
        *("sysconf", "uname", "wait", "wait4"),
    },
    "signal": {
        *("SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTRAP"),
        *("SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "alarm", "pause"),
        *("pthread_kill", "pthread_sigmask", "setitimer", "sigpending", "sigwait"),
    },
}


def nodes_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module that run when it is imported."""
    yield node
    inner = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        inner = iter([*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)])
    elif isinstance(node, ast.Lambda):
        inner = iter(node.args.defaults)
    elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
        inner = iter(node.orelse)
    for child in inner:
        yield from nodes_at_import(child)


WORDS = re.compile(rf"\b(?:{'|'.join(sorted(UNIX_MODULES.union(*UNIX_NAMES.values())))})\b")


def find_unix_names(text: str) -> list[str]:
    """Return what a module's text asks of Unix when it is imported: modules, and members of those of every system."""
    found = []
    if not WORDS.search(text):  # parsing a thousand files takes seconds
        return found
    for node in nodes_at_import(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module or "", *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.append(f"{node.value.id}.{node.attr}")
    unix = UNIX_MODULES | {f"{module}.{name}" for module, names in UNIX_NAMES.items() for name in names}
    return [name for name in found if name in unix or name.split(".")[0] in UNIX_MODULES]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("import fcntl", ["fcntl"]),
        ("try:\n    from resource import getrusage\nexcept ImportError: ...", ["resource", "resource.getrusage"]),
        ("class A:\n    import pwd", ["pwd"]),
        ("@given(signal.SIGKILL)\ndef f(a=os.getuid()): ...", ["signal.SIGKILL", "os.getuid"]),
        ("from signal import SIGKILL", ["signal.SIGKILL"]),
        ("def f():\n    import fcntl\n    os.fork()", []),
        ("if TYPE_CHECKING:\n    import fcntl", []),
        ("import signal, os\nsignal.SIGINT, os.getpid()", []),
    ],
)
def test_what_runs_at_import_is_told_from_what_runs_later(text, asked):
    assert find_unix_names(text) == asked


def test_importing_asks_nothing_of_unix():
    asked = {path.relative_to(ROOT).as_posix(): find_unix_names(path.read_text("utf-8")) for path in MODULES}
    assert len(asked) > 500
    assert {path: names for path, names in asked.items() if names} == {}


IMPORT_ALL = """
import pkgutil, sys
for name in sys.argv[1:]:
    sys.modules[name] = None
import gpu, gui, main, tools
rooms = [pkgutil.walk_packages(room.__path__, room.__name__ + ".") for room in (gpu, gui, tools)]
# What imports PyCUDA or Dask: both need not be there, and psutil, which Dask needs, is made for each system.
optional = {"gpu.engines.cuda.engine", "gpu.engines.cuda.lead", "gpu.engines.cuda.streams"}
distributed = ("cluster_session", "cluster_simulation", "distributed_run", "streaming", "tasks", "cluster.worker")
optional |= {f"gpu.distributed.{name}" for name in distributed}
cluster = ("cases", "command", "disk", "measure", "overhead", "resident_engine")
optional |= {f"tools.cluster_bench.{name}" for name in cluster}
names = [found.name for room in rooms for found in room if found.name not in optional]
for name in names:
    __import__(name)
print(len(names))
"""


def test_every_module_is_imported_where_there_are_no_modules_of_unix():
    blocked = sorted(UNIX_MODULES - {"posix"})  # which Python's own os is made of
    command = [sys.executable, "-c", IMPORT_ALL, *blocked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300
