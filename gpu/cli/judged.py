"""A pattern whose kernel file has another text: what the checkers find in it, and what is to be said of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpu.cli.findings import finding_text, findings_data
from gpu.declaration.pattern import Inputs, Params, Pattern, Variant
from gpu.engines.base import KERNELS, kernel_text
from gpu.files.sources import Sources, read_source
from gpu.messages.verdicts import Check, Verdict, verdict_of
from gpu.simulator.checkers.findings import Finding


@dataclass(frozen=True)
class Judged:
    """A kernel's text before its result is known.

    Parameters
    ----------
    sources : mapping of str to str
        The text by the name of the pattern's kernel file; empty where it is the project's own.
    findings : tuple of Finding
    check : Check or None
        Of an edited text.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    check: Check | None = None

    @property
    def ended(self) -> bool:
        """Whether a mistake ends the run, so that there is no result."""
        return self.check is not None and self.check.ended

    def verdict(self, right: bool | None, variant: Variant) -> Verdict:
        """Return what is to be said of a result."""
        return verdict_of(right, edited=bool(self.sources), check=self.check, lesson=variant.cautionary)

    def data(self, verdict: Verdict) -> dict[str, Any]:
        """Return findings and verdict as JSON takes them; of an edited text also whether it is "verified"."""
        found = {"findings": findings_data(self.findings), "verdict": asdict(verdict)}
        return {**found, "verified": verdict.kind == "verified"} if self.sources else found

    def text(self) -> str:
        """Return the findings with their lines, and what mends them; "" where there are none."""
        if self.check is None or not self.findings:
            return ""
        ((file, edited),) = self.sources.items()
        lines = Sources(KERNELS / file, edited=edited)
        said = [finding_text(number, each, lines) for number, each in enumerate(self.findings, 1)]
        if self.check.remedy is not None:
            said.append(f"{self.check.remedy.words}: with it nothing is found.")
        return "\n\n".join(said)


def judged(
    pattern: Pattern, variant: Variant, path: str | None, inputs: Inputs, params: Params, *, seed: int
) -> Judged:
    """Read a text for a pattern's kernel file, and have it checked on a small part of the input.

    Raises
    ------
    InputError
        Where the file cannot be read, or the variant has no kernel of its own.
    KernelError
        Where the text does not compile.
    """
    from gpu.run.check import check_variant

    if path is None:
        return Judged()
    file = pattern.file_of(variant.name)
    text = read_source(Path(path))
    if text == kernel_text(file, {}):
        return Judged()
    sources = {file: text}
    findings, check = check_variant(pattern, variant, inputs, params, lambda progress: None, sources=sources, seed=seed)
    return Judged(sources, tuple(findings), check)
