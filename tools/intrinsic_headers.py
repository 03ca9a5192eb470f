"""Write the headers that declare intrinsics to kernels and host code: `python -m tools.intrinsic_headers`."""

from __future__ import annotations

from collections.abc import Iterator

from gpu.base.paths import ROOT
from gpu.simulator.ir.forms import Missing, Operation, choose_form
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.types import Scalar

_GPU = ROOT / "gpu"
DEVICE_HEADER = _GPU / "simulator" / "shim" / "lockstep" / "intrinsics.h"
HOST_HEADER = _GPU / "hosts" / "program" / "headers" / "host_intrinsics.h"

_INTRODUCTION = """// {}
// `python -m tools.intrinsic_headers` writes this file from gpu/simulator/ir/intrinsics.py.
#pragma once
// clang-format off

"""

C_TYPES = {
    "bool": Scalar("bool"),
    "unsigned short": Scalar("uint16"),
    "int": Scalar("int32"),
    "unsigned int": Scalar("uint32"),
    "long": Scalar("int64"),
    "unsigned long": Scalar("uint64"),
    "long long": Scalar("int64"),
    "unsigned long long": Scalar("uint64"),
    "float": Scalar("float32"),
    "double": Scalar("float64"),
}


def split_signature(signature: str, type: str) -> tuple[str, list[str]]:
    """Return the types of a function's result and parameters, for a type in place of T."""
    words = [type if word == "T" else word for word in signature.replace("(", ",").rstrip(")").split(",")]
    result, *parameters = (type if word.strip() == "T" else word.strip() for word in words)
    return result, parameters


def iterate_functions(row: Operation) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the name, the result's type and the parameters' types of each of an intrinsic's overloads."""
    for type in row.types or ("",):
        if row.has_float_name and type == "float":
            yield f"{row.name}f", *split_signature(row.signature, type)
        yield row.name, *split_signature(row.signature, type)


def _declare(name: str, result: str, parameters: list[str]) -> str:
    return f"{result} {name}({', '.join(f'{type} {name}' for type, name in zip(parameters, 'xyz', strict=False))})"


def render_device_header() -> str:
    """Return the header that declares intrinsics to kernels."""
    lines = []
    for row in dict.fromkeys(INTRINSICS.values()):
        if row.header:
            continue
        if row.has_float_name and row.signature in ("T(T)", "T(T, T)"):
            lines.append(f"LOCKSTEP_MATH_{row.signature.count('T') - 1}({row.name})")
        else:
            lines += [f"LOCKSTEP_API {_declare(*function)};" for function in iterate_functions(row)]
    return _INTRODUCTION.format("Functions without bodies, which the executors know by name.") + "\n".join(lines) + "\n"


def render_host_header() -> str:
    """Return the header that defines intrinsics in host code."""
    lines = ['#include "host_bits.h"', ""]
    for row in dict.fromkeys(INTRINSICS.values()):
        for name, result, parameters in iterate_functions(row):
            form = choose_form(row.host, C_TYPES[parameters[0]])
            if not isinstance(form, Missing):
                if name.removeprefix("__") in INTRINSICS and name.startswith("__"):
                    # GNU's C library has internal functions of these names.
                    lines.append(f"#define {name} __lockstep{name[1:]}")
                lines.append(f"static inline {_declare(name, result, parameters)} {{ return {form}; }}")
    return _INTRODUCTION.format("CUDA's functions on the host.") + "\n".join(lines) + "\n"


if __name__ == "__main__":
    DEVICE_HEADER.write_text(render_device_header(), "utf-8")
    HOST_HEADER.write_text(render_host_header(), "utf-8")
