"""Findings with their place in the user's files, and the baseline of known ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.cli.check.units import CheckUnit
from gpu.files.file_access import format_path, read_bytes, replace_file

_MAX_BASELINE_BYTES = 64 << 20
_BASELINE_VERSION = 1
_LINKAGE = 'extern "C" {\n'


@dataclass(frozen=True)
class FindingPlace:
    """A line of a finding.

    Parameters
    ----------
    file : str
        Path with forward slashes, relative to the working directory where it lies below it.
    line : int
        From 1.
    thread : str
        "thread (3,0,0) in block (0,0,0)"; "" if unknown.
    """

    file: str
    line: int
    thread: str


@dataclass(frozen=True)
class CheckedFinding:
    """A finding of a unit; equal ones of several launches are merged.

    Parameters
    ----------
    kind, message : str
        As `gpu.base.findings.Finding` has them.
    places : tuple of FindingPlace
        At least one.
    fingerprint : str
        Equal for the same error in the same code, whatever its line number.
    is_known : bool
        Whether the baseline contains it.
    """

    kind: str
    message: str
    kernel: str
    places: tuple[FindingPlace, ...]
    count: int
    fingerprint: str
    is_known: bool = False


class SourceLocator:
    """Search of the file and line that a reported position belongs to.

    Parameters
    ----------
    file : Path
        The unit's file.
    """

    def __init__(self, file: Path, include_folders: Sequence[Path]) -> None:
        self._file = file
        self._folders = [file.parent, *include_folders]
        self._texts: dict[Path, str] = {}

    def locate(self, name: str, line: int, kernel_text: str | None) -> tuple[Path, int] | None:
        """Return a position's file and line; None if it is in no file, as in generated code.

        Parameters
        ----------
        name : str
            The file as the finding names it.
        kernel_text : str or None
            For a script, the text that it compiled: its lines are found in the script.
        """
        if kernel_text is not None:
            lines_before = 0
            if kernel_text.startswith(_LINKAGE):  # SourceModule puts the text between these lines
                kernel_text, lines_before = kernel_text.removeprefix(_LINKAGE).removesuffix("\n}\n"), 1
            script = self._read(self._file)
            first = script.find(kernel_text) if kernel_text.strip() else -1
            return None if first < 0 else (self._file, script.count("\n", 0, first) + line - lines_before)
        if Path(name).name == self._file.name:
            return self._file, line
        for folder in self._folders:
            if (folder / name).is_file():
                return folder / name, line
        return None

    def source_line(self, file: Path, line: int) -> str:
        """Return the text of a line without surrounding blanks; "" if there is none."""
        lines = self._read(file).splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _read(self, file: Path) -> str:
        if file not in self._texts:
            self._texts[file] = file.read_bytes().decode(errors="replace").replace("\r\n", "\n")
        return self._texts[file]


def build_findings(report: Mapping[str, Any], unit: CheckUnit, locator: SourceLocator) -> tuple[CheckedFinding, ...]:
    """Return the distinct findings of a report of `simulate`, `program`, `pycuda` or `cupy`.

    Parameters
    ----------
    report : mapping
        The JSON data that these commands write.
    """
    merged: dict[str, CheckedFinding] = {}
    if "launches" in report:
        is_script = unit.command[0] in ("pycuda", "cupy")
        launches = [
            (launch, report["sources"][launch["source"]] if is_script else None) for launch in report["launches"]
        ]
    else:
        launches = [({"kernel": unit.command[2], "place": "", "findings": report["findings"]}, None)]
    for launch, kernel_text in launches:
        for data in launch["findings"]:
            finding = _build_finding(data, launch, kernel_text, unit, locator)
            known = merged.get(finding.fingerprint)
            merged[finding.fingerprint] = (
                replace(known, count=known.count + finding.count) if known is not None else finding
            )
    return tuple(merged.values())


def _build_finding(
    data: Mapping[str, Any], launch: Mapping[str, Any], kernel_text: str | None, unit: CheckUnit, locator: SourceLocator
) -> CheckedFinding:
    places, texts, message = [], [], data["message"]
    threads = [*data["threads"], *[""] * len(data["lines"])]
    for name, line, thread in zip(data["files"], data["lines"], threads, strict=False):
        found = locator.locate(name, line, kernel_text)
        if found is None:
            message = f"{message} ({name}:{line})"
            continue
        places.append(FindingPlace(format_source(found[0]), found[1], thread))
        texts.append(locator.source_line(*found))
    if not places:
        places.append(FindingPlace(format_source(unit.file), _read_line_number(launch["place"]), ""))
    identity = json.dumps([places[0].file, launch["kernel"], data["kind"], [place.file for place in places], texts])
    fingerprint = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return CheckedFinding(data["kind"], message, launch["kernel"], tuple(places), data["count"], fingerprint)


def _read_line_number(place: str) -> int:
    """Return the line of "script.py:12"; 1 if there is none."""
    number = place.rpartition(":")[2]
    return int(number) if number.isascii() and number.isdigit() else 1


def format_source(file: Path) -> str:
    """Return a path with forward slashes, relative to the working directory where it lies below it."""
    full = file.absolute()
    try:
        return full.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return full.as_posix()


def read_baseline(path: str) -> frozenset[str]:
    """Return the fingerprints of a baseline file; raise InputError if it is none."""
    try:
        data = json.loads(read_bytes(path, _MAX_BASELINE_BYTES))
        version = data["version"]
        fingerprints = frozenset(str(entry["fingerprint"]) for entry in data["findings"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(f"{format_path(path)} is no baseline: write one with --write-baseline.") from None
    if version != _BASELINE_VERSION:
        raise InputError(
            f"{format_path(path)} is a baseline of version {version}, but this Lockstep reads version "
            f"{_BASELINE_VERSION}.",
            advice="Write it again with --write-baseline.",
        )
    return fingerprints


def write_baseline(path: str, findings: Iterable[CheckedFinding]) -> None:
    """Write the findings as a baseline; their lines and kinds are for the reader, only fingerprints are compared."""
    entries = [
        {
            "fingerprint": finding.fingerprint,
            "place": f"{finding.places[0].file}:{finding.places[0].line}",
            "kernel": finding.kernel,
            "kind": finding.kind,
        }
        for finding in findings
    ]
    with replace_file(path) as file:
        file.write((json.dumps({"version": _BASELINE_VERSION, "findings": entries}, indent=2) + "\n").encode())
