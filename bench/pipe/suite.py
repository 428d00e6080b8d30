# SPDX-License-Identifier: Apache-2.0
"""The pipe suite: what one read costs, of a byte that is there.

A thread on another core keeps the pipes full; each read takes one byte, and its end starts the next.
"""
import json
import sys

from harness import build, chart, machine, report, suite
from harness.rounds import add_ratio, alternate

PLUMB = ["plumb.blocking", "plumb.sender.epoll", "plumb.sender.io_uring", "plumb.coroutine.epoll",
         "plumb.coroutine.io_uring"]
PEERS = ["raw_read", "asio_callback", "asio_callback_nothreads", "asio_coroutine", "asio_io_uring"]
PREDICTABLE = ["raw_read", "plumb.blocking", "plumb.sender.epoll", "plumb.sender.io_uring"]
PIPES = [1, 8, 64]
PHASES = ["timing", "predictability"]
PERCENTILES = ["p50_ns", "p99_ns", "p9999_ns", "p999999_ns", "worst_ns"]
LIMITS = {"plumb.blocking": 1.05, "plumb.sender.epoll": 1.05, "plumb.sender.io_uring": 1.05,
          "plumb.coroutine.epoll": 1.08, "plumb.coroutine.io_uring": 1.08}


def main(arguments):
    options = parse(arguments)
    units = {"ns_per_read": "ns"}
    units.update({f"{each}.{pipes}": "ns" for each in PERCENTILES for pipes in PIPES})
    results = report.Results(units)
    native = build.NativePrograms()
    try:
        native.configure()
    except build.BuildError as error:
        print(f"pipe: {error}", file=sys.stderr)
        return 1
    commands = {}
    for case in options.cases:
        try:
            commands[case] = suite.build_case("pipe", case, native)
        except build.BuildError as error:
            results.fail(case, error)
    if "timing" in options.phases:
        time_reads(options, commands, results)
    if "predictability" in options.phases:
        time_single_reads(options, commands, results)
    targets = check_targets(options, results)

    results.write(build.OUTPUT / "pipe.json")
    columns = [("ns_per_read", "ns a read", "{:.1f}"),
               ("ratio.ns_per_read.raw_read", "of raw read", "{:.3f}")]
    print(report.text_table(results, options.cases, columns))
    single = single_columns(options, results)
    if single:
        print()
        print(report.text_table(results, PREDICTABLE, single))
    if targets:
        print()
        print(report.targets_table(targets))
    suite.tell_errors("pipe", results)
    if options.docs:
        write_docs(options, results, columns, single, targets)
    return suite.exit_status(options, results, targets)


def parse(arguments):
    parser = suite.parser("pipe", __doc__, PEERS + PLUMB, PHASES)
    parser.add_argument("--runs", type=int, help="runs of each case (11)")
    parser.add_argument("--reads", type=int, help="reads of a run (2000000)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (3 if options.quick else 11)
    options.reads = options.reads or (300_000 if options.quick else 2_000_000)
    return options


def run_program(command, *arguments):
    return json.loads(suite.run_program([*command, *arguments], timeout=120))


def time_reads(options, commands, results):
    rounds = alternate(commands, options.runs,
                       lambda command: run_program(command, "--reads", options.reads), results)
    for case in commands:
        for peer in (peer for peer in commands if peer in PEERS and peer != case):
            add_ratio(results, rounds, case, peer, "ns_per_read")


def time_single_reads(options, commands, results):
    """Each read by itself, beside the raw loop in the same rounds."""
    commands = {case: commands[case] for case in PREDICTABLE if case in commands}
    for pipes in PIPES:
        def run(command, pipes=pipes):
            told = run_program(command, "--reads", options.reads, "--pipes", pipes, "--percentiles")
            return {f"{each}.{pipes}": told[each] for each in PERCENTILES}

        rounds = alternate(commands, options.runs, run, results)
        for case in commands:
            if case != "raw_read" and "raw_read" in commands:
                for each in PERCENTILES[:3]:
                    add_ratio(results, rounds, case, "raw_read", f"{each}.{pipes}")


def single_columns(options, results):
    return [(f"{each}.{pipes}", f"{each.removesuffix('_ns')}, {pipes}", "{:,.0f}")
            for pipes in PIPES for each in PERCENTILES
            if results.get("raw_read", f"{each}.{pipes}") is not None]


def check_targets(options, results):
    targets = []
    if "raw_read" not in options.cases:
        return targets
    for case in (case for case in options.cases if case in PLUMB):
        if "timing" in options.phases:
            metric = "ratio.ns_per_read.raw_read"
            targets.append(report.Target(case, metric, results.get(case, metric), LIMITS[case]))
        if "predictability" in options.phases and case in PREDICTABLE:
            for metric in (f"ratio.{each}.{pipes}.raw_read" for pipes in PIPES
                           for each in PERCENTILES[:3]):
                targets.append(report.Target(case, metric, results.get(case, metric), 1.10))
    return targets


METHOD = """\
A thread on another core keeps the pipes full, so that each read of one byte finds it. The programs
alternate, {runs} runs of {reads:,} reads each, the first tenth of which warms up; medians of the runs,
and of the ratios to the raw loop in the same round. Single reads are timed with two readings of the
clock each, which the raw loop pays for too; 1, 8 and 64 pipes are read in turn.

- `raw_read`: `read(2)` in a loop. `plumb.blocking`: `pipe_handle::read`. `plumb.sender`: one
  connection a pipe, started, polled and reset. `plumb.coroutine`: `co_read` in a loop.
- `asio_callback`: a callback that starts the next read; `_nothreads` with
  `BOOST_ASIO_DISABLE_THREADS`, as are the coroutines and the program on io_uring.
"""


def write_docs(options, results, columns, single, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    cases = [case for case in options.cases if case not in results.errors]
    panel = chart.Panel("ns a read", "less is better", "ns_per_read", "{:.0f}")
    (folder / "pipe.svg").write_text(chart.draw(results, cases, [panel], set(PLUMB)))
    parts = [
        "# Pipe",
        "Reading one byte after another from a pipe that is kept full: what a library adds to the "
        "system call. Written by `bench/run pipe --docs`; `make bench SUITE=pipe` measures anew.",
        "![Cost of a read](pipe.svg)",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, cases, columns)),
    ]
    if single:
        parts += ["## Single reads", "In ns, for 1, 8 and 64 pipes.",
                  report.markdown_table(["case"] + [head for _, head, _ in single],
                                        report.case_rows(results, PREDICTABLE, single))]
    if targets:
        rows = [target.cells() for target in targets]
        parts += ["## Targets", report.markdown_table(["case", "metric", "target", "measured", ""],
                                                      rows, left=3)]
    parts += [
        "## How it is measured",
        METHOD.format(runs=options.runs, reads=options.reads).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("asio", machine.boost_asio(build.boost())),
            ("C and C++", f"{machine.compiler('clang++-19')}, {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "pipe.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'pipe.md'} written")


