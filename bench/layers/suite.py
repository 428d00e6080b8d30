# SPDX-License-Identifier: Apache-2.0
"""The layers suite: what a level of composition costs, with callbacks and with coroutines.

An i/o object completes each operation through the queue; one alone, and composed in 2, 3 and 4
levels. Both compilers; the names of what GCC built end with _gcc. The phase elision adds Clang 22, which
elides the frames of coroutines (_elided), or is told not to (_clang22).
"""
import json
import pathlib
import sys

from harness import build, chart, counters, machine, report, suite
from harness.rounds import add_ratio, alternate
from harness.server import SERVER_CORE

MODELS = ["callback", "callback_pooled", "coroutine", "erased"]
SHAPES = [1, 2, 10, 100]
CASES = [f"{model}.{shape}" for model in MODELS for shape in SHAPES]
PHASES = ["elision", "allocations", "instructions", "timing"]
METRICS = {"ns_per_operation": "ns", "instructions_per_operation": "instructions",
           "allocations": "allocations", "frames_per_operation": "frames"}
HERE = pathlib.Path(__file__).resolve().parent
COMPILERS = {"": "Clang", "_gcc": "GCC", "_clang22": "Clang 22", "_elided": "Clang 22, elided"}
# What is added to the flags of Clang 22, so that it compiles for the processor that the others do, and as they do.
MORE_FLAGS = "-mcpu=baseline -fomit-frame-pointer"
ELISION = {"_clang22": MORE_FLAGS + " -DPLUMB_AWAIT_ELIDABLE=", "_elided": MORE_FLAGS}
# Of the coroutine to the callback, in ns; the paper's were made by Clang 20 on Windows.
PAPER = {1: 7.0, 2: 6.3, 10: 2.3, 100: 1.5}
LIMITS = {1: 1.4, 2: 2.0, 10: 1.6, 100: 0.85}
GCC_LIMIT, POOLED_LIMIT = 2.0, 1.3  # of 100 operations in four levels
COUNTED = {"short": 10_000, "long": 110_000}


def main(arguments):
    options = parse(arguments)
    results = report.Results({metric + suffix: unit for metric, unit in METRICS.items()
                              for suffix in COMPILERS})
    try:
        commands, counted, native = build_all(options, results)
    except build.BuildError as error:
        print(f"layers: {error}", file=sys.stderr)
        return 1
    preload = native.path("count_allocations.so")
    if "elision" in options.phases:
        alternate(counted, 1, suite.by_both(lambda words: count_frames(words, preload)), results)
    if "allocations" in options.phases:
        alternate(commands, 1, suite.by_both(lambda words: count_allocations(words, preload)), results)
    if "instructions" in options.phases:
        alternate(commands, 1, suite.by_both(count_instructions), results)
    for suffix in suffixes_of(options):
        add_instruction_ratios(commands, results, suffix)
    if "timing" in options.phases:
        rounds = alternate(commands, options.runs,
                           suite.by_both(lambda words: time_operations(options, words)), results)
        add_ratios(options, commands, rounds, results)
    return suite.end("layers", options, results, columns_of(results, options.cases),
                     check_targets(options, results), write_docs)


def parse(arguments):
    parser = suite.parser("layers", __doc__, CASES, PHASES)
    parser.add_argument("--runs", type=int, help="timed runs of each case (9)")
    parser.add_argument("--operations", type=int, help="operations of a timed run (20000000)")
    options = suite.parse(parser, arguments, skipped_when_quick=("elision",))
    options.runs = options.runs or (3 if options.quick else 9)
    options.operations = options.operations or (2_000_000 if options.quick else 20_000_000)
    return options


def suffixes_of(options):
    """What is added to the names of the metrics that are measured."""
    return [*suite.SUFFIXES.values(), *(ELISION if "elision" in options.phases else ())]


def elision_builds(options):
    """Those of Clang 22; without the phase where it can't be had."""
    if "elision" not in options.phases:
        return {}
    try:
        compilers = build.clang_22(HERE / "requirements.txt")
    except build.BuildError as error:
        build.progress(f"elision is not measured, there is no Clang 22: {error}")
        options.phases.remove("elision")
        return {}
    return {suffix: build.NativePrograms(suffix.lstrip("_"), compilers, flags)
            for suffix, flags in ELISION.items()}


