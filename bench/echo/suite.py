# SPDX-License-Identifier: Apache-2.0
"""The echo suite: one program on plumb's levels and on every peer, and what each request costs.

Each case runs alone on one core, the load generator on another. The runs alternate between the
cases, so that what the machine does meanwhile meets all of them; ratios pair runs of one round.
"""
import pathlib
import statistics
import sys
import time

from harness import build, chart, machine, report, suite
from harness.counters import Counters
from harness.rounds import add_ratio, alternate, attempt
from harness.server import Load, MeasureError, Server, descriptor_limit

HERE = pathlib.Path(__file__).resolve().parent
MESSAGE_BYTES = 106
COMPARABLE_IDLE = 0.15  # below this, the load generator limits the requests a second
QUIET_DELAY = 0.03  # above this, other work disturbed the timings

PLUMB = ["plumb.handle.epoll", "plumb.handle.io_uring", "plumb.stream.epoll",
         "plumb.stream.io_uring"]
PEERS = ["raw_epoll", "raw_io_uring", "libuv", "libevent", "asio_callback", "asio_coroutine",
         "tokio", "python_asyncio", "uvloop"]
PHASES = ["instructions", "calls", "allocations", "memory", "timing", "gcc"]

UNITS = {
    "requests_per_second": "1/s",
    "server_cpu_us_per_request": "us",
    "server_cpu_spread": "fraction",
    "user_instructions_per_request": "instructions",
    "user_instructions_per_request_gcc": "instructions",
    "syscalls_per_request": "calls",
    "traced_turns_per_request": "turns",
    "turns_per_request": "turns",
    "allocations_per_request": "allocations",
    "p50_us": "us",
    "p99_us": "us",
    "p999_us": "us",
    "rss_bytes_per_connection": "bytes",
    "load_idle_fraction": "fraction",
    "delay_fraction": "fraction",
}

COLUMNS = [
    ("requests_per_second", "requests/s", "{:,.0f}"),
    ("server_cpu_us_per_request", "CPU µs", "{:.2f}"),
    ("user_instructions_per_request", "user instr.", "{:,.0f}"),
    ("syscalls_per_request", "syscalls", "{:.3f}"),
    ("traced_turns_per_request", "turns, traced", "{:.3f}"),
    ("turns_per_request", "turns", "{:.3f}"),
    ("allocations_per_request", "heap allocs", "{:.2f}"),
    ("p50_us", "p50 µs", "{:,.0f}"),
    ("p99_us", "p99 µs", "{:,.0f}"),
    ("p999_us", "p99.9 µs", "{:,.0f}"),
    ("rss_bytes_per_connection", "B/connection", "{:,.0f}"),
    ("load_idle_fraction", "load idle", "{:.0%}"),
    ("delay_fraction", "delayed", "{:.0%}"),
]


def main(arguments):
    options = parse(arguments)
    started = time.monotonic()
    results = report.Results(UNITS)
    native = build.NativePrograms()
    try:
        native.configure()
        native.build("echo_load")
        native.build("count_allocations")
    except build.BuildError as error:
        print(f"echo: {error}", file=sys.stderr)
        return 1
    commands = build_cases(options.cases, native, results)
    measure(options, commands, native, results)
    targets = check_targets(options, results)

    disturbed = [case for case in options.cases
                 if (results.get(case, "delay_fraction") or 0) > QUIET_DELAY]
    output = build.OUTPUT / "echo.json"
    results.write(output)
    columns = [column for column in COLUMNS
               if any(results.get(case, column[0]) is not None for case in options.cases)]
    print(report.text_table(results, options.cases, columns))
    if targets:
        print()
        print(report.targets_table(targets))
    if disturbed:
        print(f"echo: other work on these cores disturbed the timings of {', '.join(disturbed)}",
              file=sys.stderr)
    suite.tell_errors("echo", results)
    build.progress(f"{output} written after {time.monotonic() - started:.0f} s")
    if options.docs:
        write_docs(options, results, columns, targets)
    return suite.exit_status(options, results, targets)


