"""The modules of a program's files, and those with the device code of all files."""

import numpy as np

from gpu.hosts.program.program_units import LoadedUnits, ProgramUnit


def test_after_a_reset_linked_code_has_the_new_variables(tmp_path):
    texts = {
        "main.cu": "extern __device__ int step;\n__device__ int next() { return step; }\n",
        "other.cu": "__device__ int step = 1;\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    units = LoadedUnits([ProgramUnit(tmp_path / name, {}, ()) for name in texts])
    for value in (7, 8):
        step = units.load(1).module.variable("step").data.view(np.int32)
        assert step[0] == 1
        linked = units.link(0)
        step[0] = value
        assert linked.module.variable("step").data.view(np.int32)[0] == value
        units.clear()
