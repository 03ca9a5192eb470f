"""What is fastest beside its peers over sizes: the figures, the drawing, and what patterns declare."""

from __future__ import annotations

import re
from datetime import date
from xml.etree import ElementTree

import pytest

from gpu.bench import gpu_benchmark, size_comparison
from gpu.bench.measurement import Measurement
from gpu.cli import main as cli
from gpu.declaration.benchmark import Case, SizeComparison
from gpu.patterns import all_patterns, find_pattern
from tests.gpu.cli.no_desktop import NO_WINDOW

SUMS = SizeComparison("sums", "elements", {2**10: Case("small"), 2**20: Case("large"), 2**22: Case("lost")})
ROWS = [
    Measurement("small", "Plain", True, (4.0,), 1.0, "GB/s", "verified"),
    Measurement("small", "Peak", True, (2.0,), 1.0, "GB/s", "verified"),
    Measurement("small", "Library", False, (1.0,), 1.0, "GB/s"),
    Measurement("small", "Slow", False, (8.0,), 1.0, "GB/s"),
    Measurement("large", "Peak", True, (3.0,), 9.0, "GB/s", "verified"),
    # A peer that was given a quarter of the work is no faster for that.
    Measurement("large", "Library", False, (1.5,), 2.25, "GB/s"),
    Measurement("lost", "Peak", True, (), 0.0, "", "WRONG, so not timed"),
    Measurement("lost", "Library", False, (1.0,), 1.0, "GB/s"),
]


def test_the_best_of_ours_is_compared_with_the_best_peer():
    (curve,) = size_comparison.build_speedup_curves([SUMS], ROWS)
    assert [(at.size, at.ours.name, at.peer.name, at.speedup) for at in curve.points] == [
        (2**10, "Peak", "Library", 0.5),
        (2**20, "Peak", "Library", 2.0),
    ]


def test_losses_are_in_the_table_and_in_its_summary():
    curves = size_comparison.build_speedup_curves([SUMS], ROWS)
    assert "| sums | 2^10 | **Peak** | 2.0000 | 500 GB/s | Library | 1.0000 | 0.50 x |" in size_comparison.format_table(
        curves
    )
    assert size_comparison.format_summary(curves).splitlines()[2:] == [
        "| sums | 2 | 1 | 1.00 x | 0.50 x | 2^10 elements |"
    ]


def test_the_drawing_has_a_point_for_each_size_at_its_height():
    drawn = size_comparison.draw_speedup_plot(size_comparison.build_speedup_curves([SUMS], ROWS), "Beside <libraries>")
    tree = ElementTree.fromstring(drawn)
    points = [each for each in tree.iter() if each.tag.endswith("circle")]
    assert [each.get("class") for each in points] == ["behind", "ahead"]
    behind, ahead = (float(each.get("cy")) for each in points)
    dashed = next(each for each in tree.iter() if each.get("class") == "level")
    level = float(re.search(r"M[\d.]+ ([\d.]+)H", dashed.get("d"))[1])
    assert ahead < level < behind
    assert level - ahead == pytest.approx(behind - level, abs=0.2), "half as fast is as far off as twice"


def test_shapes_have_no_order_and_stand_side_by_side():
    cases = {shape: Case(f"sum, {shape}") for shape in ("4 x 2", "1 x 9", "3 x 3")}
    rows = [
        Measurement(case.work, who, is_variant=ours, times_ms=(ms,), amount=1, unit="GB/s")
        for place, case in enumerate(cases.values())
        for who, ours, ms in (("Peak", True, 1.0), ("Library", False, 1.0 + place))
    ]
    curves = size_comparison.build_speedup_curves([SizeComparison("sums", "(m x n)", cases)], rows)
    assert "| sums | 1 x 9 | **Peak** |" in size_comparison.format_table(curves)
    assert "| 1.00 x | 4 x 2 (m x n) |" in size_comparison.format_summary(curves)
    drawn = ElementTree.fromstring(size_comparison.draw_speedup_plot(curves, "Shapes"))
    points = [float(each.get("cx")) for each in drawn.iter("{http://www.w3.org/2000/svg}circle")]
    assert points[1] - points[0] == pytest.approx(points[2] - points[1], abs=0.2)
    assert "3 shapes" in "".join(drawn.itertext())


