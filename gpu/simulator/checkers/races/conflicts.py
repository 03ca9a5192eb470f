"""Which accesses conflict: at least one writes, and they are not both strong with scopes that include each other.

Strong accesses of different sizes conflict too, as PTX's memory model asks for a complete overlap. Volatile accesses
are strong, so two of them are no data race in this model. Still, one that writes data and one that reads it need an
order. A volatile read counts as one of a flag if its value decides a branch.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.races.release_sequences import DEVICE_LEVEL, SCOPE_LEVELS
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.ir.value_uses import ValueUse

Array = npt.NDArray[Any]


class Strength(IntEnum):
    """The strength of an access."""

    WEAK = 0
    VOLATILE = 1
    ORDERED = 2
    """With a memory order that the source names, such as `ld.relaxed`."""
    ATOMIC = 3


def find_strength(site: AccessSite) -> Strength:
    """Return the strength of the accesses of a site."""
    if site.action == "atomic":
        return Strength.ATOMIC
    if site.order in ("weak", "volatile"):
        return Strength.VOLATILE if site.is_strong else Strength.WEAK
    return Strength.ORDERED


_COLUMNS = np.dtype(
    [("strength", np.int8), ("reads", bool), ("use", np.int8), ("level", np.int8), ("bulk", bool), ("size", np.int32)]
)


class SiteTable:
    """The sites of a launch, by number, and their properties.

    Attributes
    ----------
    sites : list of AccessSite
        The sites.
    properties : array
        For each site its "strength", whether it "reads", the "use" of its value, the "level" of its scope, whether it
        is a write of a "bulk" copy, and its "size" in bytes, 0 for vectors.
    has_narrow_scopes, has_bulk_writes, has_waits : bool
        Whether any site has such a property.
    """

    def __init__(self) -> None:
        self.sites: list[AccessSite] = []
        self.properties = np.zeros(64, _COLUMNS)
        self.has_narrow_scopes = self.has_bulk_writes = self.has_waits = False
        self._numbers: dict[int, int] = {}

    def find_number(self, site: AccessSite, size: int) -> int:
        """Return the number of a site, whose accesses have a size in bytes; it is added if it is new."""
        number = self._numbers.get(id(site))
        if number is None:
            number = self._numbers[id(site)] = len(self.sites)
            self.sites.append(site)
            if number == self.properties.size:
                self.properties = np.resize(self.properties, 2 * number)
            self.properties[number] = (
                find_strength(site),
                site.action == "read",
                site.use,
                SCOPE_LEVELS[site.scope],
                site.bulk and site.action == "write",
                0 if site.vector else size,
            )
            self.has_bulk_writes |= site.bulk and site.action == "write"
            self.has_narrow_scopes |= is_narrow(site)
            self.has_waits |= site.is_strong and site.action == "read" and site.use >= ValueUse.WAIT
        return number

    def are_strong(self, numbers: Array) -> Array:
        """Return whether the accesses of sites are strong."""
        strong: Array = self.properties["strength"][numbers] > Strength.WEAK
        return strong

    def differ_in_size(self, number: Any, others: Any) -> Any:
        """Return whether the accesses of sites, by number, have different sizes; a vector counts as its elements."""
        sizes = self.properties["size"]
        own, theirs = sizes[number], sizes[others]
        return (theirs != own) & (theirs > 0) & (own > 0)

    def find_conflicts(self, number: int, numbers: Array, levels: Array | None, flag_use: ValueUse) -> Array:
        """Return whether accesses of a site conflict with those of other sites, at least one of which writes.

        Parameters
        ----------
        number : int
            The number of the site.
        numbers : array of int
            The numbers of the other sites.
        levels : array of int or None
            The levels of the narrowest scopes that contain both threads; None if all scopes are wide.
        flag_use : ValueUse
            The use from which on the value of a volatile read is a flag.
        """
        site = self.sites[number]
        strength = find_strength(site)
        if strength == Strength.WEAK:
            return np.ones(numbers.size, bool)
        properties = self.properties[numbers]
        others, reads, uses = (properties[name] for name in ("strength", "reads", "use"))
        if strength == Strength.VOLATILE and site.action == "read":
            allowed = (others > Strength.VOLATILE) | (site.use >= flag_use)
        elif strength == Strength.VOLATILE:
            allowed = (reads & (uses >= flag_use)) | (others == Strength.ORDERED)
            allowed |= (others == Strength.ATOMIC) & (uses > ValueUse.DATA)
            if site.use == ValueUse.FLAG:  # two writes of a flag, such as whose turn it is
                allowed |= (others == Strength.VOLATILE) & (uses == ValueUse.FLAG)
        elif strength == Strength.ATOMIC:
            allowed = reads | (others > Strength.VOLATILE) | (site.use > ValueUse.DATA)
        else:
            allowed = np.ones(numbers.size, bool)
        allowed &= (others > Strength.WEAK) & ~self.differ_in_size(number, numbers)
        if levels is not None:
            allowed &= levels <= np.minimum(properties["level"], SCOPE_LEVELS[site.scope])
        conflicts: Array = ~allowed
        return conflicts


def is_narrow(site: AccessSite) -> bool:
    """Return whether a strong access does not include all threads of the device in its scope."""
    return site.is_strong and SCOPE_LEVELS[site.scope] < DEVICE_LEVEL
