#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the example with a server that isn't plumb's."""

import socket
import socketserver
import sys
import threading
import unittest

sys.dont_write_bytecode = True
from echo_client_test import Echo, run  # noqa: E402


class Mute(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)


def talk(handler, *words):
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ended = run("127.0.0.1", server.server_address[1], *words)
        server.shutdown()
        return ended.returncode, ended.stdout, ended.stderr


class EchoClient(unittest.TestCase):
    def test_prints_the_line_that_comes_back(self):
        self.assertEqual(talk(Echo, "hello", "world"), (0, "hello world\n", ""))

    def test_says_that_the_answer_was_cut_off(self):
        status, out, err = talk(Mute, "hello")
        self.assertEqual((status, out), (1, ""))
        self.assertTrue(err.startswith("networking_ts_echo_client: "), err)

    def test_says_what_failed(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # nobody listens there
            ended = run("127.0.0.1", closed.getsockname()[1], "hello")
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(ended.stderr, "networking_ts_echo_client: Connection refused\n")

    def test_says_how_it_is_used(self):
        for arguments in ([], ["127.0.0.1"], ["127.0.0.1", "port", "hello"]):
            ended = run(*arguments)
            self.assertEqual(ended.returncode, 2, arguments)
            self.assertIn("usage: networking_ts_echo_client", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
