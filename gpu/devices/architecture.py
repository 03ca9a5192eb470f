"""What GPUs of a compute capability have, and what a kernel's text is compiled for."""

from __future__ import annotations

import re

_WITH_WARPGROUPS = "9.0"
_OF_ITS_OWN = re.compile(r"\b(?:wgmma|setmaxnreg)\.")
"""Instructions that only the architecture has which they came with, and none after it."""


def architecture(capability: tuple[int, int], text: str) -> str:
    """Return the name by which nvcc knows what to compile for, such as "sm_90".

    Parameters
    ----------
    capability : tuple of int
        The GPU's compute capability.
    text : str
        The kernel file, with its own headers written out.
    """
    return "sm_{}{}".format(*capability) + ("a" if _OF_ITS_OWN.search(text) else "")


def why_no_warpgroups(capability: str) -> str:
    """Return why four warps cannot multiply tiles together, as a sentence; "" where they can."""
    if capability == _WITH_WARPGROUPS:
        return ""
    return (
        f"Four warps multiply tiles together on compute capability {_WITH_WARPGROUPS} alone; this GPU has {capability}."
    )
