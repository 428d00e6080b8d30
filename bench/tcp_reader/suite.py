# SPDX-License-Identifier: Apache-2.0
"""The tcp_reader suite: one reader of a connection, as a state machine by hand and as a coroutine.

A program on another core sends; each reads in blocks of 4 and of 64 KiB, as they are written. Both
compilers; the names of what GCC built end with _gcc.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import build, chart, counters, machine, report, suite
from harness.rounds import add_ratio, alternate
from harness.server import LOAD_CORE, SERVER_CORE, MeasureError

HANDCRAFTED = ["handcrafted.original", "handcrafted.synchronous", "handcrafted.preallocated"]
COROUTINES = ["coroutine.original", "coroutine.synchronous"]
PROGRAMS = HANDCRAFTED + COROUTINES + ["future_then", "blocking", "asio_callback",
                                       "asio_coroutine", "raw_epoll"]
BLOCKS = {"4k": 4096, "64k": 65536}
CASES = [f"{program}.{block}" for program in PROGRAMS for block in BLOCKS]
PHASES = ["sizes", "allocations", "instructions", "calls", "timing"]
METRICS = {"mb_per_second": "MB/s", "text_bytes": "bytes", "stripped_bytes": "bytes",
           "allocations_per_read": "allocations", "user_instructions_per_read": "instructions",
           "syscalls_per_mb": "calls"}
COUNTED = [10_000_000, 60_000_000]  # bytes
TALK = [["original", "380", "495", "30", "25"], ["synchronous", "485", "1028", "30", "25"],
        ["preallocated", "690", "1028", "28", "25"]]


def main(arguments):
    options = parse(arguments)
    results = report.Results({metric + suffix: unit for metric, unit in METRICS.items()
                              for suffix in suite.SUFFIXES.values()})
    try:
        commands, native = build_all(options, results)
    except build.BuildError as error:
        print(f"tcp_reader: {error}", file=sys.stderr)
        return 1
    os.environ["PLUMB_MULTIPLEXER"] = "epoll"  # one for all, which the peers have too
    source = native.path("tcp_source")
    preload = native.path("count_allocations.so")
    steps = {
        "sizes": sizes,
        "allocations": lambda words: per_read(source, words, "allocations_per_read",
            lambda command, run: counters.program_allocations(command, preload, run=run)),
        "instructions": lambda words: per_read(source, words, "user_instructions_per_read",
            lambda command, run: counters.program_instructions(command, run=run)),
        "calls": lambda words: calls_per_mb(source, words),
    }
    for phase, step in steps.items():
        if phase in options.phases:
            alternate(commands, 1, suite.by_both(step), results)
    if "timing" in options.phases:
        rounds = alternate(commands, options.runs,
                           suite.by_both(lambda words: time_transfer(options, source, words)),
                           results)
        for case in commands:
            for peer in (peer for peer in peers_of(case) if peer in commands):
                for suffix in suite.SUFFIXES.values():
                    add_ratio(results, rounds, case, peer, "mb_per_second" + suffix)
    return suite.end("tcp_reader", options, results, columns_of(results, options.cases),
                     check_targets(options, results), write_docs)


def parse(arguments):
    parser = suite.parser("tcp_reader", __doc__, CASES, PHASES)
    parser.add_argument("--runs", type=int, help="timed runs of each case (7)")
    parser.add_argument("--bytes", type=int, help="bytes of a timed run (1000000000)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (3 if options.quick else 7)
    options.bytes = options.bytes or (200_000_000 if options.quick else 1_000_000_000)
    return options


def build_all(options, results):
    programs = list(dict.fromkeys(case.rpartition(".")[0] for case in options.cases))
    built, native = suite.build_by_both("tcp_reader", programs, ["tcp_source", "count_allocations"],
                                        results)
    commands = {}
    for case in options.cases:
        program, _, block = case.rpartition(".")
        if program in built:
            commands[case] = {suffix: [*words, "--block", BLOCKS[block]]
                              for suffix, words in built[program].items()}
    return commands, native


@contextlib.contextmanager
def sending(source, size, block):
    """A source of so many bytes; gives its port."""
    words = ["taskset", "-c", LOAD_CORE, source, "--bytes", size, "--block", block]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            said = process.stdout.readline().split()
            if len(said) != 2:
                raise MeasureError("the source doesn't listen")
            yield said[1]
        except BaseException:
            process.kill()
            raise


def transfer(source, words, size):
    """Runs the reader, in whatever it is wrapped. @return what it printed"""
    with sending(source, size, words[words.index("--block") + 1]) as port:
        return json.loads(suite.run_program(
            ["taskset", "-c", SERVER_CORE, *words, "--port", port, "--bytes", size]))


def time_transfer(options, source, words):
    return {"mb_per_second": transfer(source, words, options.bytes)["mb_per_second"]}


def per_read(source, words, metric, count):
    """From the difference of a longer and a shorter run."""
    def measure(size):
        told = {}
        number = count(words, lambda command: told.update(transfer(source, command, size)))
        return number, told["reads"]

    (few, short), (many, long) = (measure(size) for size in COUNTED)
    return {metric: (many - few) / (long - short)}


def calls_per_mb(source, words):
    few, many = (counters.program_calls(words, run=lambda command: transfer(source, command, size))
                 for size in COUNTED)
    return {"syscalls_per_mb": (many - few) / ((COUNTED[1] - COUNTED[0]) / 1e6)}


def sizes(words):
    program = words[words.index("--block") - 1]
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped"
        suite.run_program(["strip", "-o", stripped, program])
        text = suite.run_program(["size", stripped]).splitlines()[1].split()[0]
        return {"text_bytes": int(text), "stripped_bytes": stripped.stat().st_size}


def peers_of(case):
    program, _, block = case.rpartition(".")
    return [f"{peer}.{block}" for peer in ("handcrafted.preallocated", "blocking")
            if peer != program]


def check_targets(options, results):
    targets = []

    def check(case, metric, limit, why=None, measured=None):
        if measured is None:
            measured = results.get(case, metric)
        targets.append(report.Target(case, metric, measured, limit, why))

    for block in BLOCKS:
        case, best = f"coroutine.synchronous.{block}", f"handcrafted.preallocated.{block}"
        if case not in options.cases:
            continue
        if "instructions" in options.phases:
            check(case, "user_instructions_per_read",
                  results.get(best, "user_instructions_per_read"), "the best by hand")
        if "sizes" in options.phases:
            check(case, "stripped_bytes", results.get(best, "stripped_bytes"), "the best by hand")
            check(case, "text_bytes", results.get(best, "text_bytes"), "the best by hand")
        if "timing" in options.phases:
            # Targets are limits from above.
            for peer, least in ((best, 1.0), (f"blocking.{block}", 0.97)):
                metric = f"ratio.mb_per_second.{peer}"
                ratio = results.get(case, metric)
                check(case, f"1 / {metric}", 1 / least, f"at least {least}",
                      1 / ratio if ratio else None)
    return targets


def columns_of(results, cases):
    forms = {"mb_per_second": ("MB/s", "{:,.0f}"),
             "user_instructions_per_read": ("instr. a read", "{:,.0f}"),
             "allocations_per_read": ("allocations a read", "{:.2f}"),
             "syscalls_per_mb": ("calls a MB", "{:,.1f}"),
             "text_bytes": ("text", "{:,.0f}"), "stripped_bytes": ("stripped", "{:,.0f}")}
    return [(metric + suffix, f"{head}{', GCC' if suffix else ''}", form)
            for suffix in suite.SUFFIXES.values() for metric, (head, form) in forms.items()
            if any(results.get(case, metric + suffix) is not None for case in cases)]


METHOD = """\
A program on another core sends {bytes:,} bytes over loopback, in blocks of the size that is read. The
programs alternate, {runs} runs each; medians of the runs, and of the ratios in each round. Instructions are
the program's own, by callgrind; they, allocations and system calls are the difference between 60 and 10 MB.
Sizes are of the executable without symbols, with the library linked statically.

