"""The benchmark page: its data files, the selection that it shows, and that it equals what code generates."""

from __future__ import annotations

import re

import pytest

from gpu.base.errors import InputError
from gpu.base.paths import DOCS
from gpu.bench.pages import page
from gpu.bench.pages.document import data_folder, find_sections, write_page, write_section
from gpu.bench.pages.sections import ResultSection, ResultTable, file_of, load_sections, parse_section, save_section
from gpu.cli import main as cli
from tests.gpu.cli.no_desktop import NO_WINDOW

PAGE = DOCS / "benchmarks.md"
LADDER = """\
| work | variant or peer | median ms | min to max | rate | of the best peer | |
|---|---|--:|--:|--:|--:|---|
"""


def ladder(*rows: str, name: str = "GPU") -> ResultSection:
    return parse_section(name, "some device", "2026-01-02", "Median of 2.\n\n" + LADDER + "\n".join(rows))


def test_the_page_equals_what_code_generates_from_the_data_files():
    expected = page.render(load_sections(data_folder(PAGE)))
    assert PAGE.read_text("utf-8") == expected, "Run: python main.py bench --write-page"


def test_the_page_is_short_and_the_data_files_have_all_rows():
    assert len(PAGE.read_text("utf-8").splitlines()) <= 210
    rows = [row for section in load_sections(data_folder(PAGE)) for table in section.tables for row in table.rows]
    assert len(rows) > 2500


def test_each_missed_target_of_the_data_is_on_the_page():
    text = PAGE.read_text("utf-8")
    (over,) = find_sections(PAGE, "Over sizes")
    slower = [row for row in over.tables[1].rows if float(row[7].removesuffix(" x")) < 1]
    assert len(slower) > 4
    for row in slower:
        (line,) = (line for line in text.splitlines() if line.startswith(f"| Over sizes | {row[0]} |"))
        assert f"{row[7]} at {row[1]}" in line


def test_a_section_survives_its_data_file(tmp_path):
    body = "First\nparagraph.\n\n| a | b | |\n| --- | --: | --- |\n| 1 | `x` |  |\n| é | | y |\n\n- Last | paragraph."
    section = parse_section("Model's counters: one", "device", "2026-01-02", body)
    table = ResultTable(("a", "b", ""), (False, True, False), (("1", "`x`", ""), ("é", "", "y")))
    assert section.blocks == ("First\nparagraph.", table, "- Last | paragraph.")
    save_section(tmp_path, section)
    assert load_sections(tmp_path) == [section]
    assert file_of(tmp_path, section.name).name == "models-counters-one.json"
    assert parse_section(section.name, section.device, section.date, section.markdown().partition("\n")[2]) == section


@pytest.mark.parametrize(
    "text", ["", "[]", '{"name": "GPU"}', '{"name": "a", "device": "b", "date": "c", "blocks": [1]}']
)
def test_a_damaged_data_file_is_named(tmp_path, text):
    (tmp_path / "gpu.json").write_text(text)
    with pytest.raises(InputError, match=r"gpu\.json is not a data file of the benchmark"):
        load_sections(tmp_path)


def test_the_page_shows_the_fastest_variant_and_the_best_peer_at_the_largest_size():
    text = page.render(
        [
            ladder(
                "| sum of 0.5, 2^10 | **Naive** | 0.100 | 1 to 1 | 9 GB/s | 2.00 x | verified |",
                "| sum of 0.5, 2^10 | Library | 0.200 | 1 to 1 | 9 GB/s | 1.00 x |  |",
                "| sum of 0.5, 2^20 | **Naive** | 3.000 | 1 to 1 | 9 GB/s | 0.50 x | verified |",
                "| sum of 0.5, 2^20 | **Peak** | 2.000 | 1 to 1 | 9 GB/s | 0.75 x | verified; goal: half |",
                "| sum of 0.5, 2^20 | Half the work | 1.000 | 1 to 1 | 9 GB/s | 0.50 x |  |",
                "| sum of 0.5, 2^20 | Library | 1.500 | 1 to 1 | 9 GB/s | 1.00 x |  |",
                "| sum of 0.5, 2^20 | Other |  |  |  |  | not installed here |",
                "| without a peer | **Only** | 1.000 | 1 to 1 | 9 GB/s |  | verified |",
            )
        ]
    )
    remark = "goal: half; Other: not installed here"
    assert f"| sum of 0.5, 2^20 | **Peak** | 2.000 | 9 GB/s | Library | 1.500 | 0.75 x | {remark} |" in text
    assert "2^10" not in text
    assert "Only" not in text
    assert "| GPU | slower than Library | sum of 0.5, 2^20: 0.75 x |" in text


