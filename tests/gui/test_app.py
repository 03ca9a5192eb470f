"""The application as it is started: what goes wrong in a part of it does not end it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PyQt6.QtCore import QSize

from gpu.base.paths import ROOT
from gui.app import compute_initial_size

FAILS = """
import sys
from PyQt6.QtCore import QEvent, QTimer
from PyQt6.QtWidgets import QApplication
from gui.app import application, main
from gui.window.files import Files
from gui.window.main_window import MainWindow

Files.open_file = lambda _files, path: print("open", path.name)

class FileOpenEvent(QEvent):  # Python cannot create Qt's
    def file(self):
        return "/sum.lockstep"

def fail():
    QApplication.sendEvent(application(), FileOpenEvent(QEvent.Type.FileOpen))
    QTimer.singleShot(0, look)
    raise ZeroDivisionError("out of luck")

def look():
    window = next(each for each in QApplication.topLevelWidgets() if isinstance(each, MainWindow))
    print(window.banner.message.text(), window.banner.detail.toPlainText().splitlines()[-1], sep="\\n")
    window.close()

if __name__ == "__main__":
    application()
    QTimer.singleShot(0, fail)
    sys.exit(main(["--engine", "null"]))
"""


def test_the_window_opens_files_of_macos_and_outlives_an_error_in_a_part_of_it(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "open sum.lockstep",
        "Internal error: ZeroDivisionError.",
        "ZeroDivisionError: out of luck",
    ]
    assert "out of luck" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("room", "size"),
    [
        ((1280, 720), None),
        ((1280, 800), None),
        ((1366, 728), None),
        ((1440, 900), (1280, 720)),
        ((1920, 1040), (1536, 832)),
        ((3840, 2160), (1760, 1000)),
    ],
)
def test_the_foot_of_a_first_window_is_on_the_screen(room, size):
    """At 720 lines the frame's title pushed it below."""
    assert compute_initial_size(QSize(*room)) == (None if size is None else QSize(*size))


def test_all_of_the_systems_libraries_that_are_missing_are_named_with_the_command(monkeypatch, capsys):
    import main
    from gui.qt import system_libraries

    gone = {"libxcb-icccm.so.4", "libxcb-keysyms.so.1"}
    monkeypatch.setattr(system_libraries.platform, "system", lambda: "Linux")
    monkeypatch.setattr(system_libraries, "can_load_library", lambda library: library not in gone)
    monkeypatch.setattr(system_libraries.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main._open_window() == 2
    said = capsys.readouterr().err
    assert all(library in said for library in gone)
    assert said.rstrip().endswith("sudo apt-get install -y --no-install-recommends libxcb-icccm4 libxcb-keysyms1")
    assert main._tour("pictures") == main._measure_window(Path("page.md"), 1) == 2
    assert capsys.readouterr().err == 2 * said
    monkeypatch.setattr(system_libraries.shutil, "which", lambda name: None)
    assert main._open_window() == 2
    said = capsys.readouterr().err
    assert all(library in said for library in gone)
    assert "apt-get" not in said
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert system_libraries.find_obstacle() == "", "on Wayland nothing of X is wanted"


OPENS = """
import sys
from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication
from gui.app import application, main
from gui.window.main_window import MainWindow

def look():
    window = next(each for each in QApplication.topLevelWidgets() if isinstance(each, MainWindow))
    page, sequences = window.user_file.visible_page, window.sequences
    if page is None and (sequences.path is None or sequences.is_opening):
        return
    timer.stop()
    if page is not None:
        print(type(page).__name__, page.path.name)
    else:
        print(sequences.path.name, window.page.variant.name, window.page.step.player.moment)
    window.close()

if __name__ == "__main__":
    app = application()
    timer = QTimer(interval=50)
    timer.timeout.connect(look)
    timer.start()
    sys.exit(main([sys.argv[1], "--engine", "null"]))
"""


def test_a_script_on_the_command_line_is_opened_on_its_page(tmp_path):
    opens, script = tmp_path / "opens.py", tmp_path / "script.py"
    opens.write_text(OPENS)
    script.write_text("print(1)\n")
    done = subprocess.run(
        [sys.executable, str(opens), str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "ProgramPage script.py\n", done.stderr


def test_a_sequence_on_the_command_line_shows_its_first_moment(tmp_path):
    opens, sequence = tmp_path / "opens.py", tmp_path / "own.sequence"
    opens.write_text(OPENS)
    sequence.write_text('title = "Own"\n[[moment]]\ntitle = "M"\npattern = "scan"\nvariant = "naive"\nstep = 7\n')
    done = subprocess.run(
        [sys.executable, str(opens), str(sequence)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "own.sequence naive 7\n", done.stderr
