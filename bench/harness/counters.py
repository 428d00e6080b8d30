# SPDX-License-Identifier: Apache-2.0
"""What one request costs, counted: each number is the difference between a long and a short run,
divided by the difference of their requests, so that start, connecting and end drop out."""
import pathlib
import re
import tempfile

from harness import suite
from harness.server import MeasureError, Server

WAITS = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "io_uring_enter", "poll", "ppoll", "select"}


class Counters:
    def __init__(self, load, connections, short, long):
        self._load = load
        self._connections = connections
        self._short = short
        self._long = long

    def user_instructions(self, command):
        def count(requests, folder):
            log = folder / "log"
            # Without its own output file; the sum is in the log.
            wrapper = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                       f"--log-file={log}"]
            self._serve(command, requests, wrapper)
            found = re.search(r"Collected : (\d+)", log.read_text())
            if not found:
                raise MeasureError("callgrind reported no instructions")
            return {"instructions": int(found[1])}

        return self._difference(count)["instructions"]

    def system_calls(self, command):
        """Calls and turns of the loop for each request, while each call is traced. Turns are the
        server's own count where it has one, else the calls that wait."""

        def count(requests, folder):
            table = folder / "table"
            wrapper = ["strace", "-f", "-c", "-U", "calls,name", "-o", table]
            report = self._serve(command, requests, wrapper)
            calls = _traced(table)
            waits = sum(number for name, number in calls.items() if name in WAITS)
            return {"calls": sum(calls.values()), "turns": report.get("turns") or waits}

        return self._difference(count)

    def allocations(self, command, preload):
        def count(requests, folder):
            result = folder / "count"
            self._serve(command, requests, environment={
                "LD_PRELOAD": str(preload), "COUNT_ALLOCATIONS_TO": str(result)})
            if not result.exists():
                raise MeasureError("the allocations were not counted")
            return {"allocations": int(result.read_text())}

        return self._difference(count)["allocations"]

    def _serve(self, command, requests, wrapper=(), environment=None):
        with Server([*command, "--max-requests", requests], wrapper, environment) as server:
            self._load.run(server, "--connections", self._connections, "--requests", requests)
            return server.wait()

    def _difference(self, count):
        with tempfile.TemporaryDirectory() as folder:
            few = count(self._short, pathlib.Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            many = count(self._long, pathlib.Path(folder))
        return {name: (many[name] - few[name]) / (self._long - self._short) for name in many}


def _traced(table):
    """The number of calls by name, from what strace counted."""
    rows = re.findall(r"^\s*(\d+)\s+(\w+)$", table.read_text(), re.MULTILINE)
    calls = {name: int(number) for number, name in rows if name != "total"}
    if not calls:
        raise MeasureError("strace reported no calls")
    return calls


# What a whole run of a program takes; `run` runs a command to its end.

def program_instructions(command, *options, run=suite.run_program):
    """Those of the program itself, by callgrind with these options more."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        # Without its own output file; the sum is in the log.
        run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={log}",
             *options, *command])
        found = re.search(r"Collected : (\d+)", log.read_text())
    if not found:
        raise MeasureError("callgrind reported no instructions")
    return int(found[1])


def program_allocations(command, preload, run=suite.run_program):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "count"
        run(["env", f"LD_PRELOAD={preload}", f"COUNT_ALLOCATIONS_TO={result}", *command])
        if not result.exists():
            raise MeasureError("the allocations were not counted")
        return int(result.read_text())


def program_calls(command, run=suite.run_program):
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "table"
        run(["strace", "-f", "-c", "-U", "calls,name", "-o", table, *command])
        return sum(_traced(table).values())
