"""Table 3 in docs/the-paper.md says what the arithmetic says."""

import re
from pathlib import Path

from tests.test_config import TABLE_3, arithmetic
from tf_transformer import PRESETS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "the-paper.md"
ROW = re.compile(
    r"^\| (?P<row>\w+) \| `(?P<preset>[\w.]+)` \| (?P<differs>[^|]*)\| (?P<ours>[\d,]+) "
    r"\| (?P<millions>[\d.]+) \| (?P<paper>\d+|-) \| (?P<larger>[\d.]+) \|$",
    re.MULTILINE,
)


def rows():
    return {row["preset"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_every_preset_of_table_3_is_in_the_docs_in_its_order():
    assert list(rows()) == [preset for preset in PRESETS if preset != "tiny"] == list(TABLE_3)


def test_the_counts_are_those_of_the_arithmetic():
    for preset, row in rows().items():
        numbers, printed = TABLE_3[preset]
        ours = arithmetic(**numbers)
        assert row["ours"] == f"{ours:,}", preset
        assert row["millions"] == f"{ours / 1e6:.1f}", preset
        assert row["paper"] == str(printed or "-"), preset
        assert row["larger"] == f"{arithmetic(**numbers, V=41_000) / 1e6:.1f}", preset


def test_what_differs_is_what_the_preset_changes():
    """Each number that the preset sets is named in its row, and in the row of its letter."""
    for preset, row in rows().items():
        letter = re.match(r"table3_(\w)_", preset)
        assert row["row"] == (letter[1].upper() if letter else preset)
        for value in PRESETS[preset].values():
            assert str(value) in row["differs"], preset


def test_a_vocabulary_of_41_000_explains_the_rows_from_base_to_c():
    for preset, (numbers, printed) in TABLE_3.items():
        if printed and preset != "big":
            assert round(arithmetic(**numbers, V=41_000) / 1e6) == printed, preset
            assert round(arithmetic(**numbers) / 1e6) < printed, preset
