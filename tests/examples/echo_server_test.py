#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example that is an echo server, which EXAMPLE names, with clients that aren't plumb's."""

import contextlib
import os
import random
import re
import select
import socket
import subprocess
import threading
import unittest

PATIENCE = 20


@contextlib.contextmanager
def example():
    """The port of the running example."""
    process = subprocess.Popen([os.environ["EXAMPLE"]], stdout=subprocess.PIPE, text=True)
    try:
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if readable else ""
        found = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)
        if not found:
            raise AssertionError(f"it does not say where it listens: {line!r}")
        yield int(found[1])
        if process.poll() is not None:
            raise AssertionError(f"it has ended with {process.returncode}")
    finally:
        process.kill()
        process.communicate()


def talk(port, message):
    """Sends all, ends the sending side, and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        def send():
            client.sendall(message)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        answer = bytearray()
        while more := client.recv(65536):
            answer += more
        sender.join()
        return bytes(answer)


class EchoServer(unittest.TestCase):
    def test_echoes_to_one_client_after_another(self):
        with example() as port:
            for size in (1, 106, 4096, 4097, 1 << 20):
                message = random.Random(size).randbytes(size)
                self.assertTrue(talk(port, message) == message, size)

    def test_echoes_to_many_clients_at_once(self):
        with example() as port, contextlib.ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
                for _ in range(50)
            ]
            for i, client in enumerate(clients):
                client.sendall(b"%04d" % i)
            for i, client in reversed(list(enumerate(clients))):
                self.assertEqual(client.recv(4, socket.MSG_WAITALL), b"%04d" % i)


if __name__ == "__main__":
    unittest.main(verbosity=2)
