#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `plumb cat` promises at its command line, beside ncat and socat. PLUMB names the program."""

import contextlib
import fcntl
import filecmp
import hashlib
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

PLUMB = os.environ["PLUMB"]
PATIENCE = 30  # seconds: how long a test waits for what must happen
PROMPT = 5  # seconds: what should take no time at all, on a busy machine
LARGE = 64 << 20
CLEAN_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PLUMB_MULTIPLEXER"}


def run(*arguments, **options):
    """Runs the tool to its end."""
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        del options["stdin"]
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [PLUMB, "cat", *arguments], stderr=subprocess.PIPE, timeout=PATIENCE,
        env=CLEAN_ENVIRONMENT, **options)


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(type=kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def receive_all(client):
    data = bytearray()
    while more := client.recv(65536):
        data += more
    return bytes(data)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def content(path):
    with open(path, "rb") as file:
        return file.read()


def checksum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def retried(call):
    """What `call` gives as soon as the other program is there."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except (ConnectionRefusedError, FileNotFoundError):
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def is_listened_to(port, protocol="tcp"):
    """Whether a socket has this port, without connecting to it."""
    with open(f"/proc/net/{protocol}") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    states = {"tcp": "0A", "udp": "07"}
    return any(int(r[1].rpartition(":")[2], 16) == port and r[3] == states[protocol] for r in rows)


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it never happened")
        time.sleep(0.01)


def is_blocked(process):
    """Whether it sleeps for a while without having run in between."""
    def state():
        with open(f"/proc/{process.pid}/status") as status:
            text = status.read()
        return (re.search(r"State:\s+(\S)", text)[1],
                re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", text)[1])

    before = state()
    time.sleep(0.3)
    return before[0] == "S" and state() == before


class Program:
    """A program that runs beside the test."""

    def __init__(self, *command, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen(command, env=CLEAN_ENVIRONMENT, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, within=PATIENCE):
        """Waits for its end. Returns the exit code, stdout and stderr."""
        out, err = self.process.communicate(timeout=within)
        return self.process.returncode, out, err


def refusal_of_io_uring():
    """The reason why this machine has no ring, or None."""
    tried = run("--multiplexer", "io_uring", "file:/dev/null", "-")
    return tried.stderr.decode() if tried.returncode != 0 else None


class OnEveryBackend:
    backend = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="cat_test-", dir=os.getcwd())
        cls.large = os.path.join(cls.directory, "large")
        with open(cls.large, "wb") as file:
            file.write(random.Random(1).randbytes(LARGE))
        cls.large_sum = checksum(cls.large)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def setUp(self):
        self.own = tempfile.mkdtemp(dir=self.directory)

    def tearDown(self):
        shutil.rmtree(self.own)

    def path(self, name):
        return os.path.join(self.own, name)

    def run_cat(self, *arguments, **options):
        return run("--multiplexer", self.backend, *arguments, **options)

    def cat(self, *arguments, **options):
        return Program(PLUMB, "cat", "--multiplexer", self.backend, *arguments, **options)

    def listening(self, program):
        """Where a `plumb cat` listens."""
        readable, _, _ = select.select([program.process.stderr], [], [], PATIENCE)
        line = program.process.stderr.readline().decode() if readable else ""
        found = re.fullmatch(r"plumb cat: listening on (\S+)\n", line)
        self.assertTrue(found, f"no greeting: {line!r}")
        return found[1]

    def port_of(self, program):
        return int(self.listening(program).rpartition(":")[2])

    def connected_to(self, program):
        return socket.create_connection(("127.0.0.1", self.port_of(program)), PATIENCE)

    def assert_success(self, ended):
        code, _, err = ended
        self.assertEqual((code, err), (0, b""))

    def assert_interrupted(self, ended, number):
        code, _, err = ended
        self.assertEqual((code, err), (128 + number, b""))

    def assert_refused(self, ended, line):
        """Exit code 1 and one line."""
        code, err = (ended.returncode, ended.stderr) if hasattr(ended, "stderr") else ended[::2]
        self.assertEqual(code, 1, err)
        self.assertRegex(err.decode(), rf"\Aplumb cat: {line}\n\Z")

    # Files and pipes.

    def test_copies_a_file_as_cp_and_socat_do(self):
        target = self.path("target")
        with open(target, "wb") as old:
            old.write(b"longer than nothing")
        ended = self.run_cat(f"file:{self.large}", f"file:{target}")
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        subprocess.run(["cp", self.large, self.path("cp")], check=True, timeout=PATIENCE)
        subprocess.run(["socat", "-u", f"OPEN:{self.large}", f"CREATE:{self.path('socat')}"],
                       check=True, timeout=PATIENCE)
        self.assertTrue(filecmp.cmp(target, self.path("cp"), shallow=False))
        self.assertTrue(filecmp.cmp(target, self.path("socat"), shallow=False))

    def test_a_file_that_was_longer_is_cut(self):
        with open(self.path("short"), "wb") as file:
            file.write(b"short")
        for source in ("file:" + self.path("short"), "-"):
            with open(self.path("target"), "wb") as file:
                file.write(b"something longer")
            with open(self.path("short"), "rb") as given:
                self.assertEqual(self.run_cat(source, "file:" + self.path("target"),
                                              stdin=given).returncode, 0)
            self.assertEqual(content(self.path("target")), b"short")

    def test_a_file_is_kept_until_the_other_side_is_open(self):
        with open(self.path("target"), "wb") as file:
            file.write(b"old")
        ended = self.run_cat(f"tcp:127.0.0.1:{free_port()}", "file:" + self.path("target"))
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(content(self.path("target")), b"old")

    def test_a_file_that_does_not_tell_its_size_is_copied(self):
        for source in ("/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"):
            if not os.path.exists(source):
                continue
            ended = self.run_cat(f"file:{source}", "file:" + self.path("target"))
            self.assertEqual((ended.returncode, ended.stderr), (0, b""))
            self.assertTrue(content(source))
            self.assertEqual(content(self.path("target")), content(source))

    def test_a_standard_stream_that_is_not_used_need_not_be_there(self):
        with open(self.path("source"), "wb") as file:
            file.write(b"text")
        for sides, closed in ((f"- file:{self.path('out')} < {self.path('source')}", ">&-"),
                              (f"file:{self.path('source')} - > {self.path('out')}", "<&-")):
            ended = subprocess.run(
                ["sh", "-c", f'"$0" cat --multiplexer {self.backend} {sides} {closed}', PLUMB],
                stderr=subprocess.PIPE, timeout=PATIENCE, env=CLEAN_ENVIRONMENT)
            self.assertEqual((ended.returncode, ended.stderr), (0, b""))
            self.assertEqual(content(self.path("out")), b"text")
            os.unlink(self.path("out"))

    def test_copies_what_is_piped_through_it(self):
        with open(self.large, "rb") as given, open(self.path("out"), "wb") as out:
            with Program("cat", stdin=given, stdout=subprocess.PIPE) as before:
                with self.cat("-", "-", stdin=before.process.stdout, stdout=subprocess.PIPE) as cat:
                    with Program("cat", stdin=cat.process.stdout, stdout=out) as after:
                        before.process.stdout.close()
                        cat.process.stdout.close()
                        self.assertEqual(after.end()[0], 0)
                        self.assertEqual(cat.process.wait(PATIENCE), 0)
                        self.assertEqual(before.process.wait(PATIENCE), 0)
        self.assertEqual(checksum(self.path("out")), self.large_sum)

    def test_shares_named_pipes_with_the_shell(self):
        pipe, out = self.path("pipe"), self.path("out")
        for side in ("pipe", "file"):
            os.path.exists(pipe) or os.mkfifo(pipe)
            with Program("sh", "-c", f"cat {pipe} > {out}") as shell:
                ended = self.run_cat(f"file:{self.large}", f"{side}:{pipe}")
                self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                self.assertEqual(shell.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum)
            with Program("sh", "-c", f"cat {self.large} > {pipe}") as shell:
                ended = self.run_cat(f"{side}:{pipe}", f"file:{out}")
                self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                self.assertEqual(shell.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum)

    def test_makes_a_named_pipe_and_waits_for_who_opens_it(self):
        pipe = self.path("pipe")
        for reads in (True, False):
            sides = (f"pipe:{pipe}", "-") if reads else ("-", f"pipe:{pipe}")
            with self.cat(*sides, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
                wait_until(lambda: os.path.exists(pipe))
                time.sleep(0.05)
                self.assertIsNone(cat.process.poll())
                if reads:
                    with open(pipe, "wb") as writer:
                        writer.write(b"hello")
                    self.assertEqual(cat.end(), (0, b"hello", b""))
                else:
                    with open(pipe, "rb") as reader:
                        cat.process.stdin.write(b"hello")
                        cat.process.stdin.close()
                        cat.process.stdin = None
                        self.assertEqual(reader.read(), b"hello")
                    self.assert_success(cat.end())

    def test_devices_are_sides_too(self):
        ended = self.run_cat("file:/dev/null", "-")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, b"", b""))
        ended = self.run_cat("-", "file:/dev/null", input=b"gone")
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))

    def test_leaves_the_flags_of_standard_streams_alone(self):
        def flags(*descriptors):
            return [fcntl.fcntl(d, fcntl.F_GETFL) for d in descriptors]

        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        with self.cat("-", "tcp-listen:0", stdin=in_read, stdout=out_write) as cat:
            before = flags(in_read, out_write)
            with self.connected_to(cat) as client:
                os.write(in_write, b"ping")
                self.assertEqual(client.recv(4), b"ping")
                client.sendall(b"pong")
                self.assertEqual(os.read(out_read, 4), b"pong")
                self.assertEqual(flags(in_read, out_write), before)
                cat.process.send_signal(signal.SIGTERM)
                self.assert_interrupted(cat.end(), signal.SIGTERM)
        self.assertEqual(flags(in_read, out_write), before)
        for descriptor in (in_read, in_write, out_read, out_write):
            os.close(descriptor)

    def test_a_terminal_is_read_line_by_line_to_its_end(self):
        user, program = pty.openpty()
        try:
            with self.cat("-", "tcp-listen:0", stdin=program, stdout=program) as cat:
                with self.connected_to(cat) as client:
                    for line in (b"one\n", b"two\n"):
                        os.write(user, line)
                        self.assertEqual(client.recv(100), line)
                    client.sendall(b"answer")
                    shown = b""
                    while b"answer" not in shown:
                        shown += os.read(user, 1000)
                    os.write(user, b"\x04")
                    self.assertEqual(client.recv(1), b"")
                self.assert_success(cat.end())
        finally:
            os.close(user)
            os.close(program)

    # Sockets.

    def test_tcp_from_socat_and_ncat(self):
        out = self.path("out")
        for client in (["socat", "-u", f"OPEN:{self.large}", "TCP:127.0.0.1:{}"],
                       ["ncat", "--send-only", "127.0.0.1", "{}"]):
            with self.cat("tcp-listen:0", f"file:{out}") as cat, open(self.large, "rb") as given:
                port = self.port_of(cat)
                with Program(*[a.format(port) for a in client], stdin=given) as other:
                    self.assert_success(cat.end())
                    self.assertEqual(other.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum, client)

    def test_tcp_to_socat_and_ncat(self):
        out = self.path("out")
        for server in (["socat", "-u", "TCP-LISTEN:{},bind=127.0.0.1", f"CREATE:{out}"],
                       ["ncat", "-l", "--recv-only", "-o", "/dev/null", "127.0.0.1", "{}"]):
            port = free_port()
            with contextlib.ExitStack() as stack:
                to = stack.enter_context(open(out, "wb")) if server[0] == "ncat" else None
                other = stack.enter_context(Program(*[a.format(port) for a in server], stdout=to))
                wait_until(lambda: is_listened_to(port))
                ended = self.run_cat(f"file:{self.large}", f"tcp:127.0.0.1:{port}")
                self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                self.assertEqual(other.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum, server)

    def test_talks_both_ways_with_socat_and_ncat(self):
        ping, pong = random.Random(2).randbytes(1 << 20), random.Random(3).randbytes(1 << 20)
        for server in (["socat", "-t", "10", "TCP-LISTEN:{},bind=127.0.0.1", "-"],
                       ["ncat", "-l", "127.0.0.1", "{}"]):
            port = free_port()
            with open(self.path("pong"), "wb") as file:
                file.write(pong)
            with open(self.path("pong"), "rb") as given:
                with Program(*[a.format(port) for a in server], stdin=given,
                             stdout=subprocess.PIPE) as other:
                    wait_until(lambda: is_listened_to(port))
                    got = []
                    reader = threading.Thread(target=lambda: got.append(other.process.stdout.read()))
                    reader.start()
                    ended = self.run_cat("-", f"tcp:localhost:{port}", input=ping)
                    reader.join(PATIENCE)
                    self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                    self.assertTrue(ended.stdout == pong)
                    self.assertTrue(got and got[0] == ping)

    def test_unix_sockets_in_both_roles(self):
        out, name = self.path("out"), self.path("socket")
        for client in (["socat", "-u", f"OPEN:{self.large}", f"UNIX:{name}"],
                       ["ncat", "-U", "--send-only", name]):
            with self.cat(f"unix-listen:{name}", f"file:{out}") as cat:
                self.assertEqual(self.listening(cat), f"unix:{name}")
                with open(self.large, "rb") as given, Program(*client, stdin=given) as other:
                    self.assert_success(cat.end())
                    self.assertEqual(other.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum, client)
            self.assertFalse(os.path.exists(name), "it removes its socket")
        for server in (["socat", "-u", f"UNIX-LISTEN:{name}", f"CREATE:{out}"],
                       ["ncat", "-l", "-U", "--recv-only", name]):
            with contextlib.ExitStack() as stack:
                to = stack.enter_context(open(out, "wb")) if server[0] == "ncat" else None
                other = stack.enter_context(Program(*server, stdout=to))
                wait_until(lambda: os.path.exists(name))
                time.sleep(0.05)  # between bind and listen
                ended = self.run_cat(f"file:{self.large}", f"unix:{name}")
                self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                self.assertEqual(other.end()[0], 0)
            self.assertEqual(checksum(out), self.large_sum, server)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)

    def test_abstract_unix_names(self):
        name = f"@plumb-cat-{os.getpid()}-{self.backend}"
        with self.cat(f"unix-listen:{name}", "-", stdout=subprocess.PIPE) as cat:
            self.listening(cat)
            self.assertEqual(self.run_cat("-", f"unix:{name}", input=b"hello").returncode, 0)
            self.assertEqual(cat.end(), (0, b"hello", b""))

    def test_udp_to_socat_and_ncat(self):
        for server in (["socat", "-u", "UDP4-RECV:{},bind=127.0.0.1", "-"],
                       ["ncat", "-u", "-l", "--recv-only", "127.0.0.1", "{}"]):
            port = free_port(socket.SOCK_DGRAM)
            with Program(*[a.format(port) for a in server], stdout=subprocess.PIPE) as other:
                wait_until(lambda: is_listened_to(port, "udp"))
                ended = self.run_cat("-", f"udp:127.0.0.1:{port}", "--one-way", input=b"hello")
                self.assertEqual((ended.returncode, ended.stderr), (0, b""))
                self.assertEqual(os.read(other.process.stdout.fileno(), 100), b"hello")

    def test_udp_from_socat_and_ncat_and_back(self):
        for client in (["socat", "-T", "10", "-", "UDP:127.0.0.1:{}"],
                       ["ncat", "-u", "127.0.0.1", "{}"]):
            with self.cat("udp-listen:0", "-", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as cat:
                port = self.port_of(cat)
                with Program(*[a.format(port) for a in client], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE) as other:
                    for text in (b"ping", b"again"):
                        os.write(other.process.stdin.fileno(), text)
                        self.assertEqual(os.read(cat.process.stdout.fileno(), 100), text)
                        os.write(cat.process.stdin.fileno(), text.upper())
                        self.assertEqual(os.read(other.process.stdout.fileno(), 100), text.upper())
                    cat.process.send_signal(signal.SIGINT)
                    self.assert_interrupted(cat.end(), signal.SIGINT)

    def test_unix_datagrams_in_both_roles(self):
        name, back = self.path("socket"), self.path("back")
        with self.cat(f"unix-datagram-listen:{name}", "-", "--one-way",
                      stdout=subprocess.PIPE) as cat:
            self.assertEqual(self.listening(cat), f"unix:{name}")
            subprocess.run(["socat", "-u", "-", f"UNIX-SENDTO:{name}"], input=b"no name",
                           check=True, timeout=PATIENCE)
            self.assertEqual(cat.process.stdout.read(7), b"no name")
            cat.process.send_signal(signal.SIGINT)
            self.assert_interrupted(cat.end(), signal.SIGINT)
        self.assertFalse(os.path.exists(name), "it removes its socket")
        with self.cat(f"unix-datagram-listen:{name}", "-", stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE) as cat:
            self.listening(cat)
            with Program("socat", "-T", "10", "-", f"UNIX-CONNECT:{name},type=2,bind={back}",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
                os.write(other.process.stdin.fileno(), b"ping")
                self.assertEqual(os.read(cat.process.stdout.fileno(), 100), b"ping")
                os.write(cat.process.stdin.fileno(), b"pong")
                self.assertEqual(os.read(other.process.stdout.fileno(), 100), b"pong")
            cat.process.send_signal(signal.SIGINT)
            self.assert_interrupted(cat.end(), signal.SIGINT)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(self.path("server"))
            server.settimeout(PATIENCE)
            with self.cat("-", f"unix-datagram:{self.path('server')}", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as cat:
                os.write(cat.process.stdin.fileno(), b"ping")
                text, sender = server.recvfrom(100)
                self.assertEqual(text, b"ping")
                server.sendto(b"pong", sender)
                self.assertEqual(os.read(cat.process.stdout.fileno(), 100), b"pong")
                cat.process.send_signal(signal.SIGINT)
                self.assert_interrupted(cat.end(), signal.SIGINT)

    def test_datagrams_keep_their_size_and_those_that_are_empty_are_no_end(self):
        with socket.socket(type=socket.SOCK_DGRAM) as sink:
            sink.bind(("127.0.0.1", 0))
            sink.settimeout(PATIENCE)
            with self.cat("udp-listen:0", f"udp:127.0.0.1:{sink.getsockname()[1]}") as cat:
                port = self.port_of(cat)
                with socket.socket(type=socket.SOCK_DGRAM) as source:
                    source.connect(("127.0.0.1", port))
                    for size in (1, 0, 1000, 60000):
                        source.send(bytes(size))
                    for size in (1, 1000, 60000):
                        self.assertEqual(len(sink.recv(65536)), size)
                cat.process.send_signal(signal.SIGTERM)
                self.assert_interrupted(cat.end(), signal.SIGTERM)

    def test_hears_only_who_has_sent_first(self):
        with self.cat("udp-listen:0", "-", "--one-way", stdout=subprocess.PIPE) as cat:
            port = self.port_of(cat)
            with socket.socket(type=socket.SOCK_DGRAM) as first, \
                    socket.socket(type=socket.SOCK_DGRAM) as other:
                cat.process.send_signal(signal.SIGSTOP)  # so that all is there before it looks
                first.sendto(b"one ", ("127.0.0.1", port))
                other.sendto(b"not me ", ("127.0.0.1", port))
                first.sendto(b"two", ("127.0.0.1", port))
                cat.process.send_signal(signal.SIGCONT)
                self.assertEqual(cat.process.stdout.read(7), b"one two")
                cat.process.send_signal(signal.SIGINT)
                self.assert_interrupted(cat.end(), signal.SIGINT)

    def test_calls_nobody_before_it_was_called(self):
        with socket.create_server(("127.0.0.1", 0)) as called:
            called.settimeout(PATIENCE)
            with self.cat("tcp-listen:0", f"tcp:127.0.0.1:{called.getsockname()[1]}") as cat:
                port = self.port_of(cat)
                called.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    called.accept()
                called.settimeout(PATIENCE)
                with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                    client.sendall(b"ping")
                    with called.accept()[0] as peer:
                        self.assertEqual(peer.recv(4), b"ping")
                self.assert_success(cat.end())

    def test_one_way_to_a_peer_that_also_sends_loses_nothing(self):
        with self.cat("-", "tcp-listen:0", "--one-way", stdin=subprocess.PIPE) as cat:
            with self.connected_to(cat) as client:
                client.sendall(b"nobody reads this")
                cat.process.stdin.write(bytes(100_000))
                cat.process.stdin.close()
                cat.process.stdin = None
                time.sleep(0.1)  # it could have ended, which would reset the connection
                self.assertEqual(len(receive_all(client)), 100_000)
            self.assert_success(cat.end())

    def test_one_direction_goes_on_when_the_other_has_ended(self):
        with self.cat("-", "tcp-listen:0", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
            with self.connected_to(cat) as client:
                cat.process.stdin.close()
                cat.process.stdin = None
                self.assertEqual(client.recv(1), b"")
                client.sendall(b"later")
                self.assertEqual(os.read(cat.process.stdout.fileno(), 100), b"later")
            self.assert_success(cat.end())
        with self.cat("-", "tcp-listen:0", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
            with self.connected_to(cat) as client:
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(cat.process.stdout.read(), b"", "it is closed")
                os.write(cat.process.stdin.fileno(), b"later")
                self.assertEqual(client.recv(100), b"later")
                cat.process.stdin.close()
                cat.process.stdin = None
                self.assertEqual(client.recv(1), b"")
            self.assert_success(cat.end())

    def test_one_way_ends_with_its_input(self):
        with self.cat("-", "tcp-listen:0", "--one-way", stdin=subprocess.PIPE) as cat:
            with self.connected_to(cat) as client:
                cat.process.stdin.write(b"hello")
                cat.process.stdin.close()
                cat.process.stdin = None
                self.assertEqual(receive_all(client), b"hello")
                self.assert_success(cat.end())

    def test_connects_two_sockets(self):
        with self.cat("tcp-listen:0", f"unix-listen:{self.path('socket')}") as cat:
            with self.connected_to(cat) as one, socket.socket(socket.AF_UNIX) as other:
                other.settimeout(PATIENCE)
                retried(lambda: other.connect(self.path("socket")))
                one.sendall(b"ping")
                self.assertEqual(other.recv(4), b"ping")
                other.sendall(b"pong")
                self.assertEqual(one.recv(4), b"pong")
            self.assertEqual(cat.end()[0], 0)

    def test_a_slow_reader_bounds_its_memory(self):
        message = content(self.large)
        peak = None
        with self.cat("tcp-listen:0", "-", stdout=subprocess.PIPE) as cat:
            with self.connected_to(cat) as client:
                sender = threading.Thread(
                    target=lambda: (client.sendall(message), client.shutdown(socket.SHUT_WR)))
                sender.start()
                got = bytearray()
                while part := os.read(cat.process.stdout.fileno(), 16384):
                    got += part
                    if len(got) < 1 << 20:
                        time.sleep(0.002)
                    if peak is None and len(got) > LARGE - (1 << 20):
                        with open(f"/proc/{cat.process.pid}/status") as status:
                            peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])
                sender.join()
            self.assertTrue(got == message)
            self.assertIsNotNone(peak)
            if not is_sanitized():
                self.assertLess(peak, LARGE // 2 >> 10)
            self.assert_success(cat.end())

    # What fails.

    def test_a_reset_peer_is_told(self):
        for sides in (("tcp-listen:0", "file:/dev/null"), ("file:/dev/zero", "tcp-listen:0")):
            with self.cat(*sides) as cat:
                client = self.connected_to(cat)
                if sides[0] == "tcp-listen:0":
                    client.sendall(b"x")
                else:
                    client.recv(1000)
                reset(client)
                self.assert_refused(cat.end(), r"cannot (read from|write to) tcp-listen:0: "
                                    "(Connection reset by peer|Broken pipe)")

    def test_a_full_disk_is_told(self):
        for sides in ((f"file:{self.large}", "file:/dev/full"), ("-", "file:/dev/full")):
            self.assert_refused(self.run_cat(*sides, input=b"text"),
                                "cannot write to file:/dev/full: No space left on device")
        with open("/dev/full", "wb") as full:
            self.assert_refused(self.run_cat("-", "-", input=b"text", stdout=full),
                                "cannot write to standard output: No space left on device")

    def test_a_standard_output_that_nobody_reads_or_that_is_not_there_is_told(self):
        read, write = os.pipe()
        os.close(read)
        self.assert_refused(self.run_cat(f"file:{self.large}", "-", stdout=write),
                            "cannot write to standard output: Broken pipe")
        os.close(write)
        ended = subprocess.run(
            ["sh", "-c", '"$0" cat file:/dev/zero - >&-', PLUMB], stderr=subprocess.PIPE,
            timeout=PATIENCE, env=CLEAN_ENVIRONMENT)
        self.assert_refused(ended, "cannot write to standard output: Bad file descriptor")

    def test_what_is_not_there_is_told(self):
        missing = self.path("missing")
        for sides, line in (
            ((f"file:{missing}", "-"), f"cannot open file:{missing}: No such file or directory"),
            (("-", f"file:{missing}/x"), f"cannot open file:{missing}/x: No such file or directory"),
            ((f"file:{self.own}", "-"), f"cannot open file:{self.own}: Is a directory"),
            ((f"pipe:{self.large}", "-"), f"cannot open pipe:{self.large}: the native handle names"
             " something of another kind"),
            (("-", f"unix:{missing}"), f"cannot connect to unix:{missing}: "
             "No such file or directory"),
            (("-", f"tcp:127.0.0.1:{free_port()}"), r"cannot connect to tcp:\S+: Connection refused"),
            (("-", "tcp-listen:192.0.2.1:0"), r"cannot listen on \S+: "
             "Cannot assign requested address"),
        ):
            with self.subTest(sides=sides):
                self.assert_refused(self.run_cat(*sides), line)

    def test_a_port_or_a_path_in_use_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.assert_refused(self.run_cat(f"tcp-listen:{port}", "-"),
                                f"cannot listen on tcp-listen:{port}: Address already in use")
        path = self.path("socket")
        with open(path, "wb"):
            pass
        self.assert_refused(self.run_cat(f"unix-listen:{path}", "-"),
                            f"cannot listen on unix-listen:{path}: Address already in use")
        self.assertTrue(os.path.exists(path), "it is somebody else's")

    def test_a_file_is_not_copied_onto_itself(self):
        path = self.path("file")
        with open(path, "wb") as file:
            file.write(b"content")
        os.symlink(path, self.path("link"))
        for target in (path, self.path("link")):
            self.assert_refused(self.run_cat(f"file:{path}", f"file:{target}"),
                                f"file:{path} and file:{target} are the same file")
        self.assertEqual(content(path), b"content")

    def test_a_standard_stream_is_not_copied_onto_its_own_file(self):
        path = self.path("file")
        with open(path, "wb") as file:
            file.write(b"content")
        with open(path, "rb") as given:
            self.assert_refused(self.run_cat("-", f"file:{path}", stdin=given),
                                f"standard input and file:{path} are the same file")
        with open(path, "ab") as out:
            self.assert_refused(self.run_cat(f"file:{path}", "-", stdout=out),
                                f"file:{path} and standard output are the same file")
        with open(path, "rb") as given, open(path, "ab") as out:
            self.assert_refused(self.run_cat("-", "-", stdin=given, stdout=out),
                                "standard input and standard output are the same file")
        self.assertEqual(content(path), b"content")

    def test_a_failure_is_an_exit_code_where_it_cannot_be_told(self):
        with open("/dev/full", "wb") as full:
            for source in ("file:" + self.path("missing"), "tcp-listen:0"):
                ended = subprocess.run(
                    [PLUMB, "cat", "--multiplexer", self.backend, "--timeout", "0.2", source, "-"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=full,
                    timeout=PATIENCE, env=CLEAN_ENVIRONMENT)
                self.assertEqual(ended.returncode, 1)

    def test_a_failure_is_told_although_the_other_direction_is_stuck(self):
        with open("/dev/full", "wb") as full, open("/dev/zero", "rb") as zero:
            with self.cat("-", "tcp-listen:0", stdin=zero, stdout=full) as cat:
                with self.connected_to(cat) as client:  # and doesn't read
                    wait_until(lambda: is_blocked(cat.process))
                    client.sendall(b"text")
                    self.assert_refused(cat.end(), "cannot write to standard output: "
                                        "No space left on device")

    def test_nobody_there_within_the_time_is_told(self):
        with contextlib.ExitStack() as stack:
            silent = stack.enter_context(socket.socket())
            silent.bind(("127.0.0.1", 0))
            silent.listen(0)
            for _ in range(3):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(silent.getsockname())
            time.sleep(0.1)
            port = silent.getsockname()[1]
            for sides, line in (
                (("-", f"tcp:127.0.0.1:{port}"), r"cannot connect to \S+: Connection timed out"),
                (("-", f"pipe:{self.path('pipe')}"), r"cannot open \S+: Connection timed out"),
            ):
                with self.subTest(sides=sides):
                    self.assert_refused(self.run_cat("--timeout", "0.2", *sides), line)
        for listens in ("tcp-listen:0", "udp-listen:0"):
            with self.cat("--timeout", "0.2", listens, "-") as cat:
                self.listening(cat)
                self.assert_refused(cat.end(), r"cannot (accept|read) from \S+: "
                                    "Connection timed out")

    def test_nothing_moving_for_too_long_is_told(self):
        with self.cat("--timeout", "2", "tcp-listen:0", "-") as cat:
            with self.connected_to(cat) as client:
                for _ in range(5):
                    client.sendall(b"busy")
                    time.sleep(0.5)
                self.assert_refused(cat.end(), "nothing has moved for 2 s")
        with self.cat("--timeout", "0.3", "file:/dev/zero", "tcp-listen:0") as cat:
            with self.connected_to(cat):  # and doesn't read
                self.assert_refused(cat.end(), "nothing has moved for 0.3 s")

    def test_datagrams_that_stop_coming_are_an_end(self):
        with self.cat("--timeout", "2", "udp-listen:0", "-", stdout=subprocess.PIPE) as cat:
            port = self.port_of(cat)
            with socket.socket(type=socket.SOCK_DGRAM) as source:
                source.sendto(b"hello", ("127.0.0.1", port))
            self.assertEqual(cat.end(), (0, b"hello", b""))

    def test_datagrams_that_could_not_be_written_in_time_are_told(self):
        out_read, out_write = os.pipe()
        try:
            os.set_blocking(out_write, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(out_write, bytes(4096))
            os.set_blocking(out_write, True)
            with self.cat("--timeout", "2", "udp-listen:0", "-", stdout=out_write) as cat:
                port = self.port_of(cat)
                with socket.socket(type=socket.SOCK_DGRAM) as source:
                    source.sendto(b"hello", ("127.0.0.1", port))
                self.assert_refused(cat.end(), "nothing has moved for 2 s")
        finally:
            os.close(out_read)
            os.close(out_write)

    # Signals.

    def test_a_signal_that_cuts_a_copy_off_is_the_exit_code(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            target = self.path("target")
            with self.cat("file:/dev/zero", f"file:{target}") as cat:
                wait_until(lambda: os.path.exists(target) and os.path.getsize(target) != 0)
                cat.process.send_signal(number)
                self.assert_interrupted(cat.end(), number)
            os.unlink(target)

    def test_a_signal_ends_it_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.cat("tcp-listen:0", "-") as cat:
                self.listening(cat)
                cat.process.send_signal(number)
                self.assert_interrupted(cat.end(PROMPT), number)
            with self.cat("tcp-listen:0", "-", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as cat:
                with self.connected_to(cat) as client:
                    client.sendall(b"hello")
                    self.assertEqual(os.read(cat.process.stdout.fileno(), 100), b"hello")
                    cat.process.send_signal(number)
                    self.assert_interrupted(cat.end(PROMPT), number)
                    self.assertEqual(client.recv(1), b"")

    def test_a_peer_that_does_not_read_is_waited_for_no_longer_than_a_moment(self):
        with self.cat("file:/dev/zero", "tcp-listen:0") as cat:
            with self.connected_to(cat):
                wait_until(lambda: is_blocked(cat.process))
                cat.process.send_signal(signal.SIGTERM)
                self.assert_refused(cat.end(PROMPT),
                                    "cannot write to tcp-listen:0: Operation canceled")

    # Progress.

    def test_progress_is_shown_where_it_is_asked_for(self):
        ended = self.run_cat("--progress", "always", f"file:{self.large}", "file:/dev/null")
        self.assertEqual(ended.returncode, 0)
        self.assertRegex(ended.stderr.decode(), r"\r64\.0 MiB, [0-9.]+ [KMG]iB/s\s+\n\Z")
        ended = self.run_cat("--progress", "always", f"file:{self.large}", "file:/dev/full")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr.decode(), r"/s\s+\nplumb cat: cannot write [^\n]+\n\Z")
        user, program = pty.openpty()
        try:
            for option, shown in (("auto", True), ("never", False)):
                ended = subprocess.run(
                    [PLUMB, "cat", "--multiplexer", self.backend, "--progress", option,
                     f"file:{self.large}", "file:/dev/null"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=program,
                    timeout=PATIENCE, env=CLEAN_ENVIRONMENT)
                self.assertEqual(ended.returncode, 0)
                readable = select.select([user], [], [], PATIENCE if shown else 0)[0]
                self.assertEqual(bool(readable), shown)
                if shown:
                    self.assertIn(b"64.0 MiB", os.read(user, 1000))
                    while select.select([user], [], [], 0)[0]:
                        os.read(user, 1000)
        finally:
            os.close(user)
            os.close(program)


def is_sanitized():
    """Sanitizers need memory of their own."""
    program = content(PLUMB)
    return b"__asan_init" in program or b"__tsan_init" in program


class OnEpoll(OnEveryBackend, unittest.TestCase):
    backend = "epoll"


class OnIoUring(OnEveryBackend, unittest.TestCase):
    backend = "io_uring"

    @classmethod
    def setUpClass(cls):
        if reason := refusal_of_io_uring():
            raise unittest.SkipTest(reason)
        super().setUpClass()


class CommandLine(unittest.TestCase):
    def test_wrong_usage_says_what_is_wrong_and_exits_with_2(self):
        for arguments, complaint in (
            ([], "FIRST"),
            (["-"], "SECOND"),
            (["-", "-", "-"], "-"),
            (["-", "bogus"], "bogus"),
            (["-", "ftp:there"], "ftp:there"),
            (["-", "tcp:"], "HOST:PORT"),
            (["-", "tcp:7000"], "HOST:PORT"),
            (["-", "tcp:127.0.0.1:65536"], "HOST:PORT"),
            (["-", "tcp:127.0.0.1:http"], "HOST:PORT"),
            (["-", "tcp:example.com:80"], "not a numeric address"),
            (["tcp-listen:", "-"], "PORT"),
            (["-", "unix:"], "path"),
            (["-", "unix:" + "x" * 200], "x"),
            (["-", "file:"], "path"),
            (["-", "-", "--timeout", "soon"], "--timeout"),
            (["-", "-", "--timeout", "-1"], "--timeout"),
            (["-", "-", "--multiplexer", "kqueue"], "kqueue"),
            (["-", "-", "--progress", "maybe"], "maybe"),
            (["-", "-", "--bogus"], "--bogus"),
        ):
            with self.subTest(arguments=arguments):
                refused = run(*arguments)
                self.assertEqual(refused.returncode, 2, refused)
                self.assertIn(complaint, refused.stderr.decode().splitlines()[0])
                self.assertEqual(refused.stdout, b"")

    def test_help_names_every_kind_of_side_and_every_option(self):
        shown = run("--help")
        self.assertEqual((shown.returncode, shown.stderr), (0, b""))
        for word in ("FIRST", "SECOND", "--one-way", "--timeout", "--multiplexer", "--progress",
                     "file:PATH", "pipe:PATH", "tcp:HOST:PORT", "tcp-listen:", "unix:PATH",
                     "unix-listen:PATH", "udp:HOST:PORT", "udp-listen:", "unix-datagram:PATH",
                     "unix-datagram-listen:PATH"):
            self.assertIn(word, shown.stdout.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
