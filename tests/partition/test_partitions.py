import numpy as np
import pytest

import demoa
from demoa.core.seeding import generator
from demoa.partition import PARTITIONS, ByLabel, Dirichlet, Iid, LongTail, OneLabel, Similarity

LABELS = np.random.default_rng(0).integers(0, 10, 5000)


def deal(partition, clients=20, seed=0):
    return partition.shards(LABELS, clients, generator(seed, "partition"))


# One label per client: as many clients as labels, and nothing to draw.
DRAWN = sorted(set(PARTITIONS) - {"one_label"})


def test_one_label_gives_each_client_its_own():
    shards = deal(OneLabel(), clients=10)
    assert [np.unique(LABELS[shard]).tolist() for shard in shards] == [[label] for label in range(10)]
    assert sum(map(len, shards)) == len(LABELS)
    with pytest.raises(demoa.ConfigError, match="as many honest clients as labels: 9 clients, 10 labels"):
        deal(OneLabel(), clients=9)


@pytest.mark.parametrize("name", DRAWN)
def test_nobody_gets_an_example_twice(name):
    shards = deal(PARTITIONS[name]())
    joined = np.concatenate(shards)
    assert len(shards) == 20
    assert len(np.unique(joined)) == len(joined)
    if name != "long_tail":
        assert len(joined) == len(LABELS)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_seed_deals_the_same(name):
    one, other, another = (deal(PARTITIONS[name](), seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, another, strict=True))


def labels_per_client(shards):
    return np.mean([len(np.unique(LABELS[shard])) for shard in shards])


def test_by_label_gives_each_client_few_labels():
    shards = deal(ByLabel())
    assert {len(shard) for shard in shards} == {250}
    assert max(len(np.unique(LABELS[shard])) for shard in shards) <= 2
    assert labels_per_client(deal(Iid())) == 10


def test_similarity_runs_from_by_label_to_iid():
    spread = [labels_per_client(deal(Similarity(gamma=gamma))) for gamma in (0.0, 0.05, 1.0)]
    assert spread[0] < 2 < spread[1] < spread[2] == 10


def test_dirichlet_is_uneven_for_small_alpha():
    def unevenness(alpha):
        shards = deal(Dirichlet(alpha=alpha))
        shares = np.array([np.bincount(LABELS[shard], minlength=10) for shard in shards]) / 500
        return shares.std()

    assert unevenness(0.05) > 2 * unevenness(1.0) > 4 * unevenness(100.0)


def test_long_tail_thins_out_the_last_labels():
    kept = np.bincount(LABELS[np.concatenate(deal(LongTail(ratio=10.0)))], minlength=10) / np.bincount(LABELS)
    np.testing.assert_allclose(kept, 10.0 ** (-np.arange(10) / 9), atol=0.01)


@pytest.mark.parametrize(
    "make", [lambda: Dirichlet(alpha=0.0), lambda: Similarity(gamma=1.1), lambda: LongTail(ratio=0.5)]
)
def test_bad_options_are_refused(make):
    with pytest.raises(demoa.ConfigError, match="must be"):
        make()
