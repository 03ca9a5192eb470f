"""What is read of the compiler's text."""

from __future__ import annotations

from gpu.timing.ptx.program import parse_ptx

TEXT = """.version 9.0
/* two
lines */
.visible .entry k(
	.param .u64 k_param_0 // the array
)
{
	.reg .b32 %r<4>; // three

	{ .reg .b32 inner; mov.u32 	%r1, %tid.x; }
$L__BB0_1:
	.pragma "nounroll";
	add.s32 	%r2,
		%r1, 1; mov.u32 %r3, %r2;
	@%p1 bra 	$L__BB0_1;

	ret;
}
"""


def test_instructions_know_their_lines_in_the_text() -> None:
    (kernel,) = parse_ptx(TEXT).kernels.values()
    found = [(each.opcode, each.text_line) for block in kernel.blocks for each in block.instructions]
    lines = TEXT.splitlines()
    assert [opcode for opcode, _ in found] == ["mov", "add", "mov", "bra", "ret"]
    assert [line for _, line in found] == [10, 13, 14, 15, 17]
    assert all(opcode in lines[line - 1] for opcode, line in found)
