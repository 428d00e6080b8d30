#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/failures.md names tests, and each test that it names exists."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
ROW = re.compile(r"^\| (?!what happens)([^|]+) \| ([^|]+) \|$", re.MULTILINE)


class failures(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "docs/failures.md").read_text()
        self.tests = {}
        for file in (ROOT / "tests").rglob("*_test.cpp"):
            for suite, name in TEST.findall(file.read_text()):
                self.tests.setdefault(suite, set()).add(name)

    def test_each_row_names_tests(self):
        rows = ROW.findall(self.text)
        self.assertGreater(len(rows), 40)
        for what, tests in rows:
            self.assertRegex(tests, r"^`\w+\.\w+`(, `\w+\.\w+`)*$", what)

    def test_each_test_that_is_named_exists(self):
        for name in re.findall(r"`(\w+(?:\.\w+)?)`", self.text):
            suite, _, test = name.partition(".")
            with self.subTest(name):
                self.assertIn(suite, self.tests)
                if test:
                    self.assertIn(test, self.tests[suite])


if __name__ == "__main__":
    unittest.main()
