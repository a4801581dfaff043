"""Evaluation: the same figures, however many examples go through the model at once."""

import numpy as np
import pytest
import torch

from demoa.core.examples import Dataset, Examples
from demoa.metrics import accuracy
from demoa.metrics.accuracy import evaluate
from demoa.models.convnet import ConvNet


@pytest.fixture
def dataset():
    draw = torch.Generator().manual_seed(3)
    images = torch.randint(0, 256, (730, 1, 12, 12), dtype=torch.uint8, generator=draw)
    labels = torch.randint(0, 10, (730,), generator=draw)
    examples = Examples(images, labels, (0.5,), (0.25,))
    return Dataset(examples, examples, 10)


def test_loss_and_accuracy_are_means_over_examples(dataset):
    net = ConvNet(1, 12, 10)
    index = np.arange(0, 730, 2)
    found = evaluate(net, dataset, dataset.test, index)
    images, labels = dataset.test.batch(index)
    with torch.no_grad():
        scores = net.eval()(images)
    assert found.loss == pytest.approx(float(torch.nn.functional.cross_entropy(scores, labels)), rel=1e-5)
    assert found.accuracy == float((scores.argmax(1) == labels).double().mean())


def test_pieces_come_to_the_same_figures(dataset, monkeypatch):
    net = ConvNet(1, 12, 10)
    whole, *others = [_evaluated(net, dataset, monkeypatch, piece) for piece in (accuracy.BATCH, accuracy.PIECE, 7)]
    for other in others:
        assert other.loss == pytest.approx(whole.loss, rel=1e-6)
        assert other.accuracy == whole.accuracy


def _evaluated(net, dataset, monkeypatch, piece):
    monkeypatch.setattr(accuracy, "PIECE", piece)
    return evaluate(net, dataset, dataset.test, np.arange(723))
