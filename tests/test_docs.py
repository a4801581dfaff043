"""Figures in the documentation are those that its commands print."""

from pathlib import Path

from demoa.cli.table import markdown_tables

DOCS = Path(__file__).parents[1] / "docs"


def test_what_stores_cost():
    printed = markdown_tables(DOCS / "results" / "stores.jsonl", "attack.name", "store", "float32", "test_accuracy")
    assert printed in (DOCS / "scale.md").read_text()
