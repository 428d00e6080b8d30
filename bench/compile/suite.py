# SPDX-License-Identifier: Apache-2.0
"""The compile suite: what it takes to compile a program, and what comes of it.

An echo server, and a request of a protocol like HTTP that ten units use. Both compilers; the names
of what GCC made end with _gcc.
"""
import pathlib
import resource
import sys
import tempfile

from harness import build, chart, machine, report, suite
from harness.rounds import add_ratio, alternate

HERE = pathlib.Path(__file__).resolve().parent
CASES = ["plumb.echo", "asio.echo", "asio_separate.echo", "plumb.ten_units", "asio.ten_units",
         "standard_headers"]
PHASES = ["lines", "compiling"]
METRICS = {"seconds": "s", "preprocessed_lines": "lines", "object_bytes": "bytes",
           "stripped_bytes": "bytes", "rebuilt_units": "units"}
FLAGS = ["-std=c++23", "-O3", "-DNDEBUG", f"-I{build.ROOT / 'include'}"]
LINKED = ["-luring", "-pthread"]
TIME_LIMIT, SIZE_LIMIT = 0.35, 0.5
SEPARATE = "-DBOOST_ASIO_SEPARATE_COMPILATION"
# What a change of the implementation touches.
IMPLEMENTATION = {"plumb.ten_units": "http.cpp", "asio.ten_units": "http.hpp"}


def main(arguments):
    options = parse(arguments)
    results = report.Results({metric + suffix: unit for metric, unit in METRICS.items()
                              for suffix in suite.SUFFIXES.values()})
    try:
        compilers = make_libraries()
    except build.BuildError as error:
        print(f"compile: {error}", file=sys.stderr)
        return 1
    commands = {case: case for case in options.cases}
    for suffix, native in compilers.items():
        def named(values, suffix=suffix):
            return {metric + suffix: value for metric, value in values.items()}

        if "lines" in options.phases:
            alternate(commands, 1, lambda case: named(count_lines(case, native)), results)
        if "compiling" in options.phases:
            rounds = alternate(commands, options.runs,
                               lambda case: named(compile_program(case, native)), results)
            for what in ("echo", "ten_units"):
                case, peer = f"plumb.{what}", f"asio.{what}"
                if case in commands and peer in commands:
                    add_ratio(results, rounds, case, peer, "seconds" + suffix)
    return suite.end("compile", options, results, columns_of(results, options.cases),
                     check_targets(options, results), write_docs)


def parse(arguments):
    parser = suite.parser("compile", __doc__, CASES, PHASES)
    parser.add_argument("--runs", type=int, help="timed runs of each case (5)")
    options = suite.parse(parser, arguments)
    options.runs = options.runs or (1 if options.quick else 5)
    return options


def make_libraries():
    made = {suffix: build.NativePrograms(compiler) for compiler, suffix in suite.SUFFIXES.items()}
    for native in made.values():
        native.configure()
        native.build("plumb")
    return made


def units_of(case):
    """Each unit of a case: its name, its source and what is more on the command line."""
    name = case.replace(".", "_")
    if not name.endswith("ten_units"):
        more = [SEPARATE] if "separate" in name else []
        folder = HERE / name.replace("_separate", "")
        return [("echo", folder / "echo.cpp", more)]
    folder = HERE / name
    units = [(f"unit{number}", folder / "unit.cpp", [f"-DUNIT={number}"]) for number in range(10)]
    others = [(path.stem, path, []) for path in sorted(folder.glob("*.cpp")) if path.stem != "unit"]
    return units + others


def compiler_of(native):
    return [native.cxx, *FLAGS, f"-I{build.boost()}"]


def count_lines(case, native):
    """Without those that are empty."""
    return {"preprocessed_lines": sum(
        len(suite.run_program([*compiler_of(native), *more, "-E", "-P", source]).splitlines())
        for _, source, more in units_of(case))}


