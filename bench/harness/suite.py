# SPDX-License-Identifier: Apache-2.0
"""What every suite does: its options, its programs, and how it ends."""
import argparse
import subprocess
import sys

from harness import build, report
from harness.server import MeasureError


def parser(name, doc, cases, phases):
    """With the options that all suites have; `parse` takes the arguments."""
    made = argparse.ArgumentParser(prog=f"bench/run {name}", description=doc.split("\n")[0])
    made.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    made.add_argument("--cases", type=lambda text: text.split(","), default=cases,
                      help="which, separated by commas; default all: " + ", ".join(cases))
    made.add_argument("--phases", type=lambda text: text.split(","),
                      help="what to measure, separated by commas: " + ", ".join(phases))
    made.add_argument("--docs", action="store_true", help=f"write docs/benchmarks/{name}.md")
    made.add_argument("--assert", action="store_true", dest="assert_targets",
                      help="fail when a target is missed")
    made.set_defaults(known_cases=cases, known_phases=phases)
    return made


def parse(made, arguments, skipped_when_quick=()):
    options = made.parse_args(arguments)
    unknown = ({*options.cases} - {*options.known_cases}) | \
              ({*(options.phases or [])} - {*options.known_phases})
    if unknown:
        made.error(f"unknown: {', '.join(sorted(unknown))}")
    skipped = skipped_when_quick if options.quick else ()
    options.phases = options.phases or [each for each in options.known_phases if each not in skipped]
    return options


def build_case(suite, case, native):
    """The program of a case, named by its first words; the third word is a multiplexer."""
    name, multiplexer = case, ""
    if case.startswith("plumb."):
        name = "_".join(case.split(".")[:2])
        multiplexer = ".".join(case.split(".")[2:])
    native.build(f"bench_{suite}_{name}")
    command = [native.path(suite, name, suite)]
    return command + (["--multiplexer", multiplexer] if multiplexer else [])


# Where both compilers are measured: what is added to the names of metrics.
SUFFIXES = {"clang": "", "gcc": "_gcc"}


def build_by_both(suite, cases, targets, results, more=None):
    """The programs of each case by what is added to the names of metrics, and the folder of the first compiler.
    `targets` are built by that alone; `more` are builds beside those of both."""
    commands = {case: {} for case in cases}
    builds = {suffix: build.NativePrograms(compiler) for compiler, suffix in SUFFIXES.items()}
    for suffix, native in {**builds, **(more or {})}.items():
        native.configure()
        for target in targets if not suffix else ():
            native.build(target)
        for case in list(commands):
            name = case.replace(".", "_")
            try:
                native.build(f"bench_{suite}_{name}")
                commands[case][suffix] = [native.path(suite, name, suite)]
            except build.BuildError as error:
                results.fail(case, error)
                del commands[case]
    return commands, builds[""]


def by_both(measure):
    """Measures what each compiler made."""
    def run(command):
        return {metric + suffix: value for suffix, words in command.items()
                for metric, value in measure(words).items()}
    return run


def run_program(words, timeout=300):
    """@return what it printed"""
    try:
        ended = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                               timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(f"it didn't end within {timeout} s") from error
    if ended.returncode != 0:
        raise MeasureError(f"exit status {ended.returncode}: {ended.stderr.strip()[-500:]}")
    return ended.stdout


def tell_errors(name, results):
    for case, error in results.errors.items():
        print(f"{name}: {case}: {error}", file=sys.stderr)


def end(name, options, results, columns, targets, write_docs):
    """Writes and prints what a suite of one table found. @return the exit status"""
    results.write(build.OUTPUT / f"{name}.json")
    print(report.text_table(results, options.cases, columns))
    print()
    print(report.targets_table(targets))
    tell_errors(name, results)
    if options.docs:
        write_docs(options, results, columns, targets)
    return exit_status(options, results, targets)


def exit_status(options, results, targets):
    missed = options.assert_targets and not all(target.ok for target in targets)
    return 1 if results.errors or missed else 0
