# SPDX-License-Identifier: Apache-2.0
"""The file suite: 4 KiB reads at random places of a file, in memory and from the device, and a copy.

One read at a time, and 32 in flight.
"""
import filecmp
import json
import os
import sys
import tempfile
import time
import pathlib

from harness import build, chart, machine, report, suite
from harness.rounds import add_ratio, alternate
from harness.server import MeasureError

PLUMB = ["plumb.blocking", "plumb.sender.epoll", "plumb.sender.io_uring"]
PEERS = ["raw_pread", "raw_io_uring", "fio"]
COPIES = ["cp", *PLUMB]
# Blocking programs have one read in flight.
MODES = {
    "cached.1": (1, False),
    "cached.32": (32, False),
    "direct.1": (1, True),
    "direct.32": (32, True),
}
ONE_AT_A_TIME = {"plumb.blocking", "raw_pread"}
PHASES = [*MODES, "copy"]
# Of the throughput of the best peer.
TARGET = 0.97


def main(arguments):
    options = parse(arguments)
    units = {f"ns_per_read.{mode}": "ns" for mode in MODES} | {"copy_ms": "ms"}
    results = report.Results(units)
    native = build.NativePrograms()
    try:
        native.configure()
    except build.BuildError as error:
        print(f"file: {error}", file=sys.stderr)
        return 1
    commands = {}
    for case in options.cases:
        try:
            commands[case] = build_case(case, native)
        except build.BuildError as error:
            results.fail(case, error)
    with tempfile.TemporaryDirectory(dir=build.OUTPUT) as folder:
        path = pathlib.Path(folder) / "data"
        make_data(path, options.megabytes)
        targets = []
        for mode in (mode for mode in MODES if mode in options.phases):
            targets += read_at_random(mode, path, options, commands, results)
        if "copy" in options.phases:
            targets += copy(path, options, commands, results)

    results.write(build.OUTPUT / "file.json")
    columns = read_columns(options)
    print(report.text_table(results, options.cases, columns))
    copies = [case for case in COPIES if results.get(case, "copy_ms") is not None]
    copy_columns = [("copy_ms", "ms a copy", "{:,.1f}"), ("ratio.copy_ms.cp", "of cp", "{:.3f}")]
    if copies:
        print()
        print(report.text_table(results, copies, copy_columns))
    if targets:
        print()
        print(report.targets_table(targets))
    suite.tell_errors("file", results)
    if options.docs:
        write_docs(options, results, columns, copies, copy_columns, targets)
    return suite.exit_status(options, results, targets)


def parse(arguments):
    parser = suite.parser("file", __doc__, PEERS + PLUMB, PHASES)
    parser.add_argument("--runs", type=int, help="runs of each case (11)")
    parser.add_argument("--reads", type=int, help="reads from memory of a run (1000000)")
    parser.add_argument("--direct-reads", type=int, help="reads from the device of a run (20000)")
    parser.add_argument("--megabytes", type=int, help="size of the file, in MiB (512)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (3 if options.quick else 11)
    options.reads = options.reads or (200_000 if options.quick else 1_000_000)
    options.direct_reads = options.direct_reads or (4_000 if options.quick else 20_000)
    options.megabytes = options.megabytes or (256 if options.quick else 512)
    return options


def build_case(case, native):
    if case == "fio":
        if not machine.output("fio", "--version"):
            raise build.BuildError("fio is not installed")
        return ["fio"]
    return suite.build_case("file", case, native)


def make_data(path, megabytes):
    build.progress(f"writing {megabytes} MiB")
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())


def run_fio(path, reads, in_flight, direct):
    """Its own engine for each: one after another by pread, several through a ring."""
    engine = "psync" if in_flight == 1 else "io_uring"
    told = json.loads(suite.run_program([
        "fio", "--name=reads", "--rw=randread", "--bs=4k", f"--filename={path}", "--thread",
        f"--ioengine={engine}", f"--iodepth={in_flight}", f"--direct={int(direct)}",
        f"--number_ios={reads}", f"--io_size={reads * 4096}", "--norandommap", "--invalidate=0",
        "--random_generator=tausworthe64", "--gtod_reduce=1", "--output-format=json"]))
    return 1e9 / told["jobs"][0]["read"]["iops"]


