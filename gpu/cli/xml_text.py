"""Text of reports in XML."""

from __future__ import annotations


def replace_illegal(text: str) -> str:
    """Replace characters that are not allowed in XML by question marks."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
