"""What rows take, before anything is started."""

import numpy as np
import pytest
from typer.testing import CliRunner

import demoa
from demoa.aggregation.stores import fitting
from demoa.cli.main import app, main


def test_every_kind_of_store_has_a_line():
    found = CliRunner().invoke(app, ["memory", "--n", "10000", "--d", "1199882"])
    assert found.exit_code == 0
    lines = {line.split("   ")[0].strip(): line for line in found.output.splitlines()}
    assert "48.0 GB" in lines["dense"]
    assert "48.0 GB" in lines["memmap"]
    assert "24.0 GB" in lines["bfloat16"]
    assert "12.7 GB" in lines["int8"]
    assert "800.0 MB" in found.output  # the table


def test_what_it_says_is_what_is_taken(tmp_path):
    n, d = 7, 1000
    for name, kind in fitting.candidates(str(tmp_path / "rows")).items():
        folder = tmp_path / name
        kind = type(kind)(folder=folder) if "mapped" in name or name == "memmap" else kind
        store = kind.make(n, 0, np.zeros(d, np.float32))
        for index in range(n):
            store.blend(index, 0.0, 1.0, np.ones(d, np.float32))
        told = kind.size(n, d, 4)
        if told.disk:
            assert told.disk == sum(path.stat().st_size for path in folder.glob("0/*.bin"))
        else:
            assert told.memory == sum(array.nbytes for array in store.arrays().values())


def test_bad_flags_get_one_line(capsys):
    for words, message in (
        (["--n", "0", "--d", "5"], "--n must be"),
        (["--n", "5", "--d", "5", "--store", "int4"], "did you mean 'int8'"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["memory", *words])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


def test_rows_that_do_not_fit_are_refused_with_a_store_that_would(monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "free_memory", lambda: 3_000_000)
    start = np.zeros(100_000, np.float32)
    with pytest.raises(demoa.ConfigError, match=r"take 0\.0 GB of memory.*store 'bfloat16' would fit"):
        demoa.Server(start, 10, f=1, rule="krum")
    demoa.Server(start, 10, f=1, rule="krum", store="bfloat16")
    monkeypatch.setattr(fitting, "free_memory", lambda: 10)
    with pytest.raises(demoa.ConfigError, match="store 'memmap' keeps rows on disk"):
        demoa.Server(start, 10, f=1, rule="krum")
    monkeypatch.setattr(fitting, "free_disk", lambda folder: 10)
    with pytest.raises(demoa.ConfigError, match="on the disk of"):
        demoa.Server(start, 10, f=1, rule="krum", store=demoa.stores.Memmap(tmp_path))


@pytest.mark.parametrize(
    ("rule", "mixing", "needed"),
    [
        ("krum", (), True),
        ("geometric_median", (), True),
        ("mean", (), False),
        ("median", "bucketing", False),
        ("centered_clip", (), False),
        ("centered_clip", "bucketing", True),
        ("median", "nnm", True),
    ],
)
def test_a_table_that_does_not_fit_is_refused_at_the_start_where_it_is_needed(rule, mixing, needed, monkeypatch):
    monkeypatch.setattr(fitting, "free_memory", lambda: 400_000)

    def server():
        algorithm = demoa.algorithms.Demoa(p=0.1, full_first_round=False)
        return demoa.Server(np.zeros(5), 300, f=0, rule=rule, mixing=mixing, algorithm=algorithm)

    if needed:
        with pytest.raises(demoa.ConfigError, match=r"the inner products of 30[01] rows take .*; mean, centered_clip"):
            server()
        return
    made = server()
    made.begin_round([1, 2])
    made.submit(1, np.ones(5))
    made.end_round()  # and asks for none later
