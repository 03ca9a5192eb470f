"""Features of compute capabilities, and the target architecture of a kernel's text."""

from __future__ import annotations

import re

_WARPGROUP_CAPABILITY = "9.0"
_ARCHITECTURE_SPECIFIC = re.compile(r"\b(?:wgmma|setmaxnreg)\.")
"""Instructions that exist on one architecture only, and on none after it."""


def target_architecture(capability: tuple[int, int], text: str) -> str:
    """Return nvcc's name of the target architecture, such as "sm_90".

    Parameters
    ----------
    capability : tuple of int
        The GPU's compute capability.
    text : str
        The kernel file, with its own headers inlined.
    """
    return "sm_{}{}".format(*capability) + ("a" if _ARCHITECTURE_SPECIFIC.search(text) else "")


def explain_missing_warpgroups(capability: str) -> str:
    """Return a sentence why a compute capability has no warpgroup instructions; "" if it has."""
    if capability == _WARPGROUP_CAPABILITY:
        return ""
    return f"Warpgroup instructions need compute capability {_WARPGROUP_CAPABILITY}; this GPU has {capability}."
