"""Replay one seed of the simulation and show what happened: make simulate SEED=N [--quiet]."""

import sys

from tests.simulation.simulated.driver import Simulation, Violation


def main(words: list[str]) -> int:
    """Run the seed; 1 where it breaks a promise, 2 where none is named."""
    if not words or not words[0].isdecimal():
        print("which seed? make simulate SEED=4711", file=sys.stderr)
        return 2
    simulation = Simulation(int(words[0]))
    broken = None
    try:
        simulation.run()
    except Violation as violation:
        broken = violation
    if "--quiet" not in words:
        print(simulation.course)
        print("\n".join(simulation.lines))
    print(f"seed {simulation.seed}: {simulation.calls} calls, digest {simulation.digest}")
    if broken is not None:
        print(f"broken: {broken}\nreplay: make simulate SEED={simulation.seed}")
    return 1 if broken is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
