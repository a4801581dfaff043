"""The client's half: a model, its data and a loss become a ClientApp of Flower."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from torch import nn

from demoa.core.torch_seed import seeded_torch

Loss = Callable[[nn.Module, Any], torch.Tensor]
"""The mean loss of a model on a batch."""


def make_client_app(
    model: Callable[[], nn.Module],
    batches: Callable[[Context], Iterable[Any]],
    loss: Loss,
    *,
    evaluate: Callable[[nn.Module, Context], dict[str, float]] | None = None,
    local_steps: int = 1,
    local_lr: float = 0.1,
    clip: float | None = None,
    seed: int = 0,
    mods: list[Mod] | None = None,
) -> ClientApp:
    """Return an app that answers with a gradient, or with its momentum if it is asked for that.

    Args:
        model: Makes the module; its trainable parameters are what is sent, under their names, and the buffers that
            the strategy shares.
        batches: Gives the client's data, such as a torch DataLoader; what it draws from torch is seeded by round.
        loss: The mean loss on a batch.
        evaluate: Figures of the model on the client's own data.
        local_steps: More than 1: that many steps of `local_lr`, sent as (x - x_local) / (local_lr * local_steps).
        local_lr: The step size of local steps.
        clip: Shorten vectors to this norm.
        seed: What batches and dropout are drawn from, in a stream of its own per client and round.
        mods: What is put around the app, such as the attacks in `demoa.flower.mods`.
    """
    app = ClientApp(mods=mods or [])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        content: Any = message.content
        config = content["config"]
        number, client = int(config["server-round"]), int(context.node_config.get("partition-id", 0))
        module = _made(model, seed)
        load_arrays(module, content["arrays"])
        with seeded_torch(seed, "client", client, number):
            vectors, first = _update(module, iter(batches(context)), loss, local_steps, local_lr)
        if clip is not None:
            _clip(vectors, clip)
        if config.get("momentum"):
            vectors = _momentum(vectors, config, context)
        reply: Any = {
            "arrays": ArrayRecord({name: Array(vector.numpy()) for name, vector in vectors.items()}),
            "metrics": MetricRecord({"loss": first, "server-round": number}),
        }
        shared = [name for name in buffer_names(module) if name in content["arrays"]]
        if shared:
            held = dict(module.named_buffers())
            reply["buffers"] = ArrayRecord({name: Array(held[name].cpu().numpy()) for name in shared})
        return Message(RecordDict(reply), reply_to=message)

    @app.evaluate()
    def evaluate_(message: Message, context: Context) -> Message:
        found = {}
        if evaluate is not None:
            module = _made(model, seed)
            load_arrays(module, message.content["arrays"])  # type: ignore[arg-type]
            found = evaluate(module, context)
        return Message(RecordDict({"metrics": MetricRecord(dict(found))}), reply_to=message)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        said = {"partition-id": context.node_config.get("partition-id", context.node_id)}
        return Message(RecordDict({"partition": ConfigRecord(said)}), reply_to=message)  # type: ignore[arg-type]

    return app


def _made(model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Return the module; what its factory does to torch's generator stays with it."""
    with seeded_torch(seed, "model"):
        return model()


def parameters_of(module: nn.Module, *, buffers: bool = False) -> ArrayRecord:
    """Return the trainable parameters of a module, by name, and its buffers if asked for: what a run starts from."""
    owned = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if buffers:
        held = dict(module.named_buffers())
        owned += [(name, held[name]) for name in buffer_names(module)]  # type: ignore[misc]
    return ArrayRecord({name: Array(tensor.detach().cpu().numpy()) for name, tensor in owned})


def buffer_names(module: nn.Module) -> list[str]:
    """Return the names of the buffers that can be shared: running statistics, not counters."""
    return [name for name, buffer in module.named_buffers() if buffer.is_floating_point()]


def load_arrays(module: nn.Module, arrays: ArrayRecord) -> None:
    """Copy arrays into a module, by name: its trainable parameters, and the buffers that are there."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.from_numpy(arrays[name].numpy().copy()))
        for name, buffer in module.named_buffers():
            if name in arrays:
                buffer.copy_(torch.from_numpy(arrays[name].numpy().copy()))


def _update(
    module: nn.Module, batches: Any, loss: Loss, steps: int, lr: float
) -> tuple[dict[str, torch.Tensor], float]:
    """Return the (pseudo-)gradient by parameter, and the loss of the first batch."""
    module.train()
    owned = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    total = {name: torch.zeros_like(parameter) for name, parameter in owned.items()}
    first = 0.0
    for step in range(steps):
        module.zero_grad()
        found = loss(module, next(batches))
        found.backward()  # type: ignore[no-untyped-call]
        first = float(found.detach()) if step == 0 else first
        with torch.no_grad():
            for name, parameter in owned.items():
                gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
                total[name] += gradient / steps
                if step + 1 < steps:
                    parameter.sub_(gradient, alpha=lr)
    return total, first


def _clip(vectors: dict[str, torch.Tensor], radius: float) -> None:
    norm = float(torch.sqrt(sum((vector.double() ** 2).sum() for vector in vectors.values())))  # type: ignore[arg-type]
    if norm > radius:
        for vector in vectors.values():
            vector *= radius / norm


def _momentum(vectors: dict[str, torch.Tensor], config: ConfigRecord, context: Context) -> dict[str, torch.Tensor]:
    """Return the client's momentum, keep * m + gain * g, which it holds from round to round."""
    held = context.state.array_records.get("momentum")
    keep, gain = float(config["keep"]), float(config["gain"])  # type: ignore[arg-type]
    for name, vector in vectors.items():
        vector *= gain
        if held is not None:
            vector += keep * torch.from_numpy(held[name].numpy().copy())
    context.state["momentum"] = ArrayRecord({name: Array(vector.numpy().copy()) for name, vector in vectors.items()})
    return vectors
