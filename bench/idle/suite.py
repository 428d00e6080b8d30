# SPDX-License-Identifier: Apache-2.0
"""The idle suite: what a turn of the multiplexer costs while much is pending and one is ready.

It should cost what is ready, however much is pending.
"""
import json
import resource
import sys

from harness import build, chart, counters, machine, report, suite
from harness.rounds import alternate

CASES = ["plumb.epoll", "plumb.io_uring"]
TURNS = ["complete_io", "run", "timeout_io"]
# What callgrind counts of each.
FUNCTIONS = {"complete_io": "plumb::io_multiplexer::complete(*",
             "run": "plumb::io_multiplexer::run_until(*",
             "timeout_io": "plumb::io_multiplexer::expire(*"}
PENDING = [1, 100, 10_000, 100_000]
PHASES = ["timing", "instructions"]
FLAT = 1.2
DESCRIPTORS = PENDING[-1] + 1_000


def main(arguments):
    options = parse(arguments)
    allow_descriptors()
    units = {f"ns.{turn}.{pending}": "ns" for turn in TURNS for pending in pending_of(turn)}
    units |= {f"instructions.{turn}.{pending}": "1" for turn in TURNS
              for pending in pending_of(turn)}
    results = report.Results(units)
    native = build.NativePrograms()
    try:
        native.configure()
        native.build("bench_idle_plumb_handle")
    except build.BuildError as error:
        print(f"idle: {error}", file=sys.stderr)
        return 1
    program = native.path("idle", "plumb_handle", "idle")
    commands = {case: [program, "--multiplexer", case.split(".")[1]] for case in options.cases}
    for turn in TURNS:
        if "timing" in options.phases:
            alternate(commands, options.runs, lambda command: time_turns(options, command, turn),
                      results)
        if "instructions" in options.phases:
            alternate(commands, 1, lambda command: count_turns(command, turn), results)
    targets = check_targets(options, commands, results)

    results.write(build.OUTPUT / "idle.json")
    for turn in TURNS:
        print(report.text_table(results, options.cases, columns(options, turn)) + "\n")
    print(report.targets_table(targets))
    suite.tell_errors("idle", results)
    if options.docs:
        write_docs(options, results, targets)
    return suite.exit_status(options, results, targets)


def parse(arguments):
    parser = suite.parser("idle", __doc__, CASES, PHASES)
    parser.add_argument("--runs", type=int, help="runs of each case (7)")
    parser.add_argument("--turns", type=int, help="turns of a run (50000)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (3 if options.quick else 7)
    options.turns = options.turns or (10_000 if options.quick else 50_000)
    return options


def allow_descriptors():
    """Here, because valgrind takes the limit as it is when it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < DESCRIPTORS:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, max(hard, DESCRIPTORS)))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pending_of(turn):
    """How many are pending: timers need no descriptor, reads one each, of as many as are allowed."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1_000
    return [min(pending, allowed) if turn != "timeout_io" else pending for pending in PENDING]


def time_turns(options, command, turn):
    """Every number pending in each round, so that the machine is the same for all."""
    return {f"ns.{turn}.{pending}": json.loads(suite.run_program(
        [*command, "--turn", turn, "--pending", pending, "--turns", options.turns]))["ns_per_turn"]
        for pending in pending_of(turn)}


def count_turns(command, turn):
    short, long = 100, 1_100

    def count(pending, turns):
        return counters.program_instructions(
            [*command, "--turn", turn, "--pending", pending, "--turns", turns],
            f"--toggle-collect={FUNCTIONS[turn]}")

    return {f"instructions.{turn}.{pending}":
            (count(pending, long) - count(pending, short)) / (long - short) for pending in pending_of(turn)}


def check_targets(options, commands, results):
    """The most of what is measured with more pending, of what it is with one."""
    targets = []
    for case in commands:
        for turn in TURNS:
            for what in (w for w in ("ns", "instructions")
                         if {"ns": "timing"}.get(w, w) in options.phases):
                values = [results.get(case, f"{what}.{turn}.{pending}")
                          for pending in pending_of(turn)]
                metric = f"growth.{what}.{turn}"
                results.add(case, metric, max(values) / values[0], "ratio")
                targets.append(report.Target(case, metric, results.get(case, metric), FLAT))
    return targets


def columns(options, turn):
    return [(f"{what}.{turn}.{pending}", f"{turn}, {pending:,}: {unit}", "{:,.0f}")
            for what, unit, phase in (("ns", "ns", "timing"),
                                      ("instructions", "instructions", "instructions"))
            if phase in options.phases for pending in pending_of(turn)]


METHOD = """\
So many operations are pending, and one more becomes ready in each turn: reads of a silent pipe, each
through a handle of its own, as many as there may be open files and at most 100,000; for
`timeout_io`, timers of an hour and more, which need no descriptor. Timed is the one call, with a reading of the
clock: the median of {turns:,} turns, and of {runs} runs. Instructions are those of the program inside of
the call, without the kernel's: by callgrind, from the difference between 1,100 and 100 turns.
"""


def write_docs(options, results, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    panels = [chart.Panel(f"{turn}, {pending:,} pending", "ns a turn", f"ns.{turn}.{pending}",
                          "{:,.0f}") for turn in ("complete_io",)
              for pending in (pending_of(turn)[0], pending_of(turn)[-1])]
    (folder / "idle.svg").write_text(chart.draw(results, options.cases, panels, set(CASES)))
    parts = [
        "# Idle",
        "What a turn of the multiplexer costs while much is pending and one operation is ready. "
        "Written by `bench/run idle --docs`; `make bench SUITE=idle` measures anew.",
        "![Cost of a turn](idle.svg)",
    ]
    for turn in TURNS:
        rows = [[f"{pending:,}"] + [
            form.format(value) if (value := results.get(case, f"{what}.{turn}.{pending}")) is not None
            else "" for case in options.cases for what, form in (("ns", "{:,.0f}"),
                                                                 ("instructions", "{:,.0f}"))]
            for pending in pending_of(turn)]
        heads = ["pending"] + [f"{case}, {what}" for case in options.cases
                               for what in ("ns", "instructions")]
        parts += [f"## {turn}", report.markdown_table(heads, rows)]
    parts += [
        "## Targets",
        report.markdown_table(["case", "metric", "target", "measured", ""],
                              [target.cells() for target in targets], left=3),
        "## How it is measured",
        METHOD.format(runs=options.runs, turns=options.turns).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("C++", f"{machine.compiler('clang++-19')}, {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "idle.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'idle.md'} written")