def build_all(options, results):
    """The commands of each case by what is added to the names of metrics, those of coroutines whose frames are
    counted, and the folder."""
    more = elision_builds(options)
    models = list(dict.fromkeys(case.split(".")[0] for case in options.cases))
    counted = {"coroutine": "counted_frames"} if more and "coroutine" in models else {}
    programs, native = suite.build_by_both("layers", [*models, *counted.values()],
                                           ["count_allocations"], results, more)

    def commands_of(program_of):
        commands = {}
        for case in options.cases:
            model, shape = case.split(".")
            program = program_of(model)
            if program in programs:
                commands[case] = {suffix: [*words, "--shape", shape]
                                  for suffix, words in programs[program].items()}
        return commands

    return commands_of(lambda model: model), commands_of(counted.get), native


def allocations_between(words, preload):
    short, long = (counters.program_allocations([*words, "--operations", number], preload)
                   for number in COUNTED.values())
    return long - short


def each_operation(difference):
    """Of what the longer run had more; the first tenth warms up, and counts too."""
    return difference / (1.1 * (COUNTED["long"] - COUNTED["short"]))


def count_allocations(words, preload):
    """All of the longer run that the shorter one had not: none in a steady state."""
    return {"allocations": allocations_between(words, preload)}


def count_frames(words, preload):
    """Where each frame is an allocation."""
    return {"frames_per_operation": each_operation(allocations_between(words, preload))}


def count_instructions(words):
    short, long = (counters.program_instructions([*words, "--operations", number])
                   for number in COUNTED.values())
    return {"instructions_per_operation": each_operation(long - short)}


def time_operations(options, words):
    return json.loads(suite.run_program(
        ["taskset", "-c", SERVER_CORE, *words, "--operations", options.operations]))


def peers_of(case):
    """What a case is compared with: the other models in the same shape."""
    model, shape = case.split(".")
    return [f"{other}.{shape}" for other in MODELS[:2] if other != model]


def add_ratios(options, commands, rounds, results):
    for case in commands:
        for peer in (peer for peer in peers_of(case) if peer in commands):
            for suffix in suffixes_of(options):
                add_ratio(results, rounds, case, peer, "ns_per_operation" + suffix)


def add_instruction_ratios(commands, results, suffix):
    metric = "instructions_per_operation" + suffix
    for case in commands:
        for peer in peers_of(case):
            mine, its = results.get(case, metric), results.get(peer, metric)
            if mine is not None and its is not None:
                results.add(case, f"ratio.{metric}.{peer}", mine / its, "ratio")


def check_targets(options, results):
    targets = []

    def check(case, metric, limit, why=None):
        if case in options.cases:
            targets.append(report.Target(case, metric, results.get(case, metric), limit, why))

    if "timing" in options.phases:
        for shape, limit in LIMITS.items():
            check(f"coroutine.{shape}", f"ratio.ns_per_operation.callback.{shape}", limit,
                  f"the paper has {PAPER[shape]}")
        check("coroutine.100", "ratio.ns_per_operation_gcc.callback.100", GCC_LIMIT)
        check("coroutine.100", "ratio.ns_per_operation.callback_pooled.100", POOLED_LIMIT)
    if "allocations" in options.phases:
        for model in ("callback", "callback_pooled", "coroutine"):
            for shape in SHAPES:
                for suffix in suffixes_of(options):
                    check(f"{model}.{shape}", "allocations" + suffix, 0)
    if "elision" in options.phases:
        for shape in SHAPES:
            check(f"coroutine.{shape}", "frames_per_operation_elided", 0)
    return targets


def columns_of(results, cases, suffixes=COMPILERS):
    forms = {"frames_per_operation": ("frames", "{:.2f}"),
             "ns_per_operation": ("ns", "{:.2f}"),
             "instructions_per_operation": ("instructions", "{:.1f}"),
             "allocations": ("allocations", "{:,.0f}")}
    found = [(metric + suffix, f"{head}, {COMPILERS[suffix]}", form)
             for suffix in suffixes for metric, (head, form) in forms.items()]
    return [column for column in found if any(results.get(case, column[0]) is not None
                                              for case in cases)]