@pytest.mark.parametrize("name", all_patterns())
def test_what_is_declared_can_be_run(name):
    pattern = all_patterns()[name]
    works = [case.work for each in pattern.benchmark.size_comparisons for case in each.cases.values()]
    assert len(works) == len(set(works))
    for each in pattern.benchmark.size_comparisons:
        sizes = list(each.cases)
        assert all(isinstance(size, str) for size in sizes) or sizes == sorted(sizes)
        for case in each.cases.values():
            pattern.check(case.params)
            assert case.variants
            for variant in case.variants:
                pattern.variant(variant)
            assert case.libraries or case.programs


def test_the_command_writes_the_page_and_its_drawing(tmp_path, monkeypatch, capsys):
    work = all_patterns()["scan"].benchmark.size_comparisons[0].cases[2**10].work
    rows = [Measurement(work, who, who == "Ours", (1.0,), 2.0, "GB/s", "") for who in ("Ours", "CUB")]
    monkeypatch.setattr(gpu_benchmark, "measure_cases", lambda of, seed, repetitions: iter(rows))
    monkeypatch.setattr(gpu_benchmark, "device_name", lambda: "Pretended GPU")
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    assert cli.main(["bench", "gpu", "--beside", "--document", str(page)], NO_WINDOW) == 0
    assert "## Over sizes: Pretended GPU" in page.read_text()
    assert "1.00 x" in page.read_text()
    ElementTree.parse(tmp_path / "docs" / "images" / "beside-peers.svg")
    assert work in capsys.readouterr().out


def test_one_kind_of_work_is_a_section_of_its_own(monkeypatch, tmp_path, capsys):
    """The section of all works, and the plot, are unchanged."""
    comparison = find_pattern("matmul").benchmark.size_comparisons[-1]
    assert "halves" in comparison.work
    rows = [
        Measurement(next(iter(comparison.cases.values())).work, who, who == "Ours", (1.0,), 2.0, "GB/s", "")
        for who in ("Ours", "cuBLAS")
    ]
    measured = []
    monkeypatch.setattr(
        gpu_benchmark, "measure_cases", lambda selection, seed, repetitions: measured.append(selection) or iter(rows)
    )
    monkeypatch.setattr(gpu_benchmark, "device_name", lambda: "Pretended GPU")
    page = tmp_path / "benchmarks.md"
    assert cli.main(["bench", "gpu", "--beside", "halves", "--document", str(page)], NO_WINDOW) == 0
    assert [line for line in page.read_text().splitlines() if line.startswith("## Over")] == [
        f"## Over sizes, halves: Pretended GPU, {date.today().isoformat()}"
    ]
    assert comparison.work in page.read_text()
    assert not (tmp_path / "images").exists()
    (selection,) = measured
    works = {each.work for pattern in all_patterns().values() for each in selection.size_comparisons(pattern)}
    assert works
    assert all("halves" in work for work in works)
    cases = [case for pattern in all_patterns().values() for case in selection.cases(pattern)]
    assert cases
    assert all("float16" in case.work for case in cases)
    assert cli.main(["bench", "gpu", "--beside", "nothing", "--document", str(page)], NO_WINDOW) == 2
    assert "No kind of work over sizes has a name with 'nothing'." in capsys.readouterr().err


def test_it_goes_with_the_gpu_alone(capsys):
    assert cli.main(["bench", "simulator", "--beside"], NO_WINDOW) == 2
    assert "--beside requires `bench gpu`" in capsys.readouterr().err
