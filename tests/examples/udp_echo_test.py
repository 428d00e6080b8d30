#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the example with clients that aren't plumb's."""

import socket
import sys
import unittest

sys.dont_write_bytecode = True
from echo_server_test import PATIENCE, example  # noqa: E402


class UdpEcho(unittest.TestCase):
    def test_echoes_each_datagram_to_its_sender(self):
        with example() as port:
            clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(5)]
            for i, client in enumerate(clients):
                client.settimeout(PATIENCE)
                client.connect(("127.0.0.1", port))
                for size in (0, 1, 1400, 60_000):
                    client.send(bytes([i]) * size)
                    self.assertEqual(client.recv(65_536), bytes([i]) * size)
            for i, client in reversed(list(enumerate(clients))):
                client.send(b"%d" % i)
                self.assertEqual(client.recv(64), b"%d" % i)
                client.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