- `handcrafted`: a state machine on plumb's senders: `original`, each completion through the queue, and
  an allocation for each; `synchronous`, a loop while reads are over at once; `preallocated`, one
  operation used again and again.
- `coroutine`: `original`, each completion through the queue; `synchronous`, `co_await co_read`.
- `future_then`: futures with `then` and a `do_while`. `blocking`: plumb's `read`. `raw_epoll`: `recv(2)`
  and `epoll_wait(2)`. asio compiled for one thread. All on epoll.
"""


def write_docs(options, results, columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    panels = [chart.Panel("MB a second", "more is better", "mb_per_second", "{:,.0f}"),
              chart.Panel("instructions a read", "less is better", "user_instructions_per_read",
                          "{:,.0f}")]
    (folder / "tcp_reader.svg").write_text(chart.draw(
        results, options.cases, panels, {case for case in options.cases if "coroutine." in case}))
    rows = []
    for row, block in ((row, block) for row in TALK for block in BLOCKS):
        hand = f"handcrafted.{row[0]}.{block}"
        ours = "coroutine.original" if row[0] == "original" else "coroutine.synchronous"
        rows.append([f"{row[0]}, {block}", *row[1:]] + [
            "" if value is None else form.format(value / unit)
            for metric, form, unit in (("mb_per_second", "{:,.0f}", 1),
                                       ("stripped_bytes", "{:,.0f}", 1000))
            for value in (results.get(hand, metric), results.get(f"{ours}.{block}", metric))])
    parts = [
        "# TCP reader",
        "One reader of a connection, written by hand as a state machine and as a coroutine. Written by "
        "`bench/run tcp_reader --docs`; `make bench SUITE=tcp_reader` measures anew.",
        "![Speed](tcp_reader.svg)",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, options.cases, columns)),
        "## Beside the talk",
        "MB a second and KB of the executable, by hand and as a coroutine; the talk's are of 2015, on "
        "Windows.",
        report.markdown_table(["", "talk: by hand", "coroutine", "KB by hand", "KB coroutine",
                               "here: by hand", "coroutine", "KB by hand", "KB coroutine"], rows),
        "## Targets",
        report.markdown_table(["case", "metric", "target", "measured", ""],
                              [target.cells() for target in targets], left=3),
        "## How it is measured",
        METHOD.format(runs=options.runs, bytes=options.bytes).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("asio", machine.boost_asio(build.boost())),
            ("C++", f"{machine.compiler('clang++-19')}; {machine.compiler('g++')}; {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "tcp_reader.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'tcp_reader.md'} written")
