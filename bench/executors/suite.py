# SPDX-License-Identifier: Apache-2.0
"""The executors suite: posting, waiting for one another, and joining.

plumb beside asio, oneTBB, tokio and Go, each as far as it has the thing.
"""
import json
import pathlib
import sys

from harness import build, chart, machine, report, suite
from harness.rounds import add_ratio, alternate

HERE = pathlib.Path(__file__).resolve().parent
ON_ONE_THREAD = ["post", "dispatch", "channel", "two_strands"]
ON_TWO = ["one_producer", "four_producers", "strand", "ping_pong", "mutex", "spawn", "fib",
          "skynet"]
HAS = {
    "plumb": ON_ONE_THREAD + ON_TWO,
    "asio": ON_ONE_THREAD + ["one_producer", "four_producers", "strand", "ping_pong", "spawn"],
    "onetbb": ["one_producer", "four_producers", "spawn", "fib", "skynet"],
    "tokio": ["post", "channel", "one_producer", "four_producers", "ping_pong", "mutex", "spawn",
              "fib", "skynet"],
    "go": ["post", "channel", "one_producer", "four_producers", "ping_pong", "mutex", "spawn",
           "fib", "skynet"],
}
CASES = [f"{peer}.{what}" for what in ON_ONE_THREAD + ON_TWO for peer in HAS if what in HAS[peer]]
PHASES = ["timing"]
THREADS = 2
BATCH = 64


def main(arguments):
    options = parse(arguments)
    results = report.Results({"ns_per_item": "ns", "most_between": "items"})
    commands = build_cases(options.cases, results)
    rounds = alternate(commands, options.runs, lambda command: json.loads(suite.run_program(
        [*command, "--count", options.items, "--threads", THREADS])), results)
    for case in (case for case in commands if case.startswith("plumb.")):
        for peer in (peer for peer in peers_of(case) if peer in commands):
            add_ratio(results, rounds, case, peer, "ns_per_item")
    return suite.end("executors", options, results,
                     [("ns_per_item", "ns an item", "{:,.1f}"),
                      ("most_between", "items between", "{:,.0f}")],
                     check_targets(commands, results), write_docs)


def parse(arguments):
    parser = suite.parser("executors", __doc__, CASES, PHASES)
    parser.add_argument("--runs", type=int, help="runs of each case (7)")
    parser.add_argument("--items", type=int, help="items of a run (1000000)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (3 if options.quick else 7)
    options.items = options.items or (100_000 if options.quick else 1_000_000)
    return options


def build_cases(cases, results):
    commands = {}
    for peer in HAS:
        mine = [case for case in cases if case.startswith(f"{peer}.")]
        try:
            program = build_program(peer) if mine else None
        except build.BuildError as error:
            for case in mine:
                results.fail(case, error)
            continue
        commands |= {case: [program, "--what", case.split(".")[1]] for case in mine}
    return commands


def build_program(peer):
    if peer == "tokio":
        return build.build_rust(HERE / "tokio") / "executors"
    if peer == "go":
        return build.build_go(HERE / "go")
    native = build.NativePrograms()
    native.configure()
    native.build(f"bench_executors_{peer}")
    return native.path("executors", peer, "executors")


def peers_of(case):
    what = case.split(".")[1]
    return [f"{peer}.{what}" for peer in HAS if peer != "plumb" and what in HAS[peer]]


def check_targets(commands, results):
    """At or ahead of the best of the peers."""
    targets = []
    for case in (case for case in commands if case.startswith("plumb.")):
        ratios = {peer: results.get(case, f"ratio.ns_per_item.{peer}") for peer in peers_of(case)}
        ratios = {peer: ratio for peer, ratio in ratios.items() if ratio is not None}
        if ratios:
            best = max(ratios, key=ratios.get)
            targets.append(report.Target(case, f"ratio.ns_per_item.{best}", ratios[best], 1.0,
                                         "the best of the peers"))
    if "plumb.two_strands" in commands:
        targets.append(report.Target("plumb.two_strands", "most_between",
                                     results.get("plumb.two_strands", "most_between"), BATCH,
                                     "a strand gives way after so many"))
    return targets


def table_rows(cases, results):
    """One row for each thing that is done, and a column for each library."""
    for what in ON_ONE_THREAD + ON_TWO:
        values = [results.get(f"{peer}.{what}", "ns_per_item") for peer in HAS]
        if any(value is not None for value in values):
            yield [what] + ["" if value is None else f"{value:,.1f}" for value in values]
    between = [results.get(f"{peer}.two_strands", "most_between") for peer in HAS]
    if any(value is not None for value in between):
        yield ["items between"] + ["" if value is None else f"{value:,}" for value in between]


METHOD = """\
ns for each of {items:,} items, after a tenth of that; medians of {runs} alternating runs, and of the ratios
in each round. On one thread, then with two:

- `post`: an item that posts itself again. `dispatch`: from inside, where it is a call. `channel`: one
  sender and one receiver, 64 values in between. `two_strands`: one is flooded with all items, in the
  other one posts itself again meanwhile; `items between`: how many of the first run between two of the
  second at most.
- `one_producer`, `four_producers`: threads outside post to a pool of two. `strand`: one producer,
  through a strand on the pool. `ping_pong`: from one context to another, each with a thread of its own.
- `mutex`: eight coroutines lock it in turn. `spawn`: items that are spawned and joined. `fib`: each call
  of it forks, down to the leaves. `skynet`: a tree with ten branches at each node.

Where another is ahead: asio's `dispatch` calls a function whose type it knows, and is inlined; plumb's resumes a
coroutine, by an `executor_ref`. asio posts where others spawn, which costs it less. Go's scheduler may use more
threads than it runs at once, and its mutex may be taken again by who runs before those that wait; plumb's is
handed over in order, so that each contended lock is a post to the pool, which wakes the other thread if it
sleeps. tokio's runtime is for one thread, or has two workers. oneTBB's tasks are functions, without a
frame of their own; one that waits runs others on its own stack, so that joining suspends nothing.
"""


def write_docs(options, results, columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    panel = chart.Panel("ns an item", "less is better, logarithmic", "ns_per_item", "{:,.0f}", True)
    cases = [case for case in options.cases if case not in results.errors]
    (folder / "executors.svg").write_text(chart.draw(
        results, cases, [panel], {case for case in cases if case.startswith("plumb.")}))
    parts = [
        "# Executors",
        "What it costs to post, to wait for one another, and to join. Written by `bench/run executors "
        "--docs`; `make bench SUITE=executors` measures anew.",
        "![Cost of an item](executors.svg)",
        report.markdown_table(["ns an item", *HAS], list(table_rows(options.cases, results))),
        "## Targets",
        report.markdown_table(["case", "metric", "target", "measured", ""],
                              [target.cells() for target in targets], left=3),
        "## How it is measured",
        METHOD.format(runs=options.runs, items=options.items).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("asio", machine.boost_asio(build.boost())),
            ("oneTBB", machine.package("libtbb-dev")),
            ("tokio", machine.locked_crate(HERE / "tokio" / "Cargo.lock", "tokio")),
            ("Go", machine.output(build.find_go() or "go", "version")),
            ("C++", f"{machine.compiler('clang++-19')}, {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "executors.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'executors.md'} written")
