#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/demo promises. PLUMB names the command-line tool that it starts."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo"
PLUMB = pathlib.Path(os.environ["PLUMB"])
PATIENCE = 60


def start_demo(*options, build=PLUMB.parent):
    return subprocess.Popen(
        [DEMO, "--without-asio", "--build", build, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_demo(*options, **more):
    process = start_demo(*options, **more)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, out, err


def children(pid):
    """The processes that it started and that have not ended."""
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(entry.name))
    return found


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipUnless(shutil.which("ab"), "there is no ab: tools/install_deps demo installs it")
class Demo(unittest.TestCase):
    def test_serves_every_request_and_prints_a_table(self):
        code, out, err = run_demo("--quick")
        self.assertEqual((code, err), (0, ""), out)
        medians = out.split("medians:\n")[1].splitlines()
        for column in ("requests/s", "p50 ms", "p99 ms", "failed", "CPU µs a request"):
            self.assertIn(column, medians[0])
        self.assertRegex(medians[1], r"^plumb, epoll +\d+ +[\d.]+ +[\d.]+ +0 +[\d.]+$")
        if not medians[2].startswith("plumb, io_uring"):
            self.assertRegex(out, r"plumb on io_uring is left out: .*cannot use io_uring")

    def test_ends_what_it_started_when_it_is_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            demo = start_demo("--requests", "100000000", "--connections", "10")
            try:
                while "each server in turn" not in demo.stdout.readline():
                    self.assertIsNone(demo.poll())
                end = time.monotonic() + PATIENCE
                while len(started := children(demo.pid)) < 2 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(len(started), 2, "the server and ab")
                demo.send_signal(number)
                self.assertNotEqual(demo.wait(PATIENCE), 0)
                end = time.monotonic() + PATIENCE
                while any(map(alive, started)) and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual([pid for pid in started if alive(pid)], [])
            finally:
                demo.kill()
                demo.communicate()

    def test_fails_when_a_request_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            impostor = pathlib.Path(folder) / "plumb"
            impostor.write_text(textwrap.dedent(
                """\
                #!/usr/bin/env python3
                # Echoes, but drops each connection after 20 requests in the middle of one.
                import signal, socketserver, sys
                class Handler(socketserver.BaseRequestHandler):
                    def handle(self):
                        for _ in range(20):
                            self.request.sendall(self.request.recv(4096))
                        self.request.recv(10)
                signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
                class Server(socketserver.ThreadingTCPServer):
                    daemon_threads = True
                    def handle_error(self, *_): pass
                with Server(("127.0.0.1", 0), Handler) as server:
                    print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
                    server.serve_forever()
                """))
            impostor.chmod(0o755)
            code, out, err = run_demo("--rounds", "1", "--requests", "200", "--connections", "2",
                                      build=folder)
        self.assertEqual(code, 1, out)
        self.assertRegex(err, r"\Ademo: .*failed.*\n")

    def test_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = run_demo("--quick", build=folder)
        self.assertEqual(code, 1)
        self.assertEqual(err, f"demo: there is no {folder}/plumb: `make demo` builds it\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
