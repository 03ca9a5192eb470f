"""Checks of an edited kernel file for the command `run`: findings and verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gpu.base.findings import Finding
from gpu.base.paths import KERNELS
from gpu.cli.findings import findings_data, format_finding
from gpu.declaration.pattern import Variant
from gpu.engines.base import kernel_text
from gpu.files.sources import SourceLines, read_source
from gpu.messages.verdicts import Check, Verdict, decide_verdict
from gpu.run.workload import Workload


@dataclass(frozen=True)
class KernelCheck:
    """Kernel source of a run and the checkers' findings in it.

    Parameters
    ----------
    sources : mapping of str to str
        Edited text by kernel file name; empty if the text is the project's.
    check : Check or None
        Set for an edited text.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    check: Check | None = None

    @property
    def aborted(self) -> bool:
        """Whether an error aborts the kernel, so that there is no result."""
        return self.check is not None and self.check.ended

    def verdict(self, matches_reference: bool | None, variant: Variant) -> Verdict:
        """Return the verdict on a result."""
        return decide_verdict(
            matches_reference, edited=bool(self.sources), check=self.check, lesson=variant.deliberate_error
        )

    def data(self, verdict: Verdict) -> dict[str, Any]:
        """Return findings and verdict as JSON data; for an edited text also "verified"."""
        data = {"findings": findings_data(self.findings), "verdict": asdict(verdict)}
        return {**data, "verified": verdict.kind == "verified"} if self.sources else data

    def format_findings(self) -> str:
        """Return the findings with their source lines and the fix, if one is known; "" without findings."""
        if self.check is None or not self.findings:
            return ""
        ((file, edited_text),) = self.sources.items()
        lines = SourceLines(KERNELS / file, edited=edited_text)
        sections = [format_finding(number, finding, lines) for number, finding in enumerate(self.findings, 1)]
        if self.check.remedy is not None:
            sections.append(f"{self.check.remedy.words}: with this change there are no findings.")
        return "\n\n".join(sections)


def check_kernel(workload: Workload, path: str | None) -> KernelCheck:
    """Read a kernel file and, if it differs from the pattern's, check it on a small part of the input.

    Parameters
    ----------
    workload : Workload
        The workload of the run, with the project's kernels.
    path : str or None
        The kernel file; None for the project's, which is not checked.

    Raises
    ------
    InputError
        The file cannot be read, or the variant has no kernel file.
    KernelError
        The text does not compile.
    """
    from gpu.run.kernel_check import check_variant

    if path is None:
        return KernelCheck()
    file = workload.pattern.kernel_file_of(workload.variant.name)
    text = read_source(Path(path))
    if text == kernel_text(file, {}):
        return KernelCheck()
    sources = {file: text}
    findings, check = check_variant(replace(workload, sources=sources), lambda progress: None)
    return KernelCheck(sources, tuple(findings), check)
