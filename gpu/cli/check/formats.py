"""Reports of `check`: text, JSON, JUnit XML and SARIF."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from gpu import __version__
from gpu.cli.check.findings import CheckedFinding, FindingPlace, format_source
from gpu.cli.check.runner import UnitResult
from gpu.cli.check.units import SkippedFile
from gpu.cli.xml_text import replace_illegal

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "race": "Data race",
    "out-of-bounds": "Access out of bounds",
    "null-pointer": "Access through a null pointer",
    "invalid-pointer": "Access outside device memory",
    "misaligned": "Misaligned access",
    "uninitialized": "Read of uninitialized memory",
    "barrier": "Divergent or mismatched barrier",
    "use-after-free": "Use of freed memory",
    "double-free": "Memory freed twice",
    "invalid-free": "Invalid free",
    "warp-mask": "Wrong mask of a warp function",
    "use-after-scope": "Use of a variable after its scope",
    "stack-overflow": "Stack overflow",
    "endless": "Endless loop",
    "unfinished": "Limit of time or iterations exceeded",
    "assertion": "Failed assertion",
    "undefined-operation": "Undefined result of an operation",
    "never-written": "Array never written",
    "constant-never-set": "Constant never set",
}
_DEFAULT_RULE = "Kernel error"
_FAILURE_RULE = ("program-failed", "Program failed")


@dataclass(frozen=True)
class CheckReport:
    """Everything that `check` found.

    Parameters
    ----------
    has_baseline : bool
        Whether findings were compared with a baseline.
    """

    results: Sequence[UnitResult]
    skipped: Sequence[SkippedFile]
    has_baseline: bool

    @property
    def findings(self) -> list[CheckedFinding]:
        """All findings, known ones too."""
        return [finding for result in self.results for finding in result.findings]

    @property
    def new_findings(self) -> list[CheckedFinding]:
        """The findings that the baseline does not contain."""
        return [finding for finding in self.findings if not finding.is_known]

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Name and reason of everything that was not checked, or not to its end."""
        return [
            *((result.unit.name, result.refusal) for result in self.results if result.refusal),
            *((file.name, file.reason) for file in self.skipped),
        ]


def format_result(result: UnitResult) -> str:
    """Return a unit's new findings and failure as text, a line each, "" if there are none."""
    return "\n".join(
        [
            *(_format_finding(finding) for finding in result.findings if not finding.is_known),
            *([f"{format_source(result.unit.file)}:1: program-failed: {result.failure}"] if result.failure else []),
        ]
    )


def _format_finding(finding: CheckedFinding) -> str:
    first, *others = finding.places
    lines = [f"{first.file}:{first.line}: {finding.kind}: {finding.message} [{finding.kernel}]"]
    lines += [f"    {place.file}:{place.line}: {place.thread}" for place in others if place != first]
    return "\n".join(lines)


def format_summary(report: CheckReport, seconds: float) -> str:
    """Return what was not checked and why, and the totals."""
    lines = ["Not checked:", *(f"  {name}: {reason}" for name, reason in report.refused)] if report.refused else []
    checked = sum(not result.refusal for result in report.results)
    new, known = len(report.new_findings), len(report.findings) - len(report.new_findings)
    failed = sum(bool(result.failure) for result in report.results)
    parts = [f"{checked} checked", f"{new} finding{'' if new == 1 else 's'}"]
    parts += [f"{known} known from the baseline"] if known else []
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{len(report.refused)} not checked"] if report.refused else []
    return "\n".join([*lines, f"{', '.join(parts)}; {seconds:.1f} s"])


def format_json(report: CheckReport) -> str:
    """Return the report as JSON."""
    units = [
        {
            "name": result.unit.name,
            "command": ["lockstep", *result.unit.command],
            "seconds": round(result.seconds, 3),
            "launches": result.launches,
            "findings": [asdict(finding) for finding in result.findings],
            "failure": result.failure,
            "not_checked": result.refusal,
        }
        for result in report.results
    ]
    skipped = [{"name": file.name, "reason": file.reason} for file in report.skipped]
    return json.dumps({"version": __version__, "units": units, "skipped": skipped}, indent=2) + "\n"


def format_junit(report: CheckReport) -> bytes:
    """Return the report as JUnit XML: a test case per unit; known findings do not fail it."""
    suite = ElementTree.Element("testsuite", name="lockstep check")
    failures = 0
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=replace_illegal(format_source(result.unit.file)),
            name=replace_illegal(result.unit.name),
            time=f"{result.seconds:.3f}",
        )
        if text := format_result(result):
            failures += 1
            new = sum(not finding.is_known for finding in result.findings)
            message = result.failure or f"{new} finding{'' if new == 1 else 's'}"
            ElementTree.SubElement(case, "failure", message=replace_illegal(message)).text = replace_illegal(text)
        elif result.refusal:
            ElementTree.SubElement(case, "skipped", message=replace_illegal(result.refusal))
        if result.output and (result.failure or result.refusal):
            ElementTree.SubElement(case, "system-out").text = replace_illegal(result.output)
    for file in report.skipped:
        case = ElementTree.SubElement(
            suite, "testcase", classname=replace_illegal(file.name), name=replace_illegal(file.name)
        )
        ElementTree.SubElement(case, "skipped", message=replace_illegal(file.reason))
    suite.set("tests", str(len(report.results) + len(report.skipped)))
    suite.set("failures", str(failures))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ElementTree.indent(suite)
    tree: str = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tree}\n'.encode()


def format_sarif(report: CheckReport) -> str:
    """Return the report as SARIF 2.1.0, which GitHub shows as annotations of the lines."""
    used = sorted({finding.kind for finding in report.findings})
    rules = [(kind, _RULES.get(kind, _DEFAULT_RULE)) for kind in used]
    if any(result.failure for result in report.results):
        rules.append(_FAILURE_RULE)
    run = {
        "tool": {
            "driver": {
                "name": "Lockstep",
                "version": __version__,
                "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": Path.cwd().as_uri() + "/"}},
        "invocations": [
            {
                "executionSuccessful": not report.refused,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": f"Not checked: {name}: {reason}"}}
                    for name, reason in report.refused
                ],
            }
        ],
        "results": list(_build_sarif_results(report)),
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _build_sarif_results(report: CheckReport) -> Iterator[dict[str, Any]]:
    for result in report.results:
        for finding in result.findings:
            first, *others = finding.places
            yield {
                "ruleId": finding.kind,
                "level": "error",
                "message": {"text": f"{finding.message} [{finding.kernel}]"},
                "locations": [_build_location(first)],
                "relatedLocations": [
                    {"id": number, **_build_location(place), "message": {"text": place.thread or "related line"}}
                    for number, place in enumerate(others, 1)
                ],
                "partialFingerprints": {"lockstep/v1": finding.fingerprint},
                **_baseline_state(report, is_known=finding.is_known),
            }
        if result.failure:
            yield {
                **_baseline_state(report, is_known=False),
                "ruleId": _FAILURE_RULE[0],
                "level": "error",
                "message": {"text": result.failure},
                "locations": [_build_location(FindingPlace(format_source(result.unit.file), 1, ""))],
            }


def _baseline_state(report: CheckReport, *, is_known: bool) -> dict[str, str]:
    return {"baselineState": "unchanged" if is_known else "new"} if report.has_baseline else {}


def _build_location(place: FindingPlace) -> dict[str, Any]:
    path = Path(place.file)
    artifact = {"uri": path.as_uri()} if path.is_absolute() else {"uri": quote(place.file), "uriBaseId": "SRCROOT"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": place.line}}}
