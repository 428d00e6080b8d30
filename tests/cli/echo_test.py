#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `plumb echo` promises at its command line. PLUMB names the program."""

import contextlib
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

PLUMB = os.environ["PLUMB"]
PATIENCE = 20  # seconds: how long a test waits for what must happen
PROMPT = 5  # seconds: what should take no time at all, on a busy machine
CLEAN_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PLUMB_MULTIPLEXER"}


def run(*arguments, **options):
    """Runs the tool to its end."""
    options.setdefault("env", CLEAN_ENVIRONMENT)
    return subprocess.run(
        [PLUMB, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **options,
    )


class Server:
    """A running `plumb echo` on a port that the system chose."""

    def __init__(self, *options, descriptors=None):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        self.process = subprocess.Popen(
            [PLUMB, "echo", "--port", "0", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=CLEAN_ENVIRONMENT,
            preexec_fn=limit if descriptors else None,
        )
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        self.greeting = self.process.stdout.readline() if readable else ""
        found = re.fullmatch(r"listening on (\S+):(\d+) \((\w+), (\d+) threads?\)\n", self.greeting)
        if not found:
            self.process.kill()
            raise AssertionError(f"no greeting: {self.greeting!r} {self.process.communicate()}")
        self.host, self.port, self.backend = found[1], int(found[2]), found[3]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def connect(self, receive_buffer=None):
        client = socket.socket()
        client.settimeout(PATIENCE)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            client.connect((self.host, self.port))
        except OSError:
            client.close()
            raise
        return client

    def send_signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def end(self, within=PATIENCE):
        """Waits for the end. Returns the exit code, what was served and stderr."""
        out, err = self.process.communicate(timeout=within)
        served = {}
        if found := re.fullmatch(
            r"served (\d+) connections, (\d+) requests, (\d+) bytes; "
            r"(\d+) failed, (\d+) reset, (\d+) idle, (\d+) cut off\n",
            out,
        ):
            names = "connections requests bytes failed reset idle cut_off".split()
            served = dict(zip(names, map(int, found.groups())))
        return self.process.returncode, served, err

    def stop(self, number=signal.SIGTERM):
        self.send_signal(number)
        return self.end()

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def receive(client, count):
    """Receives `count` bytes, or fewer at the end."""
    data = bytearray()
    while len(data) < count and (more := client.recv(min(count - len(data), 65536))):
        data += more
    return bytes(data)


def receive_all(client):
    return receive(client, 1 << 40)


def exchange(client, message):
    """Sends and receives at the same time, since neither side holds a megabyte."""
    sender = threading.Thread(target=client.sendall, args=(message,))
    sender.start()
    answer = receive(client, len(message))
    sender.join()
    return answer


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def send_until_full(client, message):
    """Sends without reading until the server has stopped to take more. Returns how much."""
    sent = 0
    client.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        while sent < len(message):
            sent += client.send(message[sent : sent + 65536])
    client.settimeout(PATIENCE)
    return sent


def refusal_of_io_uring():
    """The reason why this machine has no ring, or None."""
    try:
        with Server("--multiplexer", "io_uring"):
            return None
    except AssertionError as e:
        found = re.search(r"plumb echo: (cannot use io_uring: [^\\]*)", str(e))
        return found[1] if found else None  # anything else is for the tests to find


def is_sanitized():
    """Sanitizers need descriptors of their own."""
    with open(PLUMB, "rb") as program:
        content = program.read()
    return b"__asan_init" in content or b"__tsan_init" in content


class OnEveryBackend:
    backend = None

    def server(self, *options, **more):
        return Server("--multiplexer", self.backend, *options, **more)

    def assert_clean(self, ended, **expected):
        code, served, err = ended
        self.assertEqual((code, err), (0, ""))
        expected = {"failed": 0, "reset": 0, "idle": 0, "cut_off": 0, **expected}
        self.assertEqual({key: served.get(key) for key in expected}, expected)

    def test_greets_with_address_backend_and_threads(self):
        with self.server("--threads", "2") as server:
            self.assertEqual(
                server.greeting,
                f"listening on 127.0.0.1:{server.port} ({self.backend}, 2 threads)\n",
            )
            self.assert_clean(server.stop(), connections=0, requests=0, bytes=0)

    def test_echoes_messages_of_every_size(self):
        sizes = [1, 2, 105, 106, 1023, 4096, 16383, 16384, 16385, 65536, 200_000, 1 << 20]
        with self.server() as server, server.connect() as client:
            for size in sizes:
                message = random.Random(size).randbytes(size)
                self.assertTrue(exchange(client, message) == message, size)
            client.close()
            self.assert_clean(server.stop(), connections=1, bytes=sum(sizes))

    def test_echoes_a_megabyte_to_a_slow_reader(self):
        message = random.Random(1).randbytes(1 << 20)
        with self.server() as server, server.connect(receive_buffer=4096) as client:
            sender = threading.Thread(target=client.sendall, args=(message,))
            sender.start()
            answer = bytearray()
            while len(answer) < len(message):
                time.sleep(0.0005)
                answer += receive(client, min(4096, len(message) - len(answer)))
            sender.join()
            self.assertTrue(answer == message)
            client.close()
            self.assert_clean(server.stop(), bytes=len(message))

    def test_answers_everything_after_a_half_close(self):
        message = random.Random(2).randbytes(300_000)
        with self.server() as server, server.connect() as client:
            sender = threading.Thread(
                target=lambda: (client.sendall(message), client.shutdown(socket.SHUT_WR))
            )
            sender.start()
            self.assertTrue(receive_all(client) == message)
            sender.join()
            self.assert_clean(server.stop(), connections=1, bytes=len(message))

    def test_serves_many_connections_on_many_threads(self):
        with self.server("--threads", "3") as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(60)]
            for round_number in range(5):
                for i, client in enumerate(clients):
                    client.sendall(b"%d %d" % (i, round_number))
                for i, client in enumerate(clients):
                    expected = b"%d %d" % (i, round_number)
                    self.assertEqual(receive(client, len(expected)), expected)
            self.assert_clean(server.stop(), connections=60, requests=300)

    def test_connections_beyond_the_limit_wait_for_their_turn(self):
        with self.server("--max-connections", "2") as server, contextlib.ExitStack() as stack:
            first, second, third = [stack.enter_context(server.connect()) for _ in range(3)]
            for client in (first, second):
                self.assertEqual(exchange(client, b"served"), b"served")
            third.sendall(b"waits")
            third.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                third.recv(5)
            third.settimeout(PATIENCE)
            first.close()
            self.assertEqual(receive(third, 5), b"waits")
            self.assert_clean(server.stop(), connections=3, requests=3)

    @unittest.skipIf(is_sanitized(), "sanitizers open descriptors themselves")
    def test_a_full_descriptor_table_neither_spins_nor_ends_the_server(self):
        with self.server(descriptors=24) as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.connect()) for _ in range(40)]
            self.assertEqual(exchange(clients[0], b"first"), b"first")
            before = server.cpu_seconds()
            time.sleep(1)
            self.assertLess(server.cpu_seconds() - before, 0.3)
            clients[-1].sendall(b"last")
            for client in clients[:-1]:
                client.close()
            self.assertEqual(receive(clients[-1], 4), b"last")
            self.assert_clean(server.stop(), connections=40, requests=2)

    def test_ends_at_once_with_idle_connections(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.server() as server, contextlib.ExitStack() as stack:
                clients = [stack.enter_context(server.connect()) for _ in range(20)]
                for client in clients:
                    self.assertEqual(exchange(client, b"hello"), b"hello")
                start = time.monotonic()
                self.assert_clean(server.stop(number), connections=20, requests=20, bytes=100)
                self.assertLess(time.monotonic() - start, PROMPT)
                for client in clients:
                    self.assertEqual(client.recv(1), b"")

    def test_finishes_the_write_in_flight_and_answers_what_arrived(self):
        message = random.Random(3).randbytes(64 << 20)
        with self.server("--grace", str(PATIENCE)) as server, server.connect() as client:
            sent = send_until_full(client, message)
            self.assertLess(sent, len(message))
            server.send_signal()
            time.sleep(0.2)
            with self.assertRaises(OSError):  # no more connections
                server.connect()
            answer = receive_all(client)
            client.close()
            code, served, err = server.end()
            self.assertEqual((code, err, served["cut_off"]), (0, "", 0))
            self.assertTrue(answer == message[: len(answer)])
            self.assertEqual(served["bytes"], len(answer))

    def test_the_grace_bounds_how_long_a_peer_that_does_not_read_is_waited_for(self):
        with self.server("--grace", "0.2") as server, server.connect() as client:
            send_until_full(client, bytes(64 << 20))
            start = time.monotonic()
            code, served, err = server.stop()
            self.assertLess(time.monotonic() - start, PROMPT)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual((served["cut_off"], served["failed"]), (1, 0))

    def test_a_second_signal_ends_it_at_once(self):
        with self.server("--grace", "600") as server, server.connect() as client:
            send_until_full(client, bytes(64 << 20))
            server.send_signal(signal.SIGTERM)
            with self.assertRaises(subprocess.TimeoutExpired):
                server.process.wait(timeout=0.5)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.end(within=PROMPT)[0], -signal.SIGINT)

    def test_ends_by_itself_after_max_requests(self):
        with self.server("--max-requests", "10", "--threads", "2") as server:
            with server.connect() as one, server.connect() as other:
                for i in range(5):
                    for client in (one, other):
                        self.assertEqual(exchange(client, b"%d" % i), b"%d" % i)
                self.assert_clean(server.end(), connections=2, requests=10, bytes=10)

    def test_closes_connections_that_are_idle_for_too_long(self):
        with self.server("--idle-timeout", "0.3") as server, server.connect() as client:
            for _ in range(4):
                self.assertEqual(exchange(client, b"busy"), b"busy")
                time.sleep(0.1)
            self.assertEqual(client.recv(1), b"")
            self.assert_clean(server.stop(), connections=1, requests=4, idle=1)

    def test_a_connection_reset_by_the_peer_is_counted_and_no_failure(self):
        with self.server() as server:
            for _ in range(3):
                client = server.connect()
                self.assertEqual(exchange(client, b"hello"), b"hello")
                reset(client)
            with server.connect() as client:
                self.assertEqual(exchange(client, b"still there"), b"still there")
            self.assert_clean(server.stop(), connections=4, requests=4, reset=3)

    def test_a_reset_in_the_middle_of_a_write_is_survived(self):
        with self.server() as server:
            client = server.connect()
            send_until_full(client, bytes(64 << 20))
            reset(client)
            with server.connect() as client:
                self.assertEqual(exchange(client, b"still there"), b"still there")
            self.assert_clean(server.stop(), connections=2, reset=1)

    def test_a_port_in_use_is_one_line_and_exit_code_1(self):
        with self.server() as server:
            for threads in ("1", "2"):
                refused = run("echo", "--port", str(server.port), "--threads", threads,
                              "--multiplexer", self.backend)
                self.assertEqual(refused.returncode, 1)
                self.assertEqual(
                    refused.stderr,
                    f"plumb echo: cannot listen on 127.0.0.1:{server.port}: "
                    "Address already in use\n",
                )
                self.assertEqual(refused.stdout, "")

    @unittest.skipIf(is_sanitized(), "sanitizers open descriptors themselves")
    def test_a_backend_that_cannot_be_had_is_one_line_and_exit_code_1(self):
        def no_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))  # the loader needs one more

        for threads in ("1", "3"):
            refused = run("echo", "--port", "0", "--multiplexer", self.backend,
                          "--threads", threads, preexec_fn=no_descriptors)
            self.assertEqual(refused.returncode, 1, refused)
            self.assertRegex(refused.stderr,
                             rf"\Aplumb echo: cannot (use {self.backend}|listen on .*): .+\n\Z")

    def test_listens_on_ipv6(self):
        try:
            probe = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError as e:
            self.skipTest(f"there is no IPv6 here: {e}")
        probe.close()
        with self.server("--host", "::1") as server:
            self.assertEqual(server.host, "[::1]")
            with socket.create_connection(("::1", server.port), PATIENCE) as client:
                self.assertEqual(exchange(client, b"hello"), b"hello")
            self.assert_clean(server.stop(), connections=1)


