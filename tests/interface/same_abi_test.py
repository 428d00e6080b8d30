#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A change inside of src/platform leaves the ABI of the shared library as it was; one of a public
type does not.

Usage: same_abi_test.py <compiler>. Builds a copy of the tree several times.
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CXX = sys.argv.pop(1)

# File below src/platform/, what is there, and what it becomes: members and parameters of the kind
# that other systems and later kernels bring.
PRIVATE_CHANGES = [
    ("seam.hpp", "    bool simulated;\n", "    bool simulated;\n    void* another;\n"),
    ("linux/ring.hpp", "class ring {\n", "class ring {\n    void* another_ = nullptr;\n"),
    ("linux/ring_slot.hpp", "    bool over = false;\n", "    bool over = false;\n    long more = 0;\n"),
    ("linux/receive_buffers.hpp", "join(ring& r)", "join(ring& r, int another = 0)"),
    ("linux/receive_buffers.cpp", "join(ring& r)", "join(ring& r, int)"),
]
PUBLIC_CHANGE = [
    ("range_lock.hpp", "    extent_type bytes_ = 0;\n", "    extent_type bytes_ = 0, another_ = 0;\n")
]
# Between plumb's own libraries, which are built together.
OF_NO_CONCERN = "[suppress_type]\nname_regexp = ^plumb::platform::\n"


def edit(folder, changes):
    for name, old, new in changes:
        file = folder / name
        text = file.read_text()
        assert text.count(old) == 1, f"{file} has no longer one {old!r}: change this test"
        file.write_text(text.replace(old, new))


class same_abi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.tree = self.work / "plumb"
        for name in ("include", "src", "cmake"):
            shutil.copytree(ROOT / name, self.tree / name)
        shutil.copy(ROOT / "CMakeLists.txt", self.tree)
        (self.work / "of_no_concern").write_text(OF_NO_CONCERN)
        off = [f"-DPLUMB_{part}=OFF"
               for part in ("BUILD_TESTS", "BUILD_TOOLS", "BUILD_EXAMPLES", "INSTALL")]
        self.run_quietly("cmake", "-S", self.tree, "-B", self.work / "build", "-G", "Ninja",
                         f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_CXX_FLAGS=-g -O0",
                         "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--no-undefined",
                         "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_UNITY_BUILD=ON",
                         "-DCMAKE_UNITY_BUILD_BATCH_SIZE=4", *off)

    def run_quietly(self, *command):
        run = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 0, run.stdout)

    def build(self, name, *others):
        """The library as the tree is now."""
        self.run_quietly("cmake", "--build", self.work / "build", "--target", "plumb", *others)
        library = self.work / name
        shutil.copy(self.work / "build/libplumb.so", library)
        return library

    def difference(self, before, after):
        run = subprocess.run(["abidiff", "--suppressions", self.work / "of_no_concern",
                              before, after], text=True, capture_output=True)
        if "execution should not have reached this point" in run.stderr:
            self.skipTest(f"abidiff ended by a fault of its own: {run.stderr.strip()}")
        self.assertEqual(run.returncode & 3, 0, run.stderr)  # 1 and 2: it could not compare
        return run.stdout if run.returncode else ""

    def test_after_a_change_of_the_platform_and_not_after_one_of_a_public_type(self):
        first = self.build("first.so", "plumb_sim")  # which needs more of it than users do
        edit(self.tree / "src/platform", PRIVATE_CHANGES)
        second = self.build("second.so")
        self.assertNotEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(self.difference(first, second), "")
        edit(self.tree / "include/plumb/handle", PUBLIC_CHANGE)
        self.assertIn("range_lock", self.difference(second, self.build("third.so")))


if __name__ == "__main__":
    unittest.main()
