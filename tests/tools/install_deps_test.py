#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/install_deps does to the system, seen through stand-ins for the system's programs."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/install_deps"


class install_deps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = Path(folder.name)
        self.log = self.bin / "log"
        self.log.touch()
        self.program("apt-get", f'echo "apt-get $*" >>{self.log}')
        self.program("sudo", f'echo sudo >>{self.log}; "$@"')
        self.program("id", "echo 0")

    def program(self, name, body):
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def run_tool(self, *groups):
        path = f"{self.bin}:{os.environ['PATH']}"
        return subprocess.run(
            [TOOL, *groups], capture_output=True, text=True, env={**os.environ, "PATH": path}
        )

    def test_does_nothing_when_all_is_there(self):
        self.program("dpkg-query", 'printf "install ok installed"')
        self.assertEqual(self.run_tool("core").returncode, 0)
        self.assertEqual(self.log.read_text(), "")

    def test_installs_only_what_is_missing(self):
        self.program("dpkg-query", '[ "$4" = cmake ] || printf "install ok installed"')
        self.assertEqual(self.run_tool("core").returncode, 0)
        update, install = self.log.read_text().splitlines()
        self.assertRegex(update, " update$")
        self.assertRegex(install, " install --yes --no-install-recommends cmake$")

    def test_a_removed_package_is_missing(self):
        self.program("dpkg-query", 'printf "deinstall ok config-files"')
        self.assertEqual(self.run_tool("core").returncode, 0)
        self.assertIn(" ninja-build ", self.log.read_text())

    def test_one_of_several_names_is_enough(self):
        self.program("dpkg-query", '[ "$4" = cargo-1.89 ] && printf "install ok installed"')
        self.assertEqual(self.run_tool("rust").returncode, 0)
        self.assertEqual(self.log.read_text(), "")

    def test_of_several_names_the_first_that_is_known_is_installed(self):
        self.program("dpkg-query", "exit 1")
        self.program("apt-cache", '[ "$2" != cargo-web ]')
        self.assertEqual(self.run_tool("rust").returncode, 0)
        self.assertRegex(self.log.read_text(), " --no-install-recommends cargo-1.89$")

    def test_becomes_root_when_it_is_not(self):
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 1000")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.log.read_text().count("sudo"), 2)

    def test_a_failed_installation_fails(self):
        self.program("dpkg-query", "exit 1")
        self.program("apt-get", "exit 100")
        self.assertEqual(self.run_tool().returncode, 100)

    def test_an_unknown_group_is_a_usage_error(self):
        run = self.run_tool("nosuch")
        self.assertEqual(run.returncode, 2)
        self.assertIn("[nosuch]", run.stderr)


if __name__ == "__main__":
    unittest.main()
