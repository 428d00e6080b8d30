#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench/run makes of what it measured."""

import importlib.util
import json
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from harness import build, chart, machine, report, suite  # noqa: E402
from harness.counters import Counters  # noqa: E402


def load_suite(name):
    found = importlib.util.spec_from_file_location("suite", BENCH / name / "suite.py")
    suite = importlib.util.module_from_spec(found)
    found.loader.exec_module(suite)
    return suite


echo = load_suite("echo")


def some_results():
    results = report.Results({"speed": "1/s"})
    results.add("ours", "speed", 1234.5678)
    results.add("theirs", "speed", -0.001)
    results.fail("third", "not built")
    return results


class bench_run(unittest.TestCase):
    def test_the_file_is_a_list_of_case_metric_value_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "build" / "suite.json"
            some_results().write(path)
            rows = json.loads(path.read_text())
        self.assertEqual(rows[0], {"case": "ours", "metric": "speed", "value": 1234.5678,
                                   "unit": "1/s"})
        self.assertEqual(len(rows), 2)

    def test_the_table_has_what_was_not_measured_too(self):
        table = report.text_table(some_results(), ["ours", "theirs", "third"],
                                  [("speed", "speed, 1/s", "{:,.1f}")])
        heads, ours, theirs, third = table.splitlines()
        self.assertRegex(heads, "^case .*speed, 1/s$")
        self.assertRegex(ours, "^ours +1,234.6$")
        self.assertRegex(theirs, "^theirs +0.0$")  # no minus before nothing
        self.assertRegex(third, "^third +not measured$")

    def test_a_target_is_met_up_to_its_limit(self):
        self.assertTrue(report.Target("case", "metric", 300, 300).ok)
        self.assertFalse(report.Target("case", "metric", 301, 300).ok)
        self.assertFalse(report.Target("case", "metric", None, 300).ok)
        self.assertFalse(report.Target("case", "metric", 1, None).ok)

    def test_a_count_is_the_difference_of_two_runs(self):
        counters = Counters(load=None, connections=1, short=100, long=300)
        seen = []

        def count(requests, folder):
            self.assertTrue(folder.is_dir())
            seen.append(requests)
            return {"calls": 1000 + 2 * requests, "turns": 7}

        self.assertEqual(counters._difference(count), {"calls": 2, "turns": 0})
        self.assertEqual(seen, [100, 300])

    def test_the_chart_is_a_drawing_with_a_bar_for_each_value(self):
        results = some_results()
        results.add("theirs", "speed", 10)
        for logarithmic in (False, True):
            panel = chart.Panel("a < b", "more is better", "speed", "{:.0f}", logarithmic)
            drawing = xml.etree.ElementTree.fromstring(
                chart.draw(results, ["ours", "theirs", "third"], [panel], {"ours"}))
            rectangles = drawing.findall("{*}rect")
            self.assertEqual(len(rectangles), 3)  # the ground and two bars
            self.assertGreater(int(rectangles[1].get("width")), int(rectangles[2].get("width")))

    def test_a_fetched_asio_is_told_by_its_headers_and_its_package(self):
        with tempfile.TemporaryDirectory() as folder:
            include = Path(folder) / "libboost1.90-dev_1.90.0-1+b2_amd64" / "usr" / "include"
            self.assertEqual(machine.boost_asio(include), "not installed")
            header = include / "boost" / "asio" / "version.hpp"
            header.parent.mkdir(parents=True)
            header.write_text("#define BOOST_ASIO_VERSION 103602 // 1.36.2\n")
            self.assertEqual(machine.boost_asio(include),
                             "asio 1.36.2 of Debian sid's libboost1.90-dev 1.90.0-1+b2")

    def test_an_unknown_suite_is_wrong_usage(self):
        run = subprocess.run([BENCH / "run", "nosuch"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, "suites: .*echo")
        self.assertNotIn("harness", run.stderr)


class echo_suite(unittest.TestCase):
    def targets(self, results, *arguments):
        return echo.check_targets(echo.parse(list(arguments)), results)

    def test_an_unknown_case_is_wrong_usage(self):
        run = subprocess.run([BENCH / "run", "echo", "--cases", "raw_epoll,nosuch"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("nosuch", run.stderr)

    def test_every_case_has_its_program_under_the_same_name(self):
        for case in echo.PEERS:
            programs = list((BENCH / "echo" / case).glob("echo.*"))
            self.assertEqual(len(programs), 1, case)

    def test_only_what_was_to_be_measured_is_a_target(self):
        results = report.Results(echo.UNITS)
        targets = self.targets(results, "--cases", "plumb.handle.epoll,raw_epoll", "--phases",
                               "timing")
        self.assertEqual([(target.case, target.metric) for target in targets],
                         [("plumb.handle.epoll", "ratio.server_cpu.raw_epoll")])

    def test_system_calls_are_judged_by_the_turns_of_the_same_run(self):
        results = report.Results(echo.UNITS)
        results.add("plumb.handle.epoll", "traced_turns_per_request", 0.05)
        results.add("plumb.handle.epoll", "syscalls_per_request", 2.06)
        arguments = ["--cases", "plumb.handle.epoll", "--phases", "calls"]
        self.assertTrue(self.targets(results, *arguments)[0].ok)
        results.add("plumb.handle.epoll", "syscalls_per_request", 2.07)
        self.assertFalse(self.targets(results, *arguments)[0].ok)

    def test_ratios_pair_the_runs_of_one_round(self):
        def sample(cpu, idle):
            return {"server_cpu_us_per_request": cpu, "requests_per_second": 1 / cpu,
                    "load_idle_fraction": idle, "delay_fraction": 0}

        samples = {"raw_epoll": [4, 8, 5], "libuv": [5, 10, 6], "plumb.handle.epoll": [6, 8, 10]}
        rounds = {case: iter(values) for case, values in samples.items()}
        idle = {"raw_epoll": 0.1, "libuv": 0.2, "plumb.handle.epoll": 0.2}
        results = report.Results(echo.UNITS)
        commands = {case: case for case in samples}
        options = types.SimpleNamespace(runs=3)
        echo.time_rounds(options, commands, None, results,
                         run=lambda _, case, __: sample(next(rounds[case]), idle[case]))
        self.assertEqual(results.get("plumb.handle.epoll", "ratio.server_cpu.raw_epoll"), 1.5)
        self.assertEqual(results.get("raw_epoll", "server_cpu_us_per_request"), 5)
        # Requests a second are compared only where the generator was idle enough in both cases.
        self.assertIsNone(
            results.get("plumb.handle.epoll", "ratio.requests_per_second.raw_epoll"))
        self.assertIsNotNone(results.get("plumb.handle.epoll", "ratio.requests_per_second.libuv"))


class suites_of_coroutines(unittest.TestCase):
    def test_what_gcc_made_is_told_by_the_end_of_a_name(self):
        measure = suite.by_both(lambda words: {"words": len(words)})
        self.assertEqual(measure({"": ["a"], "_gcc": ["a", "b"]}), {"words": 1, "words_gcc": 2})

    def test_every_case_has_its_program_under_the_same_name(self):
        for name in ("layers", "tcp_reader"):
            loaded = load_suite(name)
            for case in {case.rpartition(".")[0].replace(".", "_") for case in loaded.CASES}:
                programs = list((BENCH / name / case).glob(f"{name}.*"))
                self.assertEqual(len(programs), 1, case)

    def test_a_model_is_compared_in_the_same_shape(self):
        self.assertEqual(load_suite("layers").peers_of("coroutine.10"),
                         ["callback.10", "callback_pooled.10"])

    def test_elision_is_left_out_where_its_compiler_cannot_be_had(self):
        layers = load_suite("layers")

        def no_compiler(_):
            raise build.BuildError("no network")

        options = layers.parse(["--phases", "elision,timing"])
        self.assertIn("_elided", layers.suffixes_of(options))
        with unittest.mock.patch.object(build, "clang_22", no_compiler), \
                unittest.mock.patch.object(build, "progress"):
            self.assertEqual(layers.elision_builds(options), {})
        self.assertEqual(options.phases, ["timing"])
        self.assertNotIn("_elided", layers.suffixes_of(options))
        self.assertNotIn("elision", layers.parse(["--quick"]).phases)

    def test_ten_units_are_compiled_from_one_source(self):
        loaded = load_suite("compile")
        for case, others in (("plumb.ten_units", ["http", "main"]), ("asio.ten_units", ["main"])):
            units = loaded.units_of(case)
            self.assertEqual([name for name, _, _ in units],
                             [f"unit{i}" for i in range(10)] + others)
            self.assertTrue(all(source.exists() for _, source, _ in units))

    def test_each_library_is_measured_in_what_it_has(self):
        loaded = load_suite("executors")
        self.assertIn("plumb.mutex", loaded.CASES)
        self.assertNotIn("asio.mutex", loaded.CASES)
        self.assertEqual(loaded.peers_of("plumb.fib"), ["onetbb.fib", "tokio.fib", "go.fib"])


if __name__ == "__main__":
    unittest.main()
