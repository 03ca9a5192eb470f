"""The recording within a page that plays it: put there, and found again."""

from __future__ import annotations

import base64
import binascii

_BEGIN = b'<script id="recording" type="application/octet-stream">'
_END = b"</script>"
_IS_A_PAGE = b"<!DOCTYPE html>"


def embedded(recording: bytes) -> str:
    """Return a recording's file as a page holds it."""
    return base64.b64encode(recording).decode("ascii")


def within(data: bytes) -> bytes:
    """Return the recording of a file's bytes: of a page that plays one, what it holds; of others the bytes themselves.

    A page without a sound one is returned as it is: whoever reads it says that it is no recording.
    """
    if not data.startswith(_IS_A_PAGE):
        return data
    start = data.rfind(_BEGIN)
    end = data.find(_END, start)
    if start < 0 or end < 0:
        return data
    try:
        return base64.b64decode(data[start + len(_BEGIN) : end], validate=True)
    except binascii.Error:
        return data
