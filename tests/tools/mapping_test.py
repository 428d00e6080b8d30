#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents that say where the items of a paper are name tests and things that exist."""

import re
import sys
import unittest

sys.dont_write_bytecode = True
from docs_test import CODE_SPAN, NAME, ROOT, words_of_the_sources  # noqa: E402

# With how many rows they have at least.
DOCUMENTS = {ROOT / "docs" / "d2052.md": 60, ROOT / "docs" / "coroutine-first.md": 40}
NOT_THERE = "not there"
OF_NO_CONCERN = "-"


def rows_of(document):
    """The cells of each row of the tables that map: of the seed, in plumb, proved by, changed."""
    mapping = False
    for line in document.read_text().splitlines():
        header = line.startswith("| of the seed |")
        mapping = line.startswith("|") and (mapping or header)
        if mapping and not header and not line.startswith("|---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def rows():
    return (row for document in DOCUMENTS for row in rows_of(document))


def is_a_test(file, name):
    text = (ROOT / file).read_text()
    if file.endswith(".py"):
        return f"def {name}(" in text
    return re.search(rf"^(TYPED_)?TEST(_[PF])?\(\s*\w+,\s*{name}\)", text, re.MULTILINE) is not None


class Tables(unittest.TestCase):
    def test_have_four_columns(self):
        for document, least in DOCUMENTS.items():
            self.assertGreater(len(list(rows_of(document))), least, document.name)
        for row in rows():
            self.assertEqual(len(row), 4, row)

    def test_name_things_that_exist_or_say_that_they_are_not_there(self):
        known = words_of_the_sources()
        for of_seed, here, _, _ in rows():
            if here in (NOT_THERE, OF_NO_CONCERN):
                continue
            self.assertTrue(CODE_SPAN.search(here) or "[" in here, f"{of_seed}: {here}: where?")
            for span in CODE_SPAN.findall(here):
                if NAME.fullmatch(span):
                    for word in re.findall(r"[A-Za-z_]\w*", span.split("(")[0]):
                        self.assertIn(word, known, f"{of_seed}: no source has {span}"[:200])

    def test_name_tests_that_exist(self):
        for of_seed, here, proof, _ in rows():
            if here in (NOT_THERE, OF_NO_CONCERN):
                self.assertEqual(proof, "", f"{of_seed}: {here}")
                continue
            file, tests = None, 0
            for span in CODE_SPAN.findall(proof):
                if "/" in span:
                    file = span
                    self.assertTrue((ROOT / file).is_file(), f"{of_seed}: {file} does not exist")
                    tests += "must_not_compile" in file or "CMakeLists" in file
                else:
                    self.assertIsNotNone(file, f"{of_seed}: {span} of which file?")
                    self.assertTrue(is_a_test(file, span), f"{of_seed}: {file} has no test {span}")
                    tests += 1
            self.assertGreater(tests, 0, f"{of_seed}: which test proves it?")


if __name__ == "__main__":
    unittest.main(verbosity=2)