class OnEpoll(OnEveryBackend, unittest.TestCase):
    backend = "epoll"


class OnIoUring(OnEveryBackend, unittest.TestCase):
    backend = "io_uring"

    @classmethod
    def setUpClass(cls):
        if reason := refusal_of_io_uring():
            raise unittest.SkipTest(reason)


class CommandLine(unittest.TestCase):
    def test_wrong_usage_says_what_is_wrong_and_exits_with_2(self):
        for arguments, complaint in (
            ([], "subcommand"),
            (["bogus"], "bogus"),
            (["echo", "bogus"], "bogus"),
            (["echo", "--bogus"], "--bogus"),
            (["echo", "--port"], "--port"),
            (["echo", "--port", "65536"], "--port"),
            (["echo", "--port", "-1"], "--port"),
            (["echo", "--port", "http"], "--port"),
            (["echo", "--threads", "0"], "--threads"),
            (["echo", "--threads", "two"], "--threads"),
            (["echo", "--multiplexer", "kqueue"], "kqueue"),
            (["echo", "--max-connections", "-1"], "--max-connections"),
            (["echo", "--max-connections", "1", "--threads", "2"], "--max-connections"),
            (["echo", "--max-requests", "-1"], "--max-requests"),
            (["echo", "--grace", "-1"], "--grace"),
            (["echo", "--grace", "soon"], "--grace"),
            (["echo", "--idle-timeout", "nan"], "--idle-timeout"),
        ):
            with self.subTest(arguments=arguments):
                refused = run(*arguments)
                self.assertEqual(refused.returncode, 2, refused)
                self.assertIn(complaint, refused.stderr.splitlines()[0])
                self.assertEqual(refused.stdout, "")

    def test_help_and_version_go_to_stdout_and_exit_with_0(self):
        version = run("--version")
        self.assertEqual((version.returncode, version.stderr), (0, ""))
        self.assertRegex(version.stdout, r"\Aplumb \d+\.\d+\.\d+\n\Z")
        for arguments in (["--help"], ["echo", "--help"]):
            shown = run(*arguments)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("Usage: plumb", shown.stdout)
        for option in ("--host", "--port", "--multiplexer", "--threads", "--max-connections",
                       "--max-requests", "--idle-timeout", "--grace"):
            self.assertIn(option, shown.stdout)

    def test_what_cannot_be_had_is_one_line_and_exit_code_1(self):
        for arguments, line in (
            (["--host", "example.com"], "example.com: not a numeric address"),
            (["--host", "1.2.3"], "1.2.3: not a numeric address"),
            (["--host", ""], "not a numeric address"),
            (["--host", "192.0.2.1"],
             "cannot listen on 192.0.2.1:0: Cannot assign requested address"),
        ):
            with self.subTest(arguments=arguments):
                refused = run("echo", "--port", "0", *arguments)
                self.assertEqual(refused.returncode, 1)
                self.assertRegex(refused.stderr, rf"\Aplumb echo: .*{re.escape(line)}\n\Z")
                self.assertEqual(refused.stdout, "")

    def test_the_environment_chooses_the_best_multiplexer(self):
        refused = run("echo", "--port", "0", env={**CLEAN_ENVIRONMENT, "PLUMB_MULTIPLEXER": "kqueue"})
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"\Aplumb echo: .*PLUMB_MULTIPLEXER=kqueue.*\n\Z")
        with Server() as server:
            self.assertIn(server.backend, ("epoll", "io_uring"))
            self.assertEqual(server.stop()[0], 0)

    def test_localhost_is_understood(self):
        with Server("--host", "localhost") as server:
            self.assertEqual(server.host, "127.0.0.1")
            self.assertEqual(server.stop()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
