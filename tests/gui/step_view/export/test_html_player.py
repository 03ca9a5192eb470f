"""A recording as a page: what its script says at each moment, in a real engine too, and that it opens here again."""

from __future__ import annotations

import json
import re
from html import escape

import numpy as np
import pytest
from PyQt6.QtQml import QJSEngine

from gpu.base.errors import InputError
from gpu.process.inspector import Inspector
from gpu.recording.player_file import encode_recording, extract_recording
from gpu.recording.recording import Recording
from tests import needs
from tests.gui.step_view.export.browsers import find_engine, run_script

MOST_BYTES = 2 * 10**6


@pytest.fixture
def write_player(qtbot, open_tab, tmp_path):
    """Return a function that opens a Step tab and saves its player."""

    def write(pattern="scan", variant="brent-kung", **params):
        tab = open_tab(pattern, variant, **params)
        path = tmp_path / "player.html"
        with qtbot.waitSignal(tab.exports.status_message) as said:
            tab.exports.write_player(path)
        assert said.args == ["Saved player.html"]
        return tab, path

    return write


def split_page(path):
    """Return the data of a page as a text, and the script that reads it."""
    data, recording, reads, shows = re.findall(r"<script[^>]*>(.*?)</script>", path.read_text("utf-8"), re.DOTALL)
    assert recording
    assert "document." not in reads
    assert "Recorded(" in shows
    return data, reads


class PageScript:
    """The page's script without a document, in Qt's own engine of JavaScript."""

    def __init__(self, path):
        data, reads = split_page(path)
        self.engine = QJSEngine()
        self.engine.globalObject().setProperty("told", data)
        self._run(reads.replace('"use strict";', ""))
        self._run("var read = Recorded(JSON.parse(told));")

    def _run(self, script):
        found = self.engine.evaluate(script)
        assert not found.isError(), found.toString()
        return found

    def evaluate(self, expression):
        return json.loads(self._run(f"JSON.stringify({expression})").toString())


