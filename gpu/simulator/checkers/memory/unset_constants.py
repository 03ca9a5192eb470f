"""Checker that warns of reads of `__constant__` variables without an initializer or a value from the host."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access


class UnsetConstantChecker(Checker):
    """Warn of reads of constants that have no initializer and no value from the host; they are 0.

    Parameters
    ----------
    unset : mapping of str to SourcePosition
        The declaration of each such constant, by name.
    """

    def __init__(self, unset: Mapping[str, SourcePosition]) -> None:
        self._unset = unset
        self._read_constants: dict[str, None] = {}

    @property
    def findings(self) -> list[Finding]:
        """One finding for each constant, in the order of the first reads."""
        return [
            Finding("constant-never-set", f"{name} is read but never set: it is 0", (self._unset[name],))
            for name in self._read_constants
        ]

    def access(self, batch: BlockBatch, access: Access) -> None:
        if access.memory.space == "constant" and access.memory.name in self._unset:
            self._read_constants[access.memory.name] = None
