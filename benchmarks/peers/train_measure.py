"""One training in this process, as a line of JSON: `python -m peers.train_measure --help`."""

import argparse
from pathlib import Path

from . import train_keras_hub, train_opennmt, train_torch
from .train_clock import Clock
from .train_sizes import SIZES

SYSTEMS = ("ours", "opennmt", "keras_hub", "torch")


def main() -> None:
    """Measures the system that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="with what all of them read")
    parser.add_argument("--batch-tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    chosen = parser.parse_args()
    clock, size = Clock(chosen.warm_up, chosen.seconds), SIZES[chosen.size]
    if chosen.system == "ours":
        from . import train_ours

        train_ours.run(chosen.size, chosen.data, chosen.folder, clock, chosen.batch_tokens)
    elif chosen.system == "opennmt":
        train_opennmt.run(size, chosen.folder, clock, chosen.batch_tokens)
    elif chosen.system == "keras_hub":
        train_keras_hub.run(size, chosen.folder, clock)
    else:
        train_torch.run(size, chosen.folder, clock, chosen.threads)
    print(clock.line(system=chosen.system, size=chosen.size))


if __name__ == "__main__":
    main()
