"""The names of kernels, out of what the host's compiler calls a function: "void reduce(T*) [with T = float]"."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"(?:\{anonymous\}|\(anonymous namespace\)|<unnamed>)::")
_TYPEDEF = re.compile(r"\s*(?:u?int(?:_fast|_least)?\d+_t|u?intptr_t|s?size_t|ptrdiff_t) = ")
"""g++ says behind the arguments what names in the signature stand for."""
_TEMPLATE = re.compile(r" \[(?:with )?(?P<arguments>.*)\]$", re.DOTALL)


_CLOSURE = re.compile(r"lockstep_host::Closure<(?P<line>\d+), (?P<number>\d+), ")


def kernel_name(pretty: str, template_parameters: int) -> str:
    """Return a kernel's name as the simulator takes it: "reduce<float, 256>".

    Parameters
    ----------
    pretty : str
        What g++ or clang++ put in place of `__PRETTY_FUNCTION__`.
    template_parameters : int
        How many the kernel has; negative where that is not known.
    """
    plain = _ANONYMOUS.sub("", _with_places(pretty))
    found = _TEMPLATE.search(plain)
    head = plain[: found.start()] if found is not None else plain
    name = _name_in(head)
    if found is None or not template_parameters:
        return name
    name = name.partition("<")[0]
    arguments = _arguments(found["arguments"])
    if template_parameters > 0:
        arguments = arguments[:template_parameters]
    return f"{name}<{', '.join(each for each in arguments if each)}>"


def _with_places(pretty: str) -> str:
    """Return a declaration in which a lambda's type is its place: "(lambda at 7:0 of scale<float>)".

    That is of line 7 the first one; behind `of` is the function that it stands in.
    """
    while (found := _CLOSURE.search(pretty)) is not None:
        depth, end = 1, found.end()
        while depth and end < len(pretty):
            depth += (pretty[end] in "<([") - (pretty[end] in ">)]" and pretty[end - 1 : end + 1] != "->")
            end += 1
        owner = pretty[found.end() : end].partition("(")[0].strip()
        pretty = f"{pretty[: found.start()]}(lambda at {found['line']}:{found['number']} of {owner}){pretty[end:]}"
    return pretty


def _name_in(head: str) -> str:
    """Return the name in a function's declaration: what is before its parameters."""
    depth = 0
    for place in range(len(head) - 1, -1, -1):
        depth += (head[place] == ")") - (head[place] == "(")
        if head[place] == "(" and not depth:
            before = head[:place].rstrip()
            return _last_word(before)
    return _last_word(head)


def _last_word(text: str) -> str:
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ">") - (text[place] == "<")
        if text[place] == " " and not depth:
            return text[place + 1 :]
    return text


def _arguments(text: str) -> list[str]:
    """Return the template's arguments, in order; g++ separates them by semicolons, clang++ by commas."""
    parts, depth, first = [], 0, 0
    separator = ";" if "; " in text and _at_depth_zero(text, ";") else ","
    for place, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")]}" or (letter == ">" and text[place - 1] != "-"))
        if letter == separator and depth == 0:
            parts.append(text[first:place])
            first = place + 1
    parts.append(text[first:])
    return [_value(part) for part in parts if not _TYPEDEF.match(part)]


def _at_depth_zero(text: str, wanted: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == wanted and depth == 0:
            return True
    return False


def _value(part: str) -> str:
    value = part.partition(" = ")[2].strip()
    if value.startswith("{") and value.endswith("}"):  # a pack
        return value[1:-1]
    return value.removeprefix("& ") if re.match(r"& \w", value) else value
