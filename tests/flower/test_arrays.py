"""What clients send is not trusted: every way of sending something else is refused, by its reason."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord

from demoa.core.errors import ConfigError, UpdateRejected
from demoa.flower.arrays import Layout, as_vector

GOOD = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.array([7, 8], np.float32)}


def record(**changes):
    arrays = {name: Array(array) for name, array in (GOOD | changes).items() if array is not None}
    return ArrayRecord(arrays)


@pytest.fixture
def layout():
    return Layout.of(record())


def test_a_vector_goes_there_and_back(layout):
    vector = layout.vector("a", record())
    assert layout.width == 8
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 4, 5, 7, 8])
    np.testing.assert_array_equal(as_vector(layout.arrays(vector)), vector)
    assert layout.arrays(vector)["weight"].numpy().shape == (2, 3)


def test_the_order_of_a_clients_arrays_does_not_matter(layout):
    turned = ArrayRecord({name: Array(GOOD[name]) for name in reversed(GOOD)})
    np.testing.assert_array_equal(layout.vector("a", turned), layout.vector("a", record()))


def lying(**claims):
    """An array that says something else about itself than its bytes do."""
    array = Array(GOOD["bias"])
    for name, value in claims.items():
        object.__setattr__(array, name, value)
    return array


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (None, "no_arrays"),
        (record(bias=None), "names"),
        (record(extra=GOOD["bias"]), "names"),
        (record(weight=np.zeros((3, 2), np.float32)), "shape"),
        (record(weight=np.zeros((2, 3, 1), np.float32)), "shape"),
        (record(bias=np.zeros(2, np.float64)), "dtype"),
        (record(bias=np.zeros(2, np.int32)), "dtype"),
    ],
)
def test_what_is_not_like_the_model_is_refused(layout, sent, reason):
    with pytest.raises(UpdateRejected) as refusal:
        layout.vector("a", sent)
    assert refusal.value.reason == reason


@pytest.mark.parametrize(
    "claims",
    [
        {"data": b""},
        {"data": b"\x00" * 136},
        {"data": Array(GOOD["bias"]).data[:-1]},
        {"data": Array(GOOD["bias"]).data + b"\x00" * 8},
        {"data": Array(GOOD["bias"]).data + b"\x00" * 9000},
        {"data": Array(np.zeros((2, 1), np.float32)).data},
        {"data": Array(np.zeros(1, np.float64)).data},
        {"data": Array(GOOD["bias"]).data.replace(b"(2,)", b"(9,)")},
        {"data": Array(GOOD["bias"]).data.replace(b"<f4", b"|O8")},
    ],
)
def test_bytes_that_are_not_what_they_are_said_to_be_are_refused(layout, claims):
    sent = ArrayRecord({"weight": Array(GOOD["weight"]), "bias": lying(**claims)})
    with pytest.raises(UpdateRejected) as refusal:
        layout.vector("a", sent)
    assert refusal.value.reason == "damaged"


def test_a_model_with_counters_is_refused():
    with pytest.raises(ConfigError, match="leave out what is not trained"):
        Layout.of(record(counter=np.array(3)))
