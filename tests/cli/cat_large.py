#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files larger than 32 bits can count, through `plumb cat`: `make check-large`. PLUMB names the
program, PLUMB_LARGE_GB how large they are. It works in a folder of its own below the working
directory, which it removes, and prints how long each way takes."""

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import unittest

PLUMB = os.environ["PLUMB"]
BYTES = int(os.environ.get("PLUMB_LARGE_GB", "3")) << 30
PATIENCE = 600


def sum_of(file):
    """What b2sum says of an open file."""
    summed = subprocess.run(["b2sum"], stdin=file, stdout=subprocess.PIPE, check=True,
                            timeout=PATIENCE)
    return summed.stdout.split()[0]


class Large(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="cat_large-", dir=os.getcwd())
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.source = os.path.join(cls.directory, "source")
        block = bytearray(random.Random(5).randbytes(1 << 20))
        with open(cls.source, "wb") as file:
            for i in range(BYTES >> 20):
                block[:8] = i.to_bytes(8, "little")
                file.write(block)
        cls.sum = cls.sum_of_file(cls.source)

    @staticmethod
    def sum_of_file(path):
        with open(path, "rb") as file:
            return sum_of(file)

    def setUp(self):
        self.start = time.monotonic()

    def tell(self, what):
        seconds = time.monotonic() - self.start
        print(f"{what}: {seconds:.1f} s, {BYTES / seconds / 1e9:.2f} GB/s", flush=True)
        self.start = time.monotonic()

    def test_file_to_file(self):
        target = os.path.join(self.directory, "target")
        for name, command in (
            ("plumb", [PLUMB, "cat", f"file:{self.source}", f"file:{target}"]),
            ("cp", ["cp", self.source, target]),
            ("socat", ["socat", "-u", "-b", "262144", f"OPEN:{self.source}", f"CREATE:{target}"]),
        ):
            self.start = time.monotonic()
            subprocess.run(command, check=True, timeout=PATIENCE)
            self.tell(f"file to file, {name}")
            self.assertEqual(self.sum_of_file(target), self.sum, name)
            os.unlink(target)

    def test_file_to_pipe(self):
        with subprocess.Popen([PLUMB, "cat", f"file:{self.source}", "-"],
                              stdout=subprocess.PIPE) as cat:
            self.assertEqual(sum_of(cat.stdout), self.sum)
            self.assertEqual(cat.wait(PATIENCE), 0)
        self.tell("file to pipe, with its sum")

    def test_file_to_socket(self):
        for backend in ("epoll", "io_uring"):
            self.start = time.monotonic()
            with subprocess.Popen(["socat", "-u", "-b", "262144", "-d", "-d",
                                   "TCP-LISTEN:0,bind=127.0.0.1", "-"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
                port = 0
                while not port:
                    line = server.stderr.readline().decode()
                    self.assertTrue(line, "socat doesn't listen")
                    found = re.search(r"listening on .*127\.0\.0\.1:(\d+)", line)
                    port = int(found[1]) if found else 0
                with subprocess.Popen([PLUMB, "cat", "--multiplexer", backend,
                                       f"file:{self.source}", f"tcp:127.0.0.1:{port}"]) as cat:
                    self.assertEqual(sum_of(server.stdout), self.sum)
                    self.assertEqual(cat.wait(PATIENCE), 0)
                server.stderr.read()
                self.assertEqual(server.wait(PATIENCE), 0)
            self.tell(f"file to socket, {backend}, with its sum")


if __name__ == "__main__":
    unittest.main(verbosity=2)
