#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the example that is a client, which EXAMPLE names, with a server that isn't plumb's."""

import os
import socket
import socketserver
import subprocess
import threading
import unittest

PATIENCE = 20


def run(*arguments):
    return subprocess.run(
        [os.environ["EXAMPLE"], *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)


class EchoClient(unittest.TestCase):
    def test_prints_what_comes_back(self):
        with socketserver.TCPServer(("127.0.0.1", 0), Echo) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ended = run("127.0.0.1", server.server_address[1], "hello", "world")
            server.shutdown()
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "hello world\n", ""))

    def test_says_what_failed(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # nobody listens there
            port = closed.getsockname()[1]
            ended = run("127.0.0.1", port, "hello")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(
            ended.stderr, f"echo_client: cannot connect to 127.0.0.1:{port}: Connection refused\n"
        )

    def test_says_how_it_is_used(self):
        for arguments in ([], ["127.0.0.1"], ["127.0.0.1", "port", "hello"], ["127.0.0.1", "70000", "x"]):
            ended = run(*arguments)
            self.assertEqual(ended.returncode, 2, arguments)
            self.assertIn("usage: echo_client", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
