"""One of several workers that hold a server's columns between them: started by torchrun, and told what to play."""

import json
import os
import signal
import sys

import numpy as np

import demoa
from demoa.aggregation.stores.sharded import Shard, Sharded

N, D = 12, 5003


def vector(number, client):
    lie = -8.0 if client < 3 else 1.0
    return (lie * (1 + np.random.default_rng([number, client]).standard_normal(D))).astype(np.float32)


def server_of(shard, case):
    return demoa.Server(
        shard.cut(np.zeros(D, np.float32)),
        N,
        f=case.get("f", 3),
        rule=case["rule"],
        mixing=case.get("mixing", ()),
        algorithm=case.get("algorithm", "demoa"),
        lr=0.1,
        store=Sharded(shard),
        sketch=case.get("sketch"),
    )


def play(server, shard, until, die_at=None):
    weights = []
    while server.round < until:
        number = server.round + 1
        if number == die_at and shard.rank == shard.count - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        asked = None if number == 1 else [c for c in range(N) if np.random.default_rng([number, c, 7]).random() < 0.4]
        task = server.begin_round(asked)
        refused = []
        for client in task.asked:
            sent = vector(number, client)
            if client == 5:
                sent[number % D] = np.nan  # which only one of the workers can see
            try:
                server.submit(client, shard.cut(sent))
            except demoa.UpdateRejected as refusal:
                refused.append(refusal.reason)
        report = server.end_round()
        weights.append(None if report.weights is None else report.weights.tolist())
        assert set(refused) <= {"not_finite"}
    return weights


def main():
    told = json.loads(sys.argv[1])
    shard = Shard.connect(D, seconds=20)
    found = []
    for case in told["cases"]:
        server = server_of(shard, case)
        if "load" in told:
            server.load(told["load"])
        weights = play(server, shard, told["rounds"], told.get("die_at"))
        if "save" in told:
            server.save(told["save"])
            weights += play(server, shard, told.get("then", 0), told.get("die_then"))
        parameters = shard.gather(server.parameters)
        found.append({"weights": weights, "parameters": np.asarray(parameters).tolist()})
    if shard.rank == 0:
        print("found " + json.dumps(found), flush=True)
    shard.disconnect()


if __name__ == "__main__":
    try:
        main()
    except demoa.DemoaError as error:
        print(f"error: {error}", flush=True)
        sys.exit(3)
