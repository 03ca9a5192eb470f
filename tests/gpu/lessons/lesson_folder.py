"""A lesson of the tests' own: a kernel that adds, and what is asked and wanted of it."""

from __future__ import annotations

from pathlib import Path

KERNEL = """__global__ void add(const float *a, const float *b, float *c, int n) {
    // gap: add one pair
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    // end
}
"""

HEAD = """+++
title = "Adding"
order = 1
minutes = 5

[kernels.add]
file = "add.cu"
kernel = "add"
grid = "ceil(n / 8)"
block = 8
arguments = { a = "in n", b = "in n", c = "out n", n = "n" }
expects = { c = "a + b" }
+++

Words.

"""

SHOW = '[show]\nkernel = "add"\nn = 11\nat = { line = "c[i] =" }\n'

TASK = """[task]
name = "add"
kind = "gap"
prompt = "Add."
kernel = "add"
sizes = [1, 7, 8, 9, 33]
"""


def write_lesson(folder: Path, *blocks: str, head: str = HEAD, kernel: str = KERNEL) -> Path:
    """Write a lesson whose steps have these blocks of TOML, and return its folder."""
    steps = "".join(f"## Step {number}\n\nWords.\n\n```toml\n{block}```\n\n" for number, block in enumerate(blocks, 1))
    (folder / "lesson.md").write_text(head + (steps or "## Step\n\nWords.\n"), "utf-8")
    (folder / "add.cu").write_text(kernel, "utf-8")
    return folder