@pytest.mark.parametrize(
    ("pattern", "variant"),
    [("scan", "brent-kung"), ("scan", "shuffle"), ("reduction", "neighbored"), ("sort", "bitonic"),
     ("compaction", "ballot"), ("histogram", "privatized")],
)  # fmt: skip
def test_the_script_says_what_the_window_shows(write_player, pattern, variant):
    tab, path = write_player(pattern, variant)
    models, read = tab.models, PageScript(path)
    layout, end = models.layout, models.recording.event_count
    for moment in [*range(0, end, max(1, end // 25)), end]:
        row = layout.row_at(moment)
        assert read.evaluate(f"read.rowAt({moment})") == row
        assert read.evaluate(f"read.phaseAt({moment})") == models.data.phases.phase_at(moment)
        assert read.evaluate(f"read.words({moment})") == tab.snapshots(moment, None).effect
        if row >= 0:
            assert read.evaluate(f"read.bright({moment})") == layout.cells_at(row, moment).tolist()
        if moment:
            assert read.evaluate(f"read.line({moment})")["line"] == models.lines[moment - 1]
        for number, each in enumerate(layout.rows):
            shown = read.evaluate(
                f"read.data.rows[{number}].column.map((_, cell) => read.shown({number}, cell, {moment}))"
            )
            assert shown == ((each.moment < moment) & (moment > each.first)).tolist()
        counts, tallied = read.evaluate(f"read.counts({moment})"), models.data.tally.counts_at(moment)
        assert (counts["operations"], counts["steps"]) == (tallied.operations, tallied.steps)
        lanes, now = read.evaluate(f"read.lanes({moment})"), tab.snapshots(moment, None)
        assert lanes["warps"] == ["".join(map(str, each)) for each in now.lanes.state[now.block].tolist()][:8]
    for number, each in enumerate(layout.rows):
        told = read.evaluate(f"read.data.rows[{number}]")
        assert told["text"] == layout.texts(number, layout.max_text_length)
        assert (told["computed"], told["thread"]) == (each.computed.astype(int).tolist(), each.thread.tolist())
        edges = layout.edges[number]
        lines = {tuple(line) for line in np.stack((edges.cell, edges.row, edges.column), axis=1).tolist()}
        assert {tuple(line) for line in told["edges"]} == {line for line in lines if line[1] != number}
        for cell in (0, each.column.size - 1):
            ancestry = read.evaluate(f"Array.from(read.ancestry({number}, {cell}))")
            assert {tuple(map(int, at.split(","))) for at in ancestry} == layout.dataflow.find_ancestors(number, cell)


def test_it_goes_from_phase_to_phase_and_to_a_line(write_player):
    tab, path = write_player()
    read, models = PageScript(path), tab.models
    starts = list(models.data.phases.starts)
    assert read.evaluate("read.starts()") == starts
    assert read.evaluate(f"read.next(read.starts(), {starts[1]}, 1)") == starts[2]
    assert read.evaluate(f"read.next(read.starts(), {starts[1]}, -1)") == starts[0]
    assert read.evaluate("read.next(read.starts(), 0, -1)") == 0
    line = int(models.lines[20])
    assert read.evaluate(f"read.nextExecution(0, {line}, 5)") == models.next_execution("scan.cu", line, 5)
    assert read.evaluate("read.nextExecution(0, 1, 5)") == -1


@pytest.mark.parametrize(("pattern", "variant"), [("scan", "brent-kung"), ("nbody", "pairs"), ("sort", "radix")])
def test_a_page_of_the_usual_size_is_small_and_asks_nobody(write_player, pattern, variant):
    _, path = write_player(pattern, variant)
    text = path.read_text("utf-8")
    assert path.stat().st_size < MOST_BYTES
    code = re.sub(r'<script id="(data|recording)"[^>]*>.*?</script>', "", text, flags=re.DOTALL)
    for word in ("http:", "https:", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "WebSocket", "<link"):
        assert word not in code
    assert "default-src 'none'" in code


def test_it_opens_in_the_window_again(qtbot, write_player, make_window):
    tab, path = write_player()
    window = make_window()
    window.user_file.open(path)
    qtbot.waitUntil(
        lambda: window.user_file.visible_page is not None and window.user_file.visible_page.step.models is not None
    )
    again, before = window.user_file.visible_page.step.models, tab.models
    assert again.recording.event_count == before.recording.event_count
    assert again.data.phases.names == before.data.phases.names
    for one, other in zip(again.layout.rows, before.layout.rows, strict=True):
        assert (one.label, one.value.tolist()) == (other.label, other.value.tolist())
    assert Recording.load(path).texts == before.recording.texts


def test_a_page_that_holds_no_recording_is_refused_in_a_sentence(write_player, tmp_path):
    _, path = write_player()
    text = path.read_text("utf-8")
    begin = text.rindex("octet-stream")
    inspector = Inspector()
    try:
        for damage in (text[:begin], text[: begin + 300] + "</script>", "<!DOCTYPE html><p>hello</p>"):
            damaged = tmp_path / "damaged.html"
            damaged.write_text(damage, "utf-8")
            with pytest.raises(InputError, match=r"damaged\.html"):
                inspector.read(damaged)
    finally:
        inspector.close()


def test_no_text_ends_the_script_that_it_stands_in(qtbot, write_player):
    tab, path = write_player()
    document = tab.source.document
    evil = "</script><script>document.title = 'owned'</script><!-- "
    document.setPlainText(document.text.replace("// phase: load", f"// phase: load {evil}"))
    qtbot.waitUntil(lambda: tab.models is not None and any("owned" in name for name in tab.models.data.phases.names))
    qtbot.waitUntil(lambda: tab.is_up_to_date)
    with qtbot.waitSignal(tab.exports.status_message):
        tab.exports.write_player(path)
    data, _ = split_page(path)
    assert "<" not in data
    names = PageScript(path).evaluate("read.data.phases")
    assert any("</script>" in name for name in names)


def test_symbols_are_written_where_they_are_shown(qtbot, write_player):
    tab, path = write_player()
    tab.panes.symbols.click()
    qtbot.waitUntil(lambda: tab.panes.flow.viewport.layout.symbols is not None)
    with qtbot.waitSignal(tab.exports.status_message):
        tab.exports.write_player(path)
    assert PageScript(path).evaluate("read.data.rows[0].text")[:3] == ["x0", "x1", "x2"]


def test_what_cannot_be_written_is_said(qtbot, open_tab, tmp_path):
    tab = open_tab()
    with qtbot.waitSignal(tab.exports.failed) as failed:
        tab.exports.write_player(tmp_path / "nowhere" / "player.html")
    assert "player.html" in failed.args[0]


def test_bytes_go_into_a_page_and_come_out_of_it():
    data = bytes(range(256)) * 3
    page = f'<!DOCTYPE html><script id="recording" type="application/octet-stream">{encode_recording(data)}</script>'
    assert extract_recording(page.encode()) == data
    for other in (b"PK\x03\x04", b"", b"<!DOCTYPE html>", page.replace("AAEC", "A*EC").encode()):
        assert extract_recording(other) == other


IN_A_BROWSER = """function () {
  const player = window.lockstep, said = {}, $ = id => document.getElementById(id);
  said.end = player.read.end;
  said.title = document.title;
  const key = name => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  key("ArrowRight"); key("ArrowRight"); key("ArrowLeft");
  said.step = $("step").textContent;
  key("End");
  said.last = $("step").textContent;
  said.phase = $("phase").textContent;
  $("phase-back").click();
  said.back = player.state.moment;
  player.go(player.read.end);
  const canvas = $("flow"), frame = canvas.getBoundingClientRect(), at = player.place(ROW, CELL);
  canvas.dispatchEvent(new MouseEvent("click", { clientX: frame.left + at.x, clientY: frame.top + at.y }));
  said.lit = player.state.lit ? player.state.lit.size : 0;
  said.words = $("words").textContent;
  key("Escape");
  said.cleared = player.state.lit === null;
  document.querySelector(".warp i").click();
  said.thread = player.state.thread;
  document.querySelector("#code span:nth-child(LINE)").click();
  said.line = player.state.moment;
  said.now = document.querySelector("#code .now").dataset.line;
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, colors = new Set();
  for (let each = 0; each < pixels.length; each += 4 * 97)
    colors.add(pixels[each] + "," + pixels[each + 1] + "," + pixels[each + 2] + "," + pixels[each + 3]);
  said.colors = colors.size;
  said.fits = document.documentElement.scrollWidth <= window.innerWidth;
  return said;
}"""


def test_a_link_opens_it_at_a_step(write_player):
    tab, path = write_player()
    read = PageScript(path)
    for link, step, embedded in (
        ("", 0, False), ("#step=12", 12, False), ("#embed", 0, True), ("#embed&step=3", 3, True),
        ("#step=3&embed", 3, True), ("#step=999999", -1, False), ("#step=x", 0, False), ("#embedded", 0, False),
    ):  # fmt: skip
        assert read.evaluate(f"read.linked({link!r})") == step % (tab.models.recording.event_count + 1), link
        assert read.evaluate(f"read.embedded({link!r})") is embedded, link


@needs.needs(find_engine(), "a browser: pip install PyQt6-WebEngine, or apt-get install chromium")
def test_it_plays_in_a_real_engine(write_player, tmp_path):
    tab, path = write_player()
    models = tab.models
    row = len(models.layout.rows) - 2
    cell = int(np.flatnonzero(models.layout.rows[row].computed)[-1])
    line = models.layout.rows[row].line
    script = IN_A_BROWSER.replace("ROW", str(row)).replace("CELL", str(cell)).replace("LINE", str(line))
    said = run_script(path, script, tmp_path)
    assert isinstance(said, dict), said
    end = models.recording.event_count
    assert (said["end"], said["step"], said["last"]) == (end, f"step 1 of {end}", f"step {end} of {end}")
    assert said["phase"] == "write"
    assert said["back"] == models.data.phases.starts[-1]
    assert said["title"].startswith("Scan: Brent-Kung")
    assert said["lit"] == len(models.layout.dataflow.find_ancestors(row, cell))
    assert f"[{models.layout.rows[row].column[cell]}]" in said["words"]
    assert said["cleared"]
    assert said["thread"] == [0, 0]
    assert said["now"] == str(line)
    assert models.lines[said["line"] - 1] == line
    assert said["colors"] > 8
    assert said["fits"]


@needs.needs(find_engine(), "a browser: pip install PyQt6-WebEngine, or apt-get install chromium")
@pytest.mark.parametrize(("name", "embedded"), [("#embed", True), ("other", False)])
def test_a_frame_without_an_address_chooses_the_form_by_its_name(write_player, tmp_path, name, embedded):
    _tab, path = write_player()
    page = tmp_path / "notebook.html"
    frame = f'<iframe name="{name}" srcdoc="{escape(path.read_text("utf-8"))}"></iframe>'
    page.write_text(f"<html><body>{frame}</body></html>", "utf-8")
    script = "() => document.querySelector('iframe').contentDocument.body.classList.contains('embedded')"
    assert run_script(page, script, tmp_path) is embedded
