"""Options of nvcc and NVRTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu.files.sources import RELAXED_CONSTEXPR

_OPTIONS_WITH_VALUE = {
    *("-I", "-D", "-U", "-include", "-isystem", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode"),
    *("-o", "-x", "-L", "-l", "-m", "-t", "-std", "-ccbin", "-maxrregcount", "-Xcompiler", "--compiler-options"),
    *("-Xptxas", "--ptxas-options", "-Xlinker", "-Xcudafe", "--options-file", "-e", "--entries"),
}


def parse_options(arguments: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return a command's files, and its options with values.

    Long names of -I, -D and -o become short, and --expt-relaxed-constexpr the macro that it defines.
    """
    files: list[str] = []
    options: list[tuple[str, str]] = []
    words: Iterator[str] = iter(arguments)
    for word in words:
        if not word.startswith("-"):
            files.append(word)
        elif word.lstrip("-") == "expt-relaxed-constexpr":
            options.append(("-D", RELAXED_CONSTEXPR))
        elif word in _OPTIONS_WITH_VALUE:
            options.append((word, next(words, "")))
        elif word[:2] in ("-I", "-D"):
            options.append((word[:2], word[2:].lstrip("=") if word[:2] == "-I" else word[2:]))
        elif word.startswith("--"):
            name, _, value = word.partition("=")
            short = {"--include-path": "-I", "--define-macro": "-D", "--output-file": "-o"}.get(name, name)
            options.append((short, value or (next(words, "") if short != name else "")))
    return files, options


def parse_define(text: str) -> tuple[str, str]:
    """Return the name and the value of a macro in a -D option."""
    name, equals, value = text.partition("=")
    return name, value if equals else "1"
