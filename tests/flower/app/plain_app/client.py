"""A client whose gradient pulls towards a point of its own; its node's configuration may tell it to lie."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


def gradient(client: int, x: np.ndarray) -> np.ndarray:
    goal = np.random.default_rng(client).normal(1.0, 0.1, len(x))
    return (x - goal).astype(np.float32)


@app.train()
def train(message: Message, context: Context) -> Message:
    x = message.content["arrays"]["x"].numpy()
    found = gradient(int(context.node_config["partition-id"]), x)
    attack = context.node_config.get("attack")
    if attack == "nan":
        found = np.full_like(found, np.nan)
    if attack == "exit":
        raise SystemExit(1)
    return Message(RecordDict({"arrays": ArrayRecord({"x": Array(found)})}), reply_to=message)
