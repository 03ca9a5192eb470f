"""What is read of the compiler's text."""

from __future__ import annotations

import pytest

from gpu.base.errors import KernelError
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


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("scale<float>", "_Z5scaleIfEvPT_"),
        ("scale<unsignedint>", "_Z5scaleIjEvPT_"),
        ("tile<int,16,true>", "_Z4tileIiLi16ELb1EEvPT_"),
        ("tile<int,-3,0>", "_Z4tileIiLin3ELb0EEvPT_"),
        ("tile<int,32>", "_Z4tileIiLi32ELb0EEvPT_"),
        ("space::pick<Pair>", "_ZN5space4pickI4PairEEvPT_"),
        ("pick<float*>", "_ZN5space4pickIPfEEvPT_"),
        ("other", "other"),
    ],
)
def test_template_arguments_select_one_of_several_instantiations(name, symbol):
    symbols = (
        *("_Z5scaleIfEvPT_", "_Z5scaleIjEvPT_", "_Z5scaleIjfEvPT_", "_Z4tileIiLi16ELb1EEvPT_", "other"),
        *("_Z4tileIiLi16ELb0EEvPT_", "_Z4tileIiLin3ELb0EEvPT_", "_Z4tileIiLi32ELb0EEvPT_"),
        *("_ZN5space4pickI4PairEEvPT_", "_ZN5space4pickIPfEEvPT_", "_Z7anotherIfEvPT_"),
    )
    program = parse_ptx("".join(f".visible .entry {each}()\n{{\nret;\n}}\n" for each in symbols), "test.cu")
    assert program.find_kernel(name).name == symbol


@pytest.mark.parametrize("name", ["scale<double>", "tile", "scale", "nothing<int>"])
def test_a_name_of_no_or_several_kernels_is_refused(name):
    program = parse_ptx(
        "".join(f".visible .entry {each}()\n{{\nret;\n}}\n" for each in ("_Z5scaleIfEvv", "_Z5scaleIiEvv")), "test.cu"
    )
    with pytest.raises(KernelError, match="has no kernel"):
        program.find_kernel(name)


def test_only_the_kernels_that_are_used_are_parsed() -> None:
    broken = ".visible .entry broken()\n{\n$$ ;\nret;\n}\n"
    program = parse_ptx(f"{broken}.visible .entry right()\n{{\nret;\n}}\n")
    assert program.find_kernel("right") is program.find_kernel("right")
    assert list(program.kernels) == ["broken", "right"]
    with pytest.raises(KernelError, match="Cannot parse"):
        program.find_kernel("broken")
