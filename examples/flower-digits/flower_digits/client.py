"""The clients: honest ones, and some that were told to attack."""

from collections.abc import Iterator
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable

from demoa.flower import make_client_app
from demoa.flower.mods import attack_mod
from flower_digits.task import batches, loss, network


def data(context: Context) -> Iterator[Any]:
    """Return the data of the client that this is."""
    return batches(int(context.node_config["partition-id"]), int(context.run_config["clients"]))


def attacks(message: Message, context: Context, app: ClientAppCallable) -> Message:
    """Let the first clients behave as the run's configuration says."""
    names = str(context.run_config["attacks"]).split()
    client = int(context.node_config["partition-id"])
    return attack_mod(names[client] if client < len(names) else "none")(message, context, app)


app = make_client_app(network, data, loss, mods=[attacks])
