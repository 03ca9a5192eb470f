"""Calls of host functions from device code, which nvcc and clang reject: the message and the remedy."""

from __future__ import annotations

import re

from clang import cindex

from gpu.simulator.frontend.clang.precompiled_header import SHIM

STRICT_CONSTEXPR = ("-Xclang", "-fno-cuda-host-device-constexpr")
"""Clang's arguments with which constexpr functions are host functions, as for nvcc without a flag."""

_REFERENCE = re.compile(r"reference to __host__ function '(\w+)(<.*>)?' in (?:__\w+__ ?)+ function")
_NO_MATCH = re.compile(r"no matching (?:(?:member )?function for call to|constructor for initialization of) '(.+)'")
_NO_OPERATOR = re.compile(r"no viable overloaded (operator\S+) ")
_HOST_CANDIDATE = "candidate function not viable: call to __host__ function from "
_HOST_CONSTRUCTOR = "candidate constructor not viable: call to __host__ function from "

_RELAXED = "or the option --expt-relaxed-constexpr"
_REMEDIES = {
    "max": f"use max(a, b), {_RELAXED}",
    "min": f"use min(a, b), {_RELAXED}",
    "clamp": f"use min(max(value, low), high), {_RELAXED}",
    "swap": "exchange the values through a variable",
    "pair": "use cuda::std::pair",
    "make_pair": "use cuda::std::make_pair",
}
"""What to write instead of functions of the standard library."""
_METHOD_REMEDIES = {
    **dict.fromkeys(("data", "size", "begin", "end", "operator[]"), "use an array, or cuda::std::array"),
    **dict.fromkeys(
        ("max", "min", "lowest", "epsilon", "infinity"),
        f"use a macro such as FLT_MAX, cuda::std::numeric_limits, {_RELAXED}",
    ),
}


def describe_host_call(diagnostic: cindex.Diagnostic) -> str | None:
    """Return what is wrong and what to write instead if device code calls a host function; None for other errors."""
    if match := _REFERENCE.match(diagnostic.spelling):
        name, is_method = match[1], match[2] is None
        declarations = [note for note in diagnostic.children if "declared here" in note.spelling]
    elif match := _NO_MATCH.match(diagnostic.spelling) or _NO_OPERATOR.match(diagnostic.spelling):
        name, is_method = match[1], match[1].startswith("operator") or "member" in diagnostic.spelling
        declarations = [
            note for note in diagnostic.children if note.spelling.startswith((_HOST_CANDIDATE, _HOST_CONSTRUCTOR))
        ]
    else:
        return None
    if not declarations:
        return None
    if "constructor" in diagnostic.spelling:
        name = name.partition("<")[0].removeprefix("std::")
    if not str(declarations[0].location.file).startswith(str(SHIM)):
        return f"device code cannot call the host function {name}: declare it __host__ __device__"
    remedy = (_METHOD_REMEDIES if is_method else _REMEDIES).get(name)
    if remedy is None:
        return None
    name = f"{name} of a class of std" if is_method else f"std::{name}"
    return f"device code cannot call the host function {name}: {remedy}"