def read_at_random(mode, path, options, commands, results):
    in_flight, direct = MODES[mode]
    reads = options.direct_reads if direct else options.reads
    metric = f"ns_per_read.{mode}"
    commands = {case: command for case, command in commands.items()
                if in_flight == 1 or case not in ONE_AT_A_TIME}

    def run(command):
        if command == ["fio"]:
            return {metric: run_fio(path, reads, in_flight, direct)}
        told = suite.run_program([*command, "--path", path, "--reads", reads, "--in-flight", in_flight,
                            *(["--direct"] if direct else [])])
        return {metric: json.loads(told)["ns_per_read"]}

    rounds = alternate(commands, options.runs, run, results)
    peers = [case for case in commands if case in PEERS and results.get(case, metric) is not None]
    if not peers:
        return []
    best = min(peers, key=lambda case: results.get(case, metric))
    targets = []
    for case in (case for case in commands if case in PLUMB):
        for peer in peers:
            add_ratio(results, rounds, case, peer, metric)
        ratio = f"ratio.{metric}.{best}"
        targets.append(report.Target(case, ratio, results.get(case, ratio), 1 / TARGET))
    return targets


def copy(path, options, commands, results):
    """To a file that isn't there; each copy is compared with the original."""
    to = path.with_name("copy")
    commands = {"cp": ["cp"], **{case: commands[case] for case in COPIES if case in commands}}

    def run(command):
        to.unlink(missing_ok=True)
        os.sync()  # so that no copy waits for what another one has left to be stored
        began = time.perf_counter_ns()
        if command == ["cp"]:
            suite.run_program(["cp", path, to])
        else:
            suite.run_program([*command, "--path", path, "--copy", to])
        took = time.perf_counter_ns() - began
        if not filecmp.cmp(path, to, shallow=False):
            raise MeasureError("the copy is not like the original")
        return {"copy_ms": took / 1e6}

    rounds = alternate(commands, options.runs, run, results)
    targets = []
    for case in (case for case in commands if case != "cp"):
        add_ratio(results, rounds, case, "cp", "copy_ms")
        ratio = results.get(case, "ratio.copy_ms.cp")
        targets.append(report.Target(case, "ratio.copy_ms.cp", ratio, 1 / TARGET))
    return targets


def read_columns(options):
    return [(f"ns_per_read.{mode}", f"{mode.split('.')[0]}, {mode.split('.')[1]} in flight",
             "{:,.0f}") for mode in MODES if mode in options.phases]


METHOD = """\
A file of {megabytes} MiB of random bytes is read 4 KiB at a time, at random places, the same in every
program but fio: from the system's memory, {reads:,} reads a run, and from the device past it
(`O_DIRECT`), {direct:,}. The programs alternate, {runs} runs each, the first tenth of which warms
up; medians of the runs, and of the ratios to the best peer in the same round. A target is 0.97 of
the best peer's throughput, so 1.031 of its time. Copies are of the same file, to one that isn't
there, with everything else stored before; the start of the process counts, and each copy is
compared with the original.

- `raw_pread`: `pread(2)` in a loop. `raw_io_uring`: liburing in C, single issuer, one call that submits
  and waits. `fio`: one in flight by `psync`, 32 by `io_uring`.
- `plumb.blocking`: `file_handle::read`, and `clone_extents` for the copy. `plumb.sender`: one connection
  for each read in flight; one is started and polled, of several each one's end starts the next. The
  copy reads and writes two chunks of 1 MiB at a time.
"""


def write_docs(options, results, columns, copies, copy_columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    cases = [case for case in options.cases if case not in results.errors]
    panels = [chart.Panel(head, "ns a read, less is better", metric, "{:,.0f}")
              for metric, head, _ in columns]
    (folder / "file.svg").write_text(chart.draw(results, cases, panels, set(PLUMB)))
    parts = [
        "# File",
        "Reading 4 KiB at random places of a file, in ns a read, and copying one. Written by "
        "`bench/run file --docs`; `make bench SUITE=file` measures anew.",
        "![Cost of a read](file.svg)",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, cases, columns)),
    ]
    if copies:
        parts += ["## Copy", report.markdown_table(["case"] + [head for _, head, _ in copy_columns],
                                                   report.case_rows(results, copies, copy_columns))]
    if targets:
        parts += ["## Targets", report.markdown_table(["case", "metric", "target", "measured", ""],
                                                      [target.cells() for target in targets], left=3)]
    parts += [
        "## How it is measured",
        METHOD.format(runs=options.runs, reads=options.reads, direct=options.direct_reads,
                      megabytes=options.megabytes).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("liburing", machine.package("liburing-dev")),
            ("fio", machine.package("fio")),
            ("cp", machine.package("coreutils")),
            ("C and C++", f"{machine.compiler('clang++-19')}, {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "file.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'file.md'} written")
