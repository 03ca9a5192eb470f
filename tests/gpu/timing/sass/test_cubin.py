"""What is read of machine code beside what NVIDIA's disassembler says of it.

`sum_75.cubin` and `sum_90.cubin` are what nvcc 13.0 made of `sum.cu` with -lineinfo; `sum.txt` is nvdisasm's listing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu.timing.sass import cubin
from gpu.timing.sass.cubin import MachineInstruction
from gpu.timing.sass.machine_lines import group_machine_lines

HERE = Path(__file__).parent
LISTING = [line.split() for line in (HERE / "sum.txt").read_text("utf-8").splitlines()]


def read(architecture: str) -> dict[str, list[MachineInstruction]]:
    image = (HERE / f"sum_{architecture}.cubin").read_bytes()
    return cubin.read_cubin(image, "sum.cu", f"{architecture[0]}.{architecture[1]}")


@pytest.mark.parametrize("architecture", ["75", "90"])
@pytest.mark.parametrize("kernel", ["sum", "keep_apart"])
def test_instructions_guards_branches_and_lines_are_the_disassemblers(architecture, kernel) -> None:
    found = read(architecture)[kernel]
    listed = [row[2:] for row in LISTING if row[:2] == [architecture, kernel]]
    ours = [[each.opcode, "guarded" if each.guarded else "always", str(each.target), str(each.line)] for each in found]
    assert ours == listed[: len(ours)]
    padding = {row[0] for row in listed[len(ours) :]}
    assert padding <= {"BRA", "NOP"}
    assert ours[-1][0] == "EXIT"


def test_what_is_inlined_from_a_header_counts_where_it_was_called() -> None:
    lines = {each.line: each for each in group_machine_lines(read("90")["sum"])}
    assert lines[2].opcodes["SHFL"] == 5
    assert sum(each.opcodes.get("SHFL", 0) for each in lines.values()) == 5


def test_arrays_of_a_thread_are_local_where_they_are_stored_and_loaded() -> None:
    lines = {each.line: each for each in group_machine_lines(read("90")["keep_apart"])}
    local = {line for line, each in lines.items() if each.local_accesses}
    assert local == {13, 14, 15}
    assert all(each.instructions == sum(each.opcodes.values()) for each in lines.values())
