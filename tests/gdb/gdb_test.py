#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What gdb shows of a program that uses plumb, while it is stopped and of its core.

Usage: gdb_test.py <the program waiting> <its source>
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
ROOT = Path(__file__).resolve().parents[2]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def gdb(*arguments, **commands):
    """Runs commands in gdb. @return what it prints"""
    words = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
    words += ["-iex", "set disable-randomization off"]
    words += ["-ex", "set width 0", "-ex", f"source {ROOT}/tools/gdb/plumb_gdb.py"]
    for command in commands["run"]:
        words += ["-ex", command]
    done = subprocess.run(
        [*words, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


class Source:
    def __init__(self, path):
        self.name = Path(path).name
        self.lines = Path(path).read_text().splitlines()

    def line(self, mark):
        """The line with the comment `line of <mark>`."""
        found = [i + 1 for i, text in enumerate(self.lines) if text.endswith(f"// line of {mark}")]
        assert len(found) == 1, f"no line of {mark}"
        return found[0]


def check_tasks(text, source):
    def expect(pattern):
        for mark in re.findall(r"<(\w+)>", pattern):
            pattern = pattern.replace(f"<{mark}>", rf"\S*{source.name}:{source.line(mark)}\n")
        assert re.search(pattern, text), f"not found: {pattern}\nin:\n{text}"

    # An innermost coroutine, the ones above it, and where a mutex was locked.
    expect(r"waits for event 0x\w+\n\[0\] .*awaits_event\(\) at <awaits_event>"
           r"\[1\] .*holds\(\) at <holds>")
    expect(r"waits for mutex 0x\w+, held since .*holds\(\) at <lock>\[0\] .*wants\(\) at <wants>")
    # Both tasks that are awaited together.
    expect(r"waits for read\n\[0\] .* at <reads>(.*\n)\[2\] .*awaits_both\(.*\) at <awaits_both>")
    expect(r"waits for time\n\[0\] .*sleeps\(\) at <sleeps>(.*\n)\[2\] .*awaits_both")
    # In a scope, and on another executor.
    expect(r"waits for event 0x\w+\n\[0\] .*awaits_event\(\) at <awaits_event>(.*\n){0,3}"
           r"\[\d\] .*scoped\(\) at ")
    expect(r"\[0\] .*awaits_event\(\) at <awaits_event>\[1\] .*run_on")
    assert re.search(r"^io_context: 6 roots$", text, re.M), text
    assert re.search(r"^io_context: 0 roots$", text, re.M), text


def check_printers(text):
    for name, shown in {
        "good": "42",
        "bad": "error 110",
        "nothing": "success",
        "limit": "relative 5000000000 ns",
        "no_limit": "infinite",
        "room": r"10 bytes at 0x\w+",
        "moved": r"10 bytes at 0x\w+",
        "peer": r"127\.0\.0\.1:80",
        "peer6": r"\[::1\]:81",
        "local": "unix:/run/it",
        "reader": r"(polled_)?pipe \d+",
        "writer": "closed (polled_)?pipe",
        "started": r"task not started: .*sleeps\(\) at .*:\d+",
    }.items():
        assert re.search(rf"^{name} = {shown}$", text, re.M), f"{name}: not {shown} in:\n{text}"


def main():
    program, source = sys.argv[1], Source(sys.argv[2])
    if shutil.which("gdb") is None:
        skip("there is no gdb")
    with tempfile.TemporaryDirectory() as directory:
        core = f"{directory}/core"
        names = "good bad nothing limit no_limit room moved peer peer6 local reader writer started"
        show = [f"python print('{n} =', gdb.parse_and_eval('{n}').format_string())" for n in names.split()]
        live = gdb(
            program,
            run=["break stop_here", "run", "up", *show, "plumb tasks", f"generate-core-file {core}"],
        )
        if re.search("ptrace|Could not trace|not permitted|During startup", live):
            skip(f"processes can't be traced here:\n{live}")
        check_printers(live)
        check_tasks(live, source)
        if not Path(core).exists():
            skip(f"no core can be had here:\n{live}")
        check_tasks(gdb(program, core, run=["plumb tasks"]), source)


if __name__ == "__main__":
    main()
