from __future__ import annotations

import pytest

from gpu.engines.base import KERNELS
from gpu.patterns import all_patterns
from gui.source_pane import SourcePane, kernel_lines

EVERY_KERNEL = [
    (pattern.kernels, kernel)
    for pattern in all_patterns().values()
    for variant in pattern.variants
    for kernel in variant.kernels
]


@pytest.mark.parametrize(("file", "kernel"), EVERY_KERNEL)
def test_every_declared_kernel_is_found_whole(file, kernel):
    lines = (KERNELS / file).read_text().split("\n")
    first, last = kernel_lines("\n".join(lines), kernel)
    body = lines[first : last + 1]
    assert body[0].startswith("//")
    assert sum("__global__" in line for line in body) == 1
    assert any(kernel in line for line in body)
    assert lines[last] == "}"
    assert "\n".join(body).count("{") == "\n".join(body).count("}")


def test_a_kernel_that_is_not_there():
    assert kernel_lines("__global__ void other() {}", "mine") == (0, 0)
    assert kernel_lines("", "mine") == (0, 0)


def test_a_declaration_or_a_call_is_not_the_kernel():
    text = "// calls __global__ void k(\n__global__ void k(int n);\n\n__global__ void k(int n) {\n}\n"
    assert kernel_lines(text, "k") == (3, 4)


@pytest.mark.parametrize(("file", "kernel"), EVERY_KERNEL)
def test_the_pane_scrolls_to_the_kernel_and_colours_it(qtbot, file, kernel):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.resize(500, 300)
    with qtbot.waitExposed(pane):
        pane.show()
    pane.show_kernel(file, kernel)
    text = (KERNELS / file).read_text()
    assert pane.code.toPlainText() == text
    first, _ = kernel_lines(text, kernel)
    block = pane.code.document().findBlockByNumber(first)
    assert block.isVisible()
    assert pane.code.firstVisibleBlock().blockNumber() <= first
    colours = {span.format.foreground().color().name() for span in block.layout().formats()}
    fragments = block.begin()
    while not fragments.atEnd():
        colours.add(fragments.fragment().charFormat().foreground().color().name())
        fragments += 1
    assert "#7f8ea3" in colours or "#637085" in colours
    assert pane.title.text() == file
    assert pane.kernel.text() == kernel


def test_a_file_that_is_gone_is_said_in_the_pane(qtbot):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.show_kernel("gone.cu", "k")
    assert "cannot be read" in pane.code.toPlainText()


def test_it_is_read_only(qtbot):
    pane = SourcePane()
    qtbot.addWidget(pane)
    pane.show_kernel(*EVERY_KERNEL[0])
    text = pane.code.toPlainText()
    qtbot.keyClicks(pane.code, "hello")
    assert pane.code.toPlainText() == text