def compile_program(case, native):
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        objects = compile_units(case, native, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # The processor's time, which other work disturbs less than the clock's.
        values = {"seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                  "object_bytes": sum(map(code_bytes, objects))}
        if case in IMPLEMENTATION:
            changed = HERE / case.replace(".", "_") / IMPLEMENTATION[case]
            values["rebuilt_units"] = sum(
                changed in read_dependencies(each.with_suffix(".d")) for each in objects)
        if "separate" not in case:
            program = pathlib.Path(folder) / "program"
            library = [native.folder / "libplumb.a", *LINKED] if "plumb" in case else ["-pthread"]
            suite.run_program([native.cxx, *objects, *library, "-s", "-o", program])
            values["stripped_bytes"] = program.stat().st_size
        return values


def compile_units(case, native, folder):
    objects = []
    for name, source, more in units_of(case):
        objects.append(pathlib.Path(folder) / f"{name}.o")
        suite.run_program([*compiler_of(native), *more, "-MMD", "-c", source, "-o", objects[-1]])
    return objects


def read_dependencies(path):
    return {pathlib.Path(word).resolve() for word in path.read_text().split() if "/" in word}


def code_bytes(path):
    """Code and data, without what only the linker needs."""
    text, data, _ = suite.run_program(["size", path]).splitlines()[1].split()[:3]
    return int(text) + int(data)


def check_targets(options, results):
    targets = []
    for suffix in suite.SUFFIXES.values():
        for what in ("echo", "ten_units"):
            case, peer = f"plumb.{what}", f"asio.{what}"
            if case not in options.cases or peer not in options.cases:
                continue
            if "compiling" in options.phases:
                metric = f"ratio.seconds{suffix}.{peer}"
                targets.append(report.Target(case, metric, results.get(case, metric), TIME_LIMIT))
            if "compiling" in options.phases:
                for size in ("object_bytes", "stripped_bytes"):
                    mine, its = (results.get(each, size + suffix) for each in (case, peer))
                    limit = its * SIZE_LIMIT if its else None
                    targets.append(report.Target(case, size + suffix, mine, limit,
                                                 f"half of {peer}'s"))
        if "plumb.ten_units" in options.cases and "compiling" in options.phases:
            targets.append(report.Target("plumb.ten_units", "rebuilt_units" + suffix, results.get(
                "plumb.ten_units", "rebuilt_units" + suffix), 1))
    return targets


def columns_of(results, cases):
    forms = {"seconds": ("s", "{:.2f}"), "preprocessed_lines": ("lines", "{:,.0f}"),
             "object_bytes": ("objects", "{:,.0f}"), "stripped_bytes": ("stripped", "{:,.0f}"),
             "rebuilt_units": ("rebuilt", "{:.0f}")}
    return [(metric + suffix, f"{head}{', GCC' if suffix else ''}", form)
            for suffix in suite.SUFFIXES.values() for metric, (head, form) in forms.items()
            if any(results.get(case, metric + suffix) is not None for case in cases)]


METHOD = """\
`echo` is one unit: a server, a coroutine a connection. `ten_units` is a request of a protocol like HTTP,
composed of reads and writes, and ten units that use it: with plumb its interface is `task<response>
get(io_handle&, ...)` and its body is in a file of its own; with asio it is a template over the
stream, as asio's own operations are. *Rebuilt* are the units that include the file that has the body.
Seconds are of the processor, all units one after another at -O3; medians of {runs} alternating runs. Lines are
preprocessed, without those that are empty. Objects are code and data, before linking; stripped is
the executable, where plumb's library is linked statically and so is a part of it, and asio's is
all headers. `asio_separate` has asio's own part compiled elsewhere, as plumb's is.
"""


def write_docs(options, results, columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    panels = [chart.Panel("seconds, Clang 19", "less is better", "seconds", "{:.2f}"),
              chart.Panel("preprocessed lines", "less is better", "preprocessed_lines", "{:,.0f}")]
    (folder / "compile.svg").write_text(chart.draw(
        results, options.cases, panels, {case for case in options.cases if "plumb" in case}))
    parts = [
        "# Compile",
        "What it takes to compile a program, and how large it is. Written by `bench/run compile "
        "--docs`; `make bench SUITE=compile` measures anew.",
        "![Time to compile](compile.svg)",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, options.cases, columns)),
        "## Targets",
        report.markdown_table(["case", "metric", "target", "measured", ""],
                              [target.cells() for target in targets], left=3),
        "## How it is measured",
        METHOD.format(runs=options.runs).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("asio", machine.boost_asio(build.boost())),
            ("C++", f"{machine.compiler('clang++-19')}; {machine.compiler('g++')}; {' '.join(FLAGS[:3])}"),
        ], left=2),
    ]
    (folder / "compile.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'compile.md'} written")