def test_without_remarks_there_is_no_column_for_them():
    rows = (
        "| sum, 2^20 | **Peak** | 2.000 | 1 to 1 | 9 GB/s | 2.00 x | verified |",
        "| sum, 2^20 | Library | 4.000 | 1 to 1 | 9 GB/s | 1.00 x |  |",
    )
    text = page.render([ladder(*rows)])
    assert "| sum, 2^20 | **Peak** | 2.000 | 9 GB/s | Library | 4.000 | 2.00 x |\n" in text
    assert "remark" not in text


def test_wrong_results_and_exceeded_limits_are_missed_targets():
    rows = (
        "| sum | **Wrong** |  |  |  |  | WRONG, so not timed |",
        "| compile | **Slow** | 1.0 | 0.5 to 1.2e+03 | 1 |  | goal: at most 1000 ms |",
        "| compile | **Fast** | 1.0 | 0.5 to 900 | 1 |  | goal: at most 1000 ms |",
        "| open | **Window** | 900.0 | 800 to 990 | 1 |  | 801 ms of computing; goal: at most 800 ms |",
    )
    text = page.render([ladder(*rows, name="Simulator")])
    missed = text[text.index("## Missed targets") : text.index("## Simulator")]
    assert "| Simulator | sum | **Wrong**: WRONG, so not timed |" in missed
    assert "| Simulator | compile, **Slow** | 0.5 to 1.2e+03 ms; goal: at most 1000 ms |" in missed
    assert "Fast" not in missed
    assert "| open, **Window** |" in missed


def test_one_result_on_the_timing_model_is_enough():
    body = "About.\n\n| cases | held out | number | tau |\n|---|---|--:|--:|\n| all of ours |  | 3 | 0.9 |"
    text = page.render([parse_section("Timing model on x", "X", "2026-01-02", body)])
    assert "| X, 2026-01-02 | all of ours | 3 / - | 0.9 / - |" in text


def test_a_remark_on_several_comparisons_stands_once():
    body = "About.\n\n| cases | held out | number | tau |\n|---|---|--:|--:|\n| all of ours |  | 3 | 0.9 |\n\n{}"
    remarks = {"Timing model on x": "Old.", "Timing model on y": "Old.", "Timing model without nvcc on x": "Two far."}
    sections = [parse_section(name, "X", "2026-01-02", body.format(text)) for name, text in remarks.items()]
    text = page.render(sections)
    assert "Timing model on x, Timing model on y: Old. Timing model without nvcc on x: Two far." in text


def test_a_section_that_the_page_does_not_know_is_shown_as_it_is():
    section = parse_section("New", "device", "2026-01-02", "Some\ntext.\n\n| a |\n|--:|\n| 1 |")
    assert page.render([section]).endswith("## New: device, 2026-01-02\n\nSome text.\n\n| a |\n| --: |\n| 1 |\n")


def test_the_command_prints_a_section_and_the_names(tmp_path, capsys):
    document = tmp_path / "page.md"
    for name in ("Over", "Over sizes"):
        write_section(document, name, "a GPU", f"About {name}.\n\n| a | b |\n|---|--:|\n| 1 | 2 |")
    command = ["bench", "--document", str(document), "--show"]
    assert cli.main([*command, "over SIZES"], NO_WINDOW) == 0
    said = capsys.readouterr().out
    assert "About Over sizes." in said
    assert "| 1 | 2 |" in said
    assert "About Over.\n" not in said
    assert cli.main(command, NO_WINDOW) == 0
    assert [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()] == ["Over sizes", "Over"]
    assert cli.main([*command, "nothing"], NO_WINDOW) == 2
    assert "no benchmark results named 'nothing'. Choose one of: Over sizes, Over." in capsys.readouterr().err
    assert cli.main(["bench", "gpu", "--show"], NO_WINDOW) == 2
    assert "--show and --write-page require `bench` alone" in capsys.readouterr().err


def test_the_command_writes_the_page_from_its_data_files(tmp_path):
    document = tmp_path / "page.md"
    write_section(document, "New", "a GPU", "About.")
    written = document.read_text("utf-8")
    document.write_text("edited by hand")
    assert cli.main(["bench", "--write-page", "--document", str(document)], NO_WINDOW) == 0
    assert document.read_text("utf-8") == written
    write_page(document)
    assert document.read_text("utf-8") == written


def test_without_results_it_says_where_they_would_be(tmp_path):
    """As in an installed package, which has no docs/."""
    with pytest.raises(InputError, match=re.escape(f"no benchmark results in {tmp_path / 'page'}")) as raised:
        find_sections(tmp_path / "page.md", "")
    assert "--document" in raised.value.advice
