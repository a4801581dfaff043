"""The clients: honest ones, and some that were told to attack."""

from collections.abc import Iterator
from typing import Any

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord
from flwr.clientapp.typing import ClientAppCallable

from demoa.flower import make_client_app
from demoa.flower.mods import attack_mod
from flower_digits.task import BATCH, batches, loss, network


def attack_of(context: Context) -> str:
    """Return what this client was told to do."""
    names = str(context.run_config["attacks"]).split()
    client = int(context.node_config["partition-id"])
    return names[client] if client < len(names) else "none"


def data(context: Context) -> Iterator[Any]:
    """Return the data of the client that this is; one that flips labels turns them around."""
    client, clients = int(context.node_config["partition-id"]), int(context.run_config["clients"])
    return batches(client, clients, flip=attack_of(context) == "label_flip")


def attacks(message: Message, context: Context, app: ClientAppCallable) -> Message:
    """Let the first clients behave as the run's configuration says."""
    name = attack_of(context)
    return attack_mod("none" if name == "label_flip" else name)(message, context, app)


def as_weights(message: Message, context: Context, app: ClientAppCallable) -> Message:
    """Answer as Flower's own strategies want it: with the weights after a step, and how many examples there were."""
    reply = app(message, context)
    if context.run_config["strategy"] != "demoa" and "arrays" in reply.content:
        before: Any = message.content["arrays"]
        gradient: Any = reply.content["arrays"]
        lr = float(context.run_config["lr"])
        after = {name: Array(before[name].numpy() - lr * gradient[name].numpy()) for name in gradient}
        reply.content["arrays"] = ArrayRecord(after)
        reply.content["metrics"] = MetricRecord({"num-examples": BATCH})
    return reply


app = make_client_app(network, data, loss, mods=[attacks, as_weights])
