#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the load generator of the echo benchmark promises, against good and bad servers."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"


class echo_load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.load = Path(folder.name) / "echo_load"
        cls.raw_epoll = Path(folder.name) / "echo"
        subprocess.run(["clang++-19", "-std=c++23", "-O1", "-Wall", "-Wextra", "-Werror",
                        BENCH / "load/echo_load.cpp", "-o", cls.load], check=True)
        subprocess.run(["clang-19", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror",
                        BENCH / "echo/raw_epoll/echo.c", "-o", cls.raw_epoll], check=True)

    def run_load(self, port, *arguments, expect=0):
        run = subprocess.run([self.load, "--port", str(port), *map(str, arguments)],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, expect, run.stderr)
        return json.loads(run.stdout)

    @contextlib.contextmanager
    def server(self, *arguments):
        with subprocess.Popen([self.raw_epoll, *map(str, arguments)], stdout=subprocess.PIPE,
                              text=True) as process:
            try:
                word, port = process.stdout.readline().split()
                self.assertEqual(word, "listening")
                yield process, int(port)
            finally:
                process.kill()

    @contextlib.contextmanager
    def answering(self, answer):
        """A server that gives `answer(connection, received)` for what each connection sends."""

        def serve(connection):
            with connection, contextlib.suppress(OSError):
                while data := connection.recv(65536):
                    answer(connection, data)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=[connection], daemon=True).start()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=accept, daemon=True).start()
            yield listener.getsockname()[1]
            listener.shutdown(socket.SHUT_RDWR)

    def test_sends_exactly_the_requests_that_end_the_server(self):
        with self.server("--max-requests", 5000) as (process, port):
            report = self.run_load(port, "--requests", 5000, "--connections", 30)
            self.assertEqual((report["requests"], report["errors"]), (5000, 0))
            told = json.loads(process.communicate(timeout=10)[0])
            self.assertEqual(process.returncode, 0)
            self.assertEqual(told["requests"], 5000)
            self.assertGreater(told["turns"], 0)

    def test_a_terminated_server_reports_and_succeeds(self):
        with self.server() as (process, port):
            self.run_load(port, "--requests", 100, "--connections", 3)
            process.terminate()
            self.assertEqual(json.loads(process.communicate(timeout=10)[0])["requests"], 100)
            self.assertEqual(process.returncode, 0)

    def test_large_messages_come_back_whole(self):
        with self.server() as (_, port):
            report = self.run_load(port, "--requests", 20, "--connections", 4,
                                   "--message-bytes", 3_000_000)
            self.assertEqual((report["requests"], report["errors"]), (20, 0))

    def test_measures_for_the_seconds_asked(self):
        with self.server() as (process, port):
            report = self.run_load(port, "--seconds", 0.3, "--warmup-seconds", 0.05,
                                   "--connections", 5, "--watch-pid", process.pid)
        self.assertAlmostEqual(report["seconds"], 0.3, delta=0.2)
        self.assertGreater(report["watched_cpu_us_per_request"], 0)
        self.assertTrue(0 <= report["idle_fraction"] <= 1)

    def test_percentiles_tell_the_latency(self):
        def late(connection, data):
            time.sleep(0.02)
            connection.sendall(data)

        with self.answering(late) as port:
            report = self.run_load(port, "--requests", 20, "--connections", 2)
        self.assertGreaterEqual(report["p50_us"], 20_000)
        self.assertLessEqual(report["p50_us"], report["p99_us"])
        self.assertLessEqual(report["p99_us"], report["max_us"])

    def test_thinks_between_a_reply_and_the_next_message(self):
        with self.server() as (_, port):
            report = self.run_load(port, "--requests", 20, "--connections", 2,
                                   "--think-us", 10_000)
        self.assertGreaterEqual(report["seconds"], 0.09)
        self.assertLess(report["p50_us"], 10_000)

    def test_holds_idle_connections_until_its_input_ends(self):
        with self.server() as (process, port):
            with subprocess.Popen([self.load, "--port", str(port), "--connections", "600",
                                   "--idle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, preexec_fn=allow_descriptors) as load:
                self.assertEqual(load.stdout.readline(), "idle 600\n")
                self.assertGreater(len(os.listdir(f"/proc/{process.pid}/fd")), 600)
                report = json.loads(load.communicate(timeout=10)[0])
                self.assertEqual((report["requests"], report["errors"]), (600, 0))

    def test_finds_a_wrong_byte(self):
        wrong = lambda connection, data: connection.sendall(data[:-1] + b"!")
        with self.answering(wrong) as port:
            report = self.run_load(port, "--requests", 3, "--connections", 3, expect=1)
        self.assertEqual((report["requests"], report["mismatches"]), (0, 3))

    def test_finds_a_byte_too_many(self):
        with self.answering(lambda connection, data: connection.sendall(data + b"!")) as port:
            report = self.run_load(port, "--requests", 3, "--connections", 3, expect=1)
        self.assertEqual(report["mismatches"], 3)

    def test_finds_a_reply_that_is_cut_off(self):
        def half(connection, data):
            connection.sendall(data[:50])
            connection.shutdown(socket.SHUT_RDWR)

        with self.answering(half) as port:
            report = self.run_load(port, "--requests", 3, "--connections", 3, expect=1)
        self.assertEqual(report["short"], 3)

    def test_gives_up_when_nothing_comes(self):
        with self.answering(lambda connection, data: None) as port:
            report = self.run_load(port, "--requests", 3, "--connections", 3,
                                   "--stall-seconds", 0.2, expect=1)
        self.assertEqual(report["stalled"], 3)

    def test_counts_refused_connections(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # has a port, does not listen
            report = self.run_load(unused.getsockname()[1], "--requests", 3, "--connections", 3,
                                   expect=1)
        self.assertEqual(report["connect_errors"], 3)

    def test_wrong_usage_is_told(self):
        for arguments in ([], ["--port", "0"], ["--port", "1", "--nosuch", "1"],
                          ["--port", "1", "--requests", "many"], ["--port"]):
            run = subprocess.run([self.load, *arguments], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("usage", run.stderr)


def allow_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    unittest.main()
