# SPDX-License-Identifier: Apache-2.0
"""Runs that alternate between the cases, so that what the machine does meanwhile meets all of them."""
import statistics

from harness import build
from harness.server import MeasureError


def attempt(step, case, commands, results):
    """A case that fails is reported and left out of what follows."""
    try:
        return step(case, commands[case])
    except (MeasureError, OSError) as error:
        results.fail(case, error)
        del commands[case]
        return None


def alternate(commands, runs, run, results):
    """Runs each command `runs` times, each round in another order; adds the medians of what they give.
    Returns for each round what each case gave: numbers by metric."""
    rounds = []
    for number in range(runs):
        order = list(commands)
        order = order[number % len(order):] + order[:number % len(order)] if order else []
        this_round = {}
        for case in order:
            build.progress(f"round {number + 1} of {runs}: {case}")
            sample = attempt(lambda _, command: run(command), case, commands, results)
            if sample is not None:
                this_round[case] = sample
        rounds.append(this_round)
    for case in commands:
        for metric in rounds[0][case]:
            results.add(case, metric, statistics.median([each[case][metric] for each in rounds]))
    return rounds


def add_ratio(results, rounds, case, peer, name, metric=None):
    """The median of the ratios of the two in each round."""
    metric = metric or name
    ratios = [each[case][metric] / each[peer][metric] for each in rounds]
    results.add(case, f"ratio.{name}.{peer}", statistics.median(ratios), "ratio")