def parse(arguments):
    parser = suite.parser("echo", __doc__, PLUMB + PEERS, PHASES)
    parser.add_argument("--runs", type=int, help="timed runs of each case (7)")
    parser.add_argument("--seconds", type=float, help="length of a timed run (1.5)")
    parser.add_argument("--connections", type=int, default=100, help="connections (100)")
    parser.add_argument("--idle-connections", type=int, help="for the memory (10000)")
    options = suite.parse(parser, arguments, skipped_when_quick=["gcc"])
    quick = options.quick
    options.runs = options.runs or (3 if quick else 7)
    options.seconds = options.seconds or (0.5 if quick else 1.5)
    options.counted = (2000, 7000) if quick else (4000, 24000)
    wanted = options.idle_connections or (2000 if quick else 10000)
    options.idle_connections = min(wanted, descriptor_limit() - 64)
    return options


def build_cases(cases, native, results):
    """The command of each case that could be built."""
    commands = {}
    for case in cases:
        try:
            commands[case] = build_case(case, native)
        except build.BuildError as error:
            results.fail(case, error)
    return commands


def build_case(case, native):
    if case == "tokio":
        return [build.build_rust(HERE / "tokio") / "echo"]
    if case in ("python_asyncio", "uvloop"):
        interpreter = build.python_with(HERE / "uvloop" / "requirements.txt")
        return [interpreter, "-I", HERE / case / "echo.py"]
    name, _, multiplexer = case.rpartition(".") if case in PLUMB else (case, "", "")
    name = name.replace(".", "_")
    native.build(f"bench_echo_{name}")
    command = [native.path("echo", name, "echo")]
    return command + (["--multiplexer", multiplexer] if multiplexer else [])


def measure(options, commands, native, results):
    load = Load(native.path("echo_load"))
    counters = Counters(load, options.connections, *options.counted)
    preload = native.path("count_allocations.so")

    def instructions(case, command):
        results.add(case, "user_instructions_per_request", counters.user_instructions(command))

    def calls(case, command):
        counted = counters.system_calls(command)
        results.add(case, "syscalls_per_request", counted["calls"])
        results.add(case, "traced_turns_per_request", counted["turns"])

    def allocations(case, command):
        # What a run takes once varies with the most that one of its turns held.
        results.add(case, "allocations_per_request", statistics.median(
            counters.allocations(command, preload) for _ in range(5)))

    def memory(case, command):
        with Server(command) as server:
            before = server.resident_bytes()
            connections = options.idle_connections
            after = load.resident_bytes_with_idle(server, connections)
            results.add(case, "rss_bytes_per_connection", (after - before) / connections)
            server.stop()

    for phase in (instructions, calls, allocations, memory):
        if phase.__name__ in options.phases:
            for case in list(commands):
                build.progress(f"{phase.__name__}: {case}")
                attempt(phase, case, commands, results)
    if "timing" in options.phases:
        time_rounds(options, commands, load, results)
    if "gcc" in options.phases and set(commands) & set(PLUMB):
        count_with_gcc(commands, counters, results)


def time_rounds(options, commands, load, results, run=None):
    run = run or time_once
    rounds = alternate(commands, options.runs, lambda command: run(options, command, load), results)
    for case in commands:
        cpu = [each[case]["server_cpu_us_per_request"] for each in rounds]
        results.add(case, "server_cpu_spread", (max(cpu) - min(cpu)) / statistics.median(cpu))
    for case in (case for case in commands if case in PLUMB):
        for peer in (peer for peer in commands if peer in PEERS):
            add_ratio(results, rounds, case, peer, "server_cpu", "server_cpu_us_per_request")
            if all(results.get(each, "load_idle_fraction") >= COMPARABLE_IDLE
                   and results.get(each, "delay_fraction") <= QUIET_DELAY for each in (case, peer)):
                add_ratio(results, rounds, case, peer, "requests_per_second")


def time_once(options, command, load):
    with Server(command) as server:
        measured = load.run(server, "--connections", options.connections,
                            "--seconds", options.seconds, "--warmup-seconds", 0.3,
                            "--message-bytes", MESSAGE_BYTES, "--watch-pid", server.pid)
        told = server.stop()
    sample = {
        "requests_per_second": measured["requests_per_second"],
        "server_cpu_us_per_request": measured["watched_cpu_us_per_request"],
        "p50_us": measured["p50_us"],
        "p99_us": measured["p99_us"],
        "p999_us": measured["p999_us"],
        "load_idle_fraction": measured["idle_fraction"],
        "delay_fraction": max(measured["delay_fraction"], measured["watched_delay_fraction"]),
    }
    if told.get("turns"):
        sample["turns_per_request"] = told["turns"] / told["requests"]
    return sample


