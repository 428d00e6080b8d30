#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/d2052.md shows code that is compiled and run."""

import re
import sys
import textwrap
import unittest

sys.dont_write_bytecode = True
from docs_test import ROOT  # noqa: E402

DOCUMENT = ROOT / "docs" / "d2052.md"
SOURCE = ROOT / "tests" / "examples" / "d2052_test.cpp"


def shown():
    """The blocks of code of the document."""
    return re.findall(r"^```cpp\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def compiled():
    """The marked parts of the source; those of one name are one."""
    parts = {}
    for name, code in re.findall(
        r"^ *// d2052: (?!end\n)(\w+)\n(.*?)^ *// d2052: end\n",
        SOURCE.read_text(),
        re.MULTILINE | re.DOTALL,
    ):
        parts.setdefault(name, []).append(textwrap.dedent(code))
    return ["\n".join(part) for part in parts.values()]


class Code(unittest.TestCase):
    def test_is_what_is_compiled_and_run(self):
        self.assertEqual(sorted(shown()), sorted(compiled()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
