"""Results as frames and files."""

import math

import pandas
import polars
import pytest

from demoa import results
from demoa.core.errors import ConfigError
from tests.made_up import made_up


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    holes = [("fedcm", "alie", "IID", 1)]
    path = tmp_path_factory.mktemp("study") / "study"
    return made_up(path, holes=holes, rounds=20, seeds=(0, 1))


def test_polars_and_pandas_hold_the_same(study):
    for what, rows in (("runs", 32), ("rounds", 31 * 20)):
        one, other = results.load(study, what), results.load(study, what, "pandas")
        assert isinstance(one, polars.DataFrame)
        assert isinstance(other, pandas.DataFrame)
        assert len(one) == len(other) == rows
        assert one.columns == list(other.columns)
        for name in ("run", "split", "run.seed"):
            assert one[name].to_list() == other[name].tolist()


def test_a_failed_run_has_a_row_and_no_figures(study):
    (row,) = results.load(study).filter(polars.col("status") == "failed").to_dicts()
    assert row["error"] == "RuntimeError: the <b>dog</b> ate it"
    assert row["algorithm.name"] == "fedcm"
    assert row["test_accuracy"] is None


def test_rounds_carry_what_was_compared(study):
    frame = results.load(study, "rounds")
    last = frame.filter((polars.col("round") == 20) & (polars.col("algorithm.name") == "demoa"))
    assert last["accuracy"].to_list() == pytest.approx([0.5, 0.51] * 4)
    assert frame.schema["run.seed"] == polars.Int64
    assert frame["weights"].to_list()[0] == [0.04] * 25


@pytest.mark.parametrize("what", ["runs", "rounds"])
def test_files_hold_what_frames_hold(study, tmp_path, what):
    frame = results.load(study, what)
    for suffix in ("parquet", "csv"):
        assert results.export(study, tmp_path / f"table.{suffix}", what) == len(frame)
    assert polars.read_parquet(tmp_path / "table.parquet").equals(frame)
    text = polars.read_csv(tmp_path / "table.csv")
    assert text.columns == frame.columns
    name = "test_accuracy" if what == "runs" else "accuracy"
    for one, other in zip(text[name].to_list(), frame[name].to_list(), strict=True):
        assert one == other or math.isclose(one, other)


def test_bad_requests_are_refused(study, tmp_path):
    with pytest.raises(ConfigError, match=r"must end in .parquet, .csv or .jsonl"):
        results.export(study, tmp_path / "table.xlsx")
    with pytest.raises(ConfigError, match="'runs' or 'rounds'"):
        results.load(study, "epochs")
    with pytest.raises(ConfigError, match="'polars' or 'pandas'"):
        results.load(study, library="excel")
    with pytest.raises(ConfigError, match="holds no runs"):
        results.load(tmp_path)
    with pytest.raises(OSError, match="cannot write"):
        results.export(study, tmp_path / "none" / "table.csv")


def test_what_a_round_takes_as_a_label_stays_a_label(tmp_path):
    """The attack inf is a word, sampling.p a number."""
    path = made_up(tmp_path / "study", rounds=10, attacks=("inf", "alie"))
    assert set(results.load(path, "rounds")["attack.name"].unique()) == {"inf", "alie"}
