"""`scripts/deploy-local`: a deployment on this machine, from certificates to audit."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from demoa.core.errors import DemoaError
from demoa.flower.local import LocalDeployment

APP = Path(__file__).parents[3] / "examples" / "flower-digits"
SHOWN = re.compile(r"round \d+:|client |[0-9a-f]{16} |.*(refused|rejected|failed|NobodyAnswers|Error)")


def main() -> None:
    """Make keys, start everything, train, print, and stop everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--attacks", default="nan wrong_shape bit_flip", help="what clients 0, 1, ... do")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--p", type=float, default=0.3, help="how likely a client is asked in a round")
    parser.add_argument("--strategy", default="demoa", help="demoa, or Flower's own: fedmedian, krum")
    parser.add_argument("--folder", type=Path, default=Path("outputs/deploy"), help="for keys, logs and the state")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all processes are stopped then, too
    console = Console()
    begun = time.monotonic()
    config = {
        "clients": chosen.clients,
        "faulty": len(chosen.attacks.split()),
        "attacks": chosen.attacks,
        "rounds": chosen.rounds,
        "strategy": chosen.strategy,
        "p": chosen.p,
        "identity": "key",
        "timeout": 120.0,
        "folder": str((chosen.folder / "state").resolve()),
    }
    try:
        with LocalDeployment(chosen.folder, database=False) as deployment:
            console.print(f"SuperLink with TLS and client keys at {deployment.address}", highlight=False)
            for client in range(chosen.clients):
                deployment.add_client(f"client{client}", client)
                console.print(f"client{client}: registered and started", highlight=False)
            for line in deployment.run(APP, config):
                if SHOWN.match(text := re.sub(r"\x1b\[[0-9;]*m", "", line)):
                    console.print(text, highlight=False, markup=False)
            console.print(f"{time.monotonic() - begun:.0f} s; all processes are stopped now", highlight=False)
    except DemoaError as error:
        print(f"deploy-local: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
