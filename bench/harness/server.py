# SPDX-License-Identifier: Apache-2.0
"""Starts servers and load generators, each on a core of its own."""
import json
import os
import pathlib
import resource
import selectors
import signal
import subprocess
import tempfile
import time


class MeasureError(Exception):
    """Why something could not be measured; a sentence to print."""


def choose_cores():
    """A core for the server and another for the load, not two threads of one where avoidable."""
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[0]
    try:
        path = f"/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list"
        siblings = set()
        for part in pathlib.Path(path).read_text().strip().split(","):
            low, _, high = part.partition("-")
            siblings.update(range(int(low), int(high or low) + 1))
    except OSError:
        siblings = {first}
    others = [core for core in allowed if core not in siblings] or allowed[1:] or [first]
    return first, others[0]


SERVER_CORE, LOAD_CORE = choose_cores()


def descriptor_limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _prepare(core):
    os.sched_setaffinity(0, {core})
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _start(command, core, **options):
    return subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: _prepare(core),
        **options,
    )


class Server:
    """A server under measurement; ends with the `with` block."""

    def __init__(self, command, wrapper=(), environment=None):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = _start(
            [*wrapper, *command],
            SERVER_CORE,
            stdin=subprocess.DEVNULL,
            stderr=self._errors,
            env={**os.environ, **(environment or {})},
        )
        try:
            self.port = self._read_port(within=60)
        except BaseException:
            self._end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    @property
    def pid(self):
        return self._process.pid

    def stop(self):
        """Ends it by SIGTERM; what it reported."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, within=60):
        """Waits until it ends by itself; what it reported."""
        try:
            text, _ = self._process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            raise MeasureError("the server does not end" + self._what_it_said()) from None
        if self._process.returncode != 0:
            raise MeasureError(
                f"the server ended with {self._process.returncode}" + self._what_it_said()
            )
        try:
            return json.loads(text)
        except ValueError:
            raise MeasureError(f"the server's report is not JSON: {text!r}") from None

    def resident_bytes(self):
        for line in open(f"/proc/{self.pid}/smaps_rollup"):
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
        raise MeasureError("the kernel does not tell the resident memory")

    def _read_port(self, within):
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(within) else ""
        words = line.split()
        if len(words) != 2 or words[0] != "listening":
            raise MeasureError(f"the server does not listen: {line!r}" + self._what_it_said())
        return int(words[1])

    def _what_it_said(self):
        self._errors.seek(0)
        text = self._errors.read().strip()
        return f": {text[-500:]}" if text else ""

    def _end(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()


class Load:
    """Runs the load generator against a server."""

    def __init__(self, program):
        self._program = program

    def run(self, server, *arguments, within=300):
        """Its report; an error when a request failed."""
        with _start([self._program, "--port", server.port, *arguments], LOAD_CORE) as process:
            try:
                text, _ = process.communicate(timeout=within)
            except subprocess.TimeoutExpired:
                process.kill()
                raise MeasureError("the load generator does not end") from None
        return self._check(text)

    def resident_bytes_with_idle(self, server, connections):
        """The server's resident memory while it has this many idle connections."""
        command = [self._program, "--port", server.port, "--connections", connections, "--idle"]
        with _start(command, LOAD_CORE, stdin=subprocess.PIPE) as process:
            process.stdout.readline()  # all had their request answered
            time.sleep(0.2)
            resident = server.resident_bytes()
            text, _ = process.communicate()
        self._check(text)
        return resident

    @staticmethod
    def _check(text):
        try:
            report = json.loads(text)
        except ValueError:
            raise MeasureError(f"the load generator's report is not JSON: {text!r}") from None
        if report["errors"] != 0:
            raise MeasureError(f"{report['errors']} requests failed: {text.strip()}")
        if report["requests"] == 0:
            raise MeasureError("the server answers nothing")
        return report
