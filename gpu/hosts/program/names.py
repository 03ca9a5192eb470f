"""Conversion of compilers' function names, such as "void reduce(T*) [with T = float]", to kernel names."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"(?:\{anonymous\}|\(anonymous namespace\)|<unnamed>)::")
_TYPEDEF = re.compile(r"\s*(?:u?int(?:_fast|_least)?\d+_t|u?intptr_t|s?size_t|ptrdiff_t) = ")
"""g++ appends the meaning of typedefs in the signature to the template arguments."""
_TEMPLATE = re.compile(r" \[(?:with )?(?P<arguments>.*)\]$", re.DOTALL)


_CLOSURE = re.compile(r"lockstep_host::Closure<(?P<line>\d+), (?P<number>\d+), ")


def kernel_name(pretty_function: str, template_parameters: int) -> str:
    """Return a kernel's name in the simulator's notation: "reduce<float, 256>".

    Parameters
    ----------
    pretty_function : str
        Value of `__PRETTY_FUNCTION__` from g++ or clang++.
    template_parameters : int
        Number of the kernel's template parameters; negative if unknown.
    """
    plain = _ANONYMOUS.sub("", _locate_lambdas(pretty_function))
    match = _TEMPLATE.search(plain)
    head = plain[: match.start()] if match is not None else plain
    name = _declared_name(head)
    if match is None or not template_parameters:
        return name
    name = name.partition("<")[0]
    arguments = _split_arguments(match["arguments"])
    if template_parameters > 0:
        arguments = arguments[:template_parameters]
    return f"{name}<{', '.join(argument for argument in arguments if argument)}>"


def _locate_lambdas(pretty_function: str) -> str:
    """Replace the type of each lambda by its position: "(lambda at 7:0 of scale<float>)".

    This is the first lambda in line 7; the enclosing function follows `of`.
    """
    while (match := _CLOSURE.search(pretty_function)) is not None:
        depth, end = 1, match.end()
        while depth and end < len(pretty_function):
            depth += (pretty_function[end] in "<([") - (
                pretty_function[end] in ">)]" and pretty_function[end - 1 : end + 1] != "->"
            )
            end += 1
        owner = pretty_function[match.end() : end].partition("(")[0].strip()
        position = f"(lambda at {match['line']}:{match['number']} of {owner})"
        pretty_function = f"{pretty_function[: match.start()]}{position}{pretty_function[end:]}"
    return pretty_function


def _declared_name(head: str) -> str:
    """Return the name in a function's declaration, which precedes its parameters."""
    depth = 0
    for index in range(len(head) - 1, -1, -1):
        depth += (head[index] == ")") - (head[index] == "(")
        if head[index] == "(" and not depth:
            before = head[:index].rstrip()
            return _last_word(before)
    return _last_word(head)


def _last_word(text: str) -> str:
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == ">") - (text[index] == "<")
        if text[index] == " " and not depth:
            return text[index + 1 :]
    return text


def _split_arguments(text: str) -> list[str]:
    """Return the template arguments in order; g++ separates them by semicolons, clang++ by commas."""
    parts, depth, first = [], 0, 0
    separator = ";" if "; " in text and _occurs_at_top_level(text, ";") else ","
    for index, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")]}" or (letter == ">" and text[index - 1] != "-"))
        if letter == separator and depth == 0:
            parts.append(text[first:index])
            first = index + 1
    parts.append(text[first:])
    return [_parse_value(part) for part in parts if not _TYPEDEF.match(part)]


def _occurs_at_top_level(text: str, character: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == character and depth == 0:
            return True
    return False


def _parse_value(part: str) -> str:
    value = part.partition(" = ")[2].strip()
    if value.startswith("{") and value.endswith("}"):  # parameter pack
        return value[1:-1]
    return value.removeprefix("& ") if re.match(r"& \w", value) else value
