"""A page in a real browser's engine: PyQt6-WebEngine where it is installed, else Chromium where that is there."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SANDBOX = "--no-sandbox"  # in containers there is none to be had
_DRIVER = """
import sys
from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineCore import QWebEnginePage
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

class Page(QWebEnginePage):
    def javaScriptConsoleMessage(self, level, message, line, source):
        print(f"console: {message} ({line})", file=sys.stderr)

def ask(_):
    page.runJavaScript("document.getElementById('result') && document.getElementById('result').textContent", say)

def say(found):
    if found:
        print(found)
        app.quit()
    else:
        QTimer.singleShot(50, lambda: ask(True))

app = QApplication(["browser"])
view = QWebEngineView()
page = Page(view)
view.setPage(page)
view.resize(1280, 720)
view.show()
page.loadFinished.connect(ask)
page.load(QUrl.fromLocalFile(sys.argv[1]))
QTimer.singleShot(60000, app.quit)
app.exec()
"""


def find_engine() -> str:
    """Return what there is to try a page in: "webengine", the path of a Chromium, or "" for nothing."""
    if importlib.util.find_spec("PyQt6.QtWebEngineCore") is not None:
        return "webengine"
    return next((found for name in _CHROMIUMS if (found := shutil.which(name))), "")


def run_script(page: Path, script: str, folder: Path) -> Any:
    """Return what a script says that runs in a page, which it does by an expression that can be told as JSON."""
    tried = folder / "tried.html"
    ending = (
        "<script>addEventListener('load', () => { let said; try { said = JSON.stringify((" + script + ")()); }"
        " catch (error) { said = JSON.stringify('failed: ' + error); }"
        " const pre = document.createElement('pre'); pre.id = 'result'; pre.textContent = said;"
        " document.body.append(pre); });</script></body>"
    )
    tried.write_text(page.read_text("utf-8").replace("</body>", ending), "utf-8")
    found = find_engine()
    if found == "webengine":
        command = [sys.executable, "-W", "ignore", "-c", _DRIVER, str(tried)]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_CHROMIUM_FLAGS": _SANDBOX}
        said = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert said.stdout, said.stderr[-2000:]
        return json.loads(said.stdout)
    command = [
        found,
        "--headless",
        _SANDBOX,
        "--disable-gpu",
        "--virtual-time-budget=4000",
        "--dump-dom",
        tried.as_uri(),
    ]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    match = re.search(r'<pre id="result">(.*?)</pre>', dumped, re.DOTALL)
    assert match is not None, dumped[-2000:]
    return json.loads(unescape(match[1]))
