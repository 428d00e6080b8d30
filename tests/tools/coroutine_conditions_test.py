#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No coroutine awaits in a condition without naming the result.

GCC 12 lays out the frame of one that declares no variable wrongly, and it is then resumed at a
wrong address. `if (auto r = co_await x)` and a variable before the condition are right everywhere.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONDITION = re.compile(r"\b(?:if|while|switch) \((?!(?:auto|const)\b)[^;{]*?\bco_await\b")


class Coroutines(unittest.TestCase):
    def test_none_awaits_in_a_condition(self):
        found = []
        for folder in ("include", "src", "tools", "examples"):
            for file in sorted((ROOT / folder).rglob("*.[ch]pp")):
                text = file.read_text()
                for match in CONDITION.finditer(text):
                    line = text.count("\n", 0, match.start()) + 1
                    found.append(f"{file.relative_to(ROOT)}:{line}: {match[0]}")
        self.assertEqual(found, [], "name the result: GCC 12 breaks this")


if __name__ == "__main__":
    unittest.main(verbosity=2)