def count_with_gcc(commands, counters, results):
    native = build.NativePrograms("gcc")
    try:
        native.configure()
    except build.BuildError as error:
        results.fail("gcc", error)
        return
    for case in [case for case in commands if case in PLUMB]:
        build.progress(f"instructions with {native.cxx}: {case}")
        try:
            count = counters.user_instructions(build_case(case, native))
            results.add(case, "user_instructions_per_request_gcc", count)
        except (build.BuildError, MeasureError) as error:
            results.fail(f"{case} with {native.cxx}", error)


def check_targets(options, results):
    """What plumb's echo servers are to cost; only what was to be measured."""
    targets = []

    def at_most(phase, case, metric, limit, why=None):
        peer = metric.rpartition(".")[2] if metric.startswith("ratio.") else case
        if phase in options.phases and {case, peer} <= set(options.cases):
            targets.append(report.Target(case, metric, results.get(case, metric), limit, why))

    def limit_from(case, metric, factor, offset):
        value = results.get(case, metric)
        return None if value is None else value * factor + offset

    for case, instructions in (("plumb.handle.epoll", 300), ("plumb.stream.epoll", 600),
                               ("plumb.stream.io_uring", 600)):
        at_most("instructions", case, "user_instructions_per_request", instructions)
        at_most("gcc", case, "user_instructions_per_request_gcc", instructions * 1.3,
                "1.3 × Clang's limit")
    for case in PLUMB:
        level, backend = case.split(".")[1:]
        turns = "traced_turns_per_request"
        if backend == "epoll":
            at_most("calls", case, "syscalls_per_request", limit_from(case, turns, 1, 2.01),
                    "2 and the turns, + 1 %")
        else:
            at_most("calls", case, "syscalls_per_request", limit_from(case, turns, 1, 0.02),
                    "the turns, + 2 % of the requests")
            if "raw_io_uring" in options.cases:
                at_most("calls", case, "syscalls_per_request",
                        limit_from("raw_io_uring", "syscalls_per_request", 1.25, 0.02),
                        "near raw C's: 1.25 × and 0.02")
        at_most("timing", case, f"ratio.server_cpu.raw_{backend}", 1.03 if level == "handle" else 1.10)
        for peer in ("asio_callback", "asio_coroutine", "libuv", "libevent"):
            at_most("timing", case, f"ratio.server_cpu.{peer}", 1)
        at_most("allocations", case, "allocations_per_request", 0)
        if level == "stream":
            at_most("memory", case, "rss_bytes_per_connection", 2048)
    return targets


METHOD = """\
Each server runs alone, pinned to one core, and the load generator to another. {connections}
connections each send a message of {message_bytes} bytes, wait for all of its echo, compare it, and send the
next. No request failed, or the case would be missing. The servers bind to the loopback address, set
TCP_NODELAY and listen with a backlog of 4096; plumb's have cancellation enabled and no deadline.

- **Timed** (requests/s, CPU µs, turns, percentiles, load idle): medians of {runs} runs of
  {seconds:g} s after 0.3 s of warming up. The runs alternate between the servers, each round in
  another order. CPU µs is the server's processor time in user and system mode, by the kernel's
  nanosecond clock of the process, divided by the requests of the same interval. Ratios between two
  servers pair the runs of one round and are the median of these. In a closed loop that keeps both
  cores busy, latency is the time that {connections} requests take.
- **Load idle** is the share of its core that the load generator left unused. Where it is below
  {idle:.0%}, requests/s measure the generator as much as the server and are not to be compared.
- **Delayed** is the share of the time that the server or the load generator, whichever had more of
  it, was ready to run while something else had its core. More than a few percent: other work
  disturbed the timings.
- **User instructions** (callgrind), **syscalls** and traced turns (strace) and **heap allocs**
  (calls to malloc and its like, `operator new` included) are counted in a run of {short:,} requests and
  one of {long:,}; the difference is divided by that of the requests, so that start and end drop out;
  of the allocations, the median of five such differences.
  A traced server is slow, so more requests meet in one turn of its loop than in a timed run.
- **Turns** are the returns of the loop's wait, for each request, as the server itself counts them.
  Traced turns are counted by the server too, or else are the system calls that wait.
- **B/connection** is the growth of the resident memory when {idle_connections:,} connections are open and
  idle after one request each, without what the kernel holds for them.
"""

