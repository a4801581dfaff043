"""The client's half: gradients, momentum, local steps, clipping, and attack mods."""

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from torch import nn

from demoa.core.errors import ConfigError
from demoa.flower import DelayedMomentumStrategy, make_client_app
from demoa.flower.client import buffer_names, load_arrays, parameters_of
from demoa.flower.mods import ATTACK_MODS, attack_mod
from demoa.sampling import Bernoulli
from tests.flower.test_strategy import Straight


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def batches(context):
    client = int(context.node_config["partition-id"])
    data = torch.from_numpy(np.random.default_rng(client).normal(size=(64, 4)).astype(np.float32))
    while True:
        chosen = data[torch.randperm(64)[:16]]
        yield chosen, (chosen.sum(dim=1) > client / 10).long()


def loss(module, batch):
    return nn.functional.cross_entropy(module(batch[0]), batch[1])


def node(app, client, config=None):
    context = Context(1, client, {"partition-id": client, **(config or {})}, RecordDict(), {})
    return lambda message: app(message, context)


def trained(momentum="server", rounds=12, mods=None, **options):
    app = make_client_app(network, batches, loss, mods=mods, **options)
    strategy = DelayedMomentumStrategy(
        f=1, clients=5, rule="median", sampling=Bernoulli(0.7), momentum=momentum, identity="partition", poll=0.01
    )
    strategy.start(
        Straight({client: node(app, client) for client in range(5)}, answers_questions=True),
        parameters_of(network()),
        rounds,
        1,
    )
    return np.array(strategy.server.parameters)


def test_clients_learn_and_are_reproducible():
    one, other = trained(), trained()
    np.testing.assert_array_equal(one, other)
    start = np.concatenate([parameter.detach().numpy().ravel() for parameter in network().parameters()])
    assert np.linalg.norm(one - start) > 0.1
    assert not np.array_equal(one, trained(seed=1))


def test_momentum_on_the_client_is_the_same_maths():
    np.testing.assert_allclose(trained("client"), trained("server"), atol=1e-6)


def test_local_steps_and_clipping():
    assert not np.allclose(trained(local_steps=3), trained())
    start = np.concatenate([parameter.detach().numpy().ravel() for parameter in network().parameters()])
    assert np.linalg.norm(trained(clip=1e-3, rounds=3) - start) < 3 * 0.1 * 1e-3 * 2


def message_for(app, client=0, start=None):
    content = {"arrays": start or parameters_of(network())}
    content["config"] = ConfigRecord({"server-round": 1, "momentum": False, "keep": 0.0, "gain": 1.0})
    message = Message(RecordDict(content), client, MessageType.TRAIN)
    message.metadata.__dict__["_message_id"] = "one"
    return node(app, client)(message)


def test_mods_do_what_they_are_called():
    plain = message_for(make_client_app(network, batches, loss)).content["arrays"]

    def sent(name, **options):
        app = make_client_app(network, batches, loss, mods=[attack_mod(name, **options)])
        return message_for(app).content["arrays"]

    for name, array in plain.items():
        np.testing.assert_array_equal(sent("none")[name].numpy(), array.numpy())
        np.testing.assert_array_equal(sent("bit_flip")[name].numpy(), -array.numpy())
        np.testing.assert_allclose(sent("scaled", strength=3.0)[name].numpy(), 3 * array.numpy(), rtol=1e-6)
        assert np.isnan(sent("nan")[name].numpy()).all()
        assert sent("wrong_shape")[name].numpy().shape == (*array.numpy().shape, 2)
        assert name not in sent("wrong_names")
        np.testing.assert_array_equal(sent("sleep", seconds=0.01)[name].numpy(), array.numpy())
    with pytest.raises(Exception, match="as it was told to"):
        sent("raise")
    with pytest.raises(ConfigError, match="did you mean 'bit_flip'"):
        attack_mod("bitflip")
    assert set(ATTACK_MODS) == {"bit_flip", "scaled", "nan", "wrong_shape", "wrong_names", "raise", "sleep", "exit"}


def normed():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))


def with_buffers(answers, rounds=8, folder=None):
    """Train a network with running statistics; `answers` are nodes by client."""
    strategy = DelayedMomentumStrategy(
        f=1,
        clients=5,
        rule="median",
        sampling=Bernoulli(0.7),
        identity="node",
        poll=0.01,
        buffers=buffer_names(normed()),
        folder=folder,
    )
    strategy.start(Straight(answers), parameters_of(normed(), buffers=True), rounds, 1)
    return strategy


def running_mean(strategy):
    return strategy.arrays["1.running_mean"].numpy()


def test_running_statistics_are_shared_and_a_liar_does_not_choose_them(tmp_path):
    app = make_client_app(normed, batches, loss)
    honest = {client: node(app, client) for client in range(5)}

    def lying(message):
        reply = node(app, 0)(message)
        buffers = reply.content["buffers"]
        reply.content["buffers"] = ArrayRecord({name: Array(1e6 + buffers[name].numpy()) for name in buffers})
        return reply

    def broken(message):
        reply = lying(message)
        reply.content["buffers"]["1.running_var"] = Array(np.full(5, np.nan, np.float32))
        return reply

    straight = with_buffers(honest)
    assert "1.running_var" in straight.arrays
    assert "1.num_batches_tracked" not in straight.arrays
    assert 0 < np.abs(running_mean(straight)).max() < 1
    assert np.abs(running_mean(with_buffers({**honest, 0: lying}))).max() < 1

    refusing = with_buffers({**honest, 0: broken})
    assert set(refusing.audit.standings["0"].refused) == {"not_finite"}
    assert not np.array(refusing.server.momentum_of("0")).any()  # the whole reply is refused

    with_buffers(honest, rounds=5, folder=tmp_path)
    again = with_buffers(honest, folder=tmp_path)
    for name, array in straight.arrays.items():
        np.testing.assert_array_equal(again.arrays[name].numpy(), array.numpy())
    module = normed()
    load_arrays(module, again.arrays)
    np.testing.assert_array_equal(module[1].running_mean.numpy(), running_mean(straight))


def test_without_shared_buffers_only_parameters_are_sent():
    sent = message_for(make_client_app(normed, batches, loss), start=parameters_of(normed()))
    assert "buffers" not in sent.content
    assert set(sent.content["arrays"]) == {name for name, _ in normed().named_parameters()}


def test_buffers_that_the_model_does_not_have_are_refused():
    strategy = DelayedMomentumStrategy(f=1, clients=5, rule="median", identity="node", buffers=["mean"])
    with pytest.raises(ConfigError, match=r"no buffers \['mean'\]"):
        strategy.start(Straight({}), parameters_of(normed()), 1, 1)