METHOD = """\
The operation of the i/o object does nothing but complete through the queue of an `io_context`, so that
what is left is the cost of the model. Each case begins one composed operation after another:
`.1` the operation alone, `.2` one in two levels, `.10` ten in three, `.100` a hundred in four. ns and
instructions are for each operation of the object. The programs alternate, {runs} runs of {operations:,}
operations each; medians of the runs, and of the ratios in each round. Instructions by callgrind, and
allocations by counting them, are the difference between a longer and a shorter run; allocations are
all of 110,000 operations.

- `callback`: handlers and executor by their types; a composed operation is moved into each of its
  parts; one block is recycled. `callback_pooled`: a composed operation has a block of its own, recycled
  by size, and hands down one pointer. `erased`: `std::function`, and an executor behind a virtual function.
- `coroutine`: `task<>` in each level; the executor's type is nowhere below the launch. Each frame is one of the
  pool, since Clang 19 and GCC 12 elide none.
"""

ELISION_METHOD = """\
`task` has the attribute `[[clang::coro_await_elidable]]`, which Clang 20 and newer know: the frame of a task that is
awaited where it is called lies in that of its awaiter, where the compiler sees the body of what is called, and so all
of one composed operation is in one frame. *Elided* is this, *Clang 22* the same compiler where the attribute is left
out; it is that of PyPI's {package}, with libc++, and the flags {flags}, of which it takes -O3 for -O2. Frames are
counted by a program that takes each from the heap, which is no case of its own: its allocations, for each operation of
the object.
"""


def write_docs(options, results, columns, targets):
    folder = build.ROOT / "docs" / "benchmarks"
    suffixes = suffixes_of(options)
    columns = [column for column in columns_of(results, options.cases, suite.SUFFIXES.values())
               if not column[0].startswith("frames")]
    panels = [chart.Panel(f"ns an operation, {name}", "less is better", "ns_per_operation" + suffix,
                          "{:.1f}") for suffix, name in (("", "Clang 19"), ("_gcc", "GCC 12"))]
    (folder / "layers.svg").write_text(chart.draw(
        results, options.cases, panels, {case for case in options.cases if "coroutine" in case}))
    parts = [
        "# Layers",
        "What it costs to compose operations in levels: callbacks whose types are all known, and "
        "coroutines whose interface is `task<>`. Written by `bench/run layers --docs`; "
        "`make bench SUITE=layers` measures anew.",
        "![Cost of an operation](layers.svg)",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, options.cases, columns)),
        "## Beside the paper",
        "The cost of the coroutine as a multiple of the callback's. The paper's is of Clang 20 with "
        "elided frames, on Windows.",
        report.markdown_table(
            ["shape", "paper"] + [COMPILERS[suffix] + of for of in ("", ", of `callback_pooled`")
                                  for suffix in suffixes],
            [[str(shape), str(PAPER[shape])] + [
                "" if value is None else f"{value:.2f}"
                for model in MODELS[:2] for suffix in suffixes
                for value in [results.get(f"coroutine.{shape}",
                                          f"ratio.ns_per_operation{suffix}.{model}.{shape}")]]
             for shape in SHAPES]),
        *elision_parts(options, results),
        "## Targets",
        report.markdown_table(["case", "metric", "target", "measured", ""],
                              [target.cells() for target in targets], left=3),
        "## How it is measured",
        METHOD.format(runs=options.runs, operations=options.operations).rstrip(),
        report.markdown_table(["", ""], machine.describe() + [
            ("plumb", f"this repository, {machine.commit(build.ROOT)}"),
            ("C++", f"{machine.compiler('clang++-19')}; {machine.compiler('g++')}; {build.FLAGS}"),
        ], left=2),
    ]
    (folder / "layers.md").write_text("\n\n".join(parts) + "\n")
    build.progress(f"{folder / 'layers.md'} written")


def elision_parts(options, results):
    """Of the page, what elision saves."""
    cases = [case for case in options.cases if case.startswith("coroutine.")]
    columns = columns_of(results, cases, ELISION)
    if not columns:
        return []
    package = (HERE / "requirements.txt").read_text().strip().replace("==", " ")
    return [
        "## Elision",
        report.markdown_table(["case"] + [head for _, head, _ in columns],
                              report.case_rows(results, cases, columns)),
        ELISION_METHOD.format(package=package, flags=f"{build.FLAGS} {MORE_FLAGS}").rstrip(),
    ]
