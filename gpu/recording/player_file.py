"""Embed a recording in an HTML page that plays it, and extract it again."""

from __future__ import annotations

import base64
import binascii

_BEGIN = b'<script id="recording" type="application/octet-stream">'
_END = b"</script>"
_PAGE_PREFIX = b"<!DOCTYPE html>"


def encode_recording(recording: bytes) -> str:
    """Encode a recording's file for embedding in a page."""
    return base64.b64encode(recording).decode("ascii")


def extract_recording(data: bytes) -> bytes:
    """Extract the recording from a page's bytes; return any other bytes unchanged.

    A page without a valid recording is returned unchanged, so the reader reports that it is not a recording.
    """
    if not data.startswith(_PAGE_PREFIX):
        return data
    start = data.rfind(_BEGIN)
    end = data.find(_END, start)
    if start < 0 or end < 0:
        return data
    try:
        return base64.b64decode(data[start + len(_BEGIN) : end], validate=True)
    except binascii.Error:
        return data