PEER_NOTES = """\
- `raw_epoll`: edge-triggered, registered once, one read and one write a message, one read buffer
  for all. `raw_io_uring`: multishot accept and receive, a ring of provided buffers, direct
  descriptors, one system call a turn, single issuer with deferred task work; a send reports only
  failure.
- `libuv`: `uv_try_write`, one read buffer for all, a queued write only for what did not fit.
  `libevent`: a bufferevent without locks whose input buffer is written straight to the socket.
- `asio_callback` and `asio_coroutine`: `BOOST_ASIO_DISABLE_THREADS`, concurrency hint 1, the
  context's own executor type, `async_write_some`; errors as values in the coroutines.
- `tokio`: the local runtime of one thread; release with fat LTO, one codegen unit, panic=abort.
- `python_asyncio`: a `BufferedProtocol` with one read buffer for all. `uvloop`: a `Protocol`, which
  is faster there.
"""


def write_docs(options, results, columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in options.cases if case not in results.errors]
    panels = [
        chart.Panel("server CPU, µs a request", "less is better", "server_cpu_us_per_request",
                    "{:.2f}"),
        chart.Panel("user instructions a request", "logarithmic; less is better",
                    "user_instructions_per_request", "{:,.0f}", logarithmic=True),
        chart.Panel("requests a second", "more is better; the generator limits it",
                    "requests_per_second", "{:,.0f}"),
    ]
    (folder / "echo.svg").write_text(chart.draw(results, cases, panels, set(PLUMB)))
    heads = ["case"] + [head for _, head, _ in columns]
    ratio_columns = [(f"ratio.server_cpu.{peer}", peer, "{:.2f}")
                     for peer in PEERS if peer in cases]
    ratios = list(report.case_rows(results, [case for case in cases if case in PLUMB],
                                   ratio_columns))
    method = METHOD.format(
        connections=options.connections, message_bytes=MESSAGE_BYTES, runs=options.runs,
        seconds=options.seconds, idle=COMPARABLE_IDLE, short=options.counted[0],
        long=options.counted[1], idle_connections=options.idle_connections)
    parts = [
        "# Echo",
        "A TCP echo server, written once for each library under the same file name in `bench/echo`. "
        "Written by `bench/run echo --docs`; `make bench SUITE=echo` measures anew.",
        "![Cost of a request in each server](echo.svg)",
        report.markdown_table(heads, report.case_rows(results, cases, columns)),
    ]
    if ratios:
        parts += ["## Server CPU of plumb beside each peer",
                  "Below 1, plumb needs less.",
                  report.markdown_table(["case"] + [peer for _, peer, _ in ratio_columns], ratios)]
    if targets:
        rows = [target.cells() for target in targets]
        parts += ["## Targets", report.markdown_table(["case", "metric", "target", "measured", ""],
                                                      rows, left=3)]
    parts += [
        "## How it is measured", method.rstrip(),
        "## What the peers are", PEER_NOTES.rstrip(),
        report.markdown_table(["", ""], machine.describe() + peer_versions(), left=2),
    ]
    (folder / "echo.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'echo.md'} written")


def peer_versions():
    """Name, version and source of what each case runs on."""
    lock = HERE / "tokio" / "Cargo.lock"
    cargo = build.find_cargo()
    rustc = machine.output(str(pathlib.Path(cargo).parent / "rustc"), "--version") if cargo else ""
    interpreter = build.OUTPUT / "python" / "bin" / "python"
    python = machine.output(str(interpreter), "--version")
    python = f"{python}, {machine.package('python3.12', 'python3.11')}"
    uvloop = (HERE / "uvloop" / "requirements.txt").read_text().strip().replace("==", " ")
    return [
        ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
        ("raw_epoll", "in C, " + machine.package("libc6")),
        ("raw_io_uring", "in C, " + machine.package("liburing-dev")),
        ("libuv", machine.package("libuv1-dev")),
        ("libevent", machine.package("libevent-dev")),
        ("asio", machine.boost_asio(build.boost())),
        ("tokio", f"crates.io's {machine.locked_crate(lock, 'tokio')}, {rustc}"),
        ("python_asyncio", python),
        ("uvloop", f"PyPI's {uvloop}, the same Python"),
        ("C and C++", f"{machine.compiler('clang++-19')}, {build.FLAGS}"),
        ("GCC", machine.compiler("g++")),
        ("Counters", f"{machine.output('valgrind', '--version')}, "
                     f"{machine.output('strace', '--version').splitlines()[0]}"),
    ]
