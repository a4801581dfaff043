"""Clients with next to no data of their own: what is measured is the way of a large model."""

from collections.abc import Iterator
from typing import Any

import torch
from flwr.app import Context, Message, MetricRecord
from flwr.clientapp.typing import ClientAppCallable
from torch import nn

from demoa.flower import make_client_app
from demoa.models import MODELS


def network(name: str = "resnet18") -> nn.Module:
    """Return a model for images of CIFAR-10's size."""
    return MODELS[name](3, 32, 10)


def batches(context: Context) -> Iterator[Any]:
    """Yield batches of noise."""
    while True:
        yield torch.randn(4, 3, 32, 32), torch.randint(10, (4,))


def loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """Return the mean loss on a batch."""
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def counting(message: Message, context: Context, app: ClientAppCallable) -> Message:
    """Say how many examples there were, as FedAvg wants to know."""
    reply = app(message, context)
    reply.content["metrics"] = MetricRecord({"num-examples": 4})
    return reply


def train(message: Message, context: Context, app: ClientAppCallable) -> Message:
    """Answer with the model that the run's configuration names."""
    name = str(context.run_config["model"])
    return make_client_app(lambda: network(name), batches, loss, mods=[counting])(message, context)


app = make_client_app(network, batches, loss, mods=[train])
