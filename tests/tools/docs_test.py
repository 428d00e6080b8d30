#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents say what is there: the program, the names, the commands and the headers."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
ROOMS = sorted((ROOT / "include" / "plumb").iterdir())
DOCUMENTS = [README, ROOT / "docs" / "ARCHITECTURE.md", *(room / "README.md" for room in ROOMS),
             ROOT / "examples" / "networking_ts" / "README.md"]

CODE_SPAN = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"(?:\w+::)*~?[a-z]\w*(?:<\w*>)?(?:\([^()]*\))?")


def without_fences(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def words_of_the_sources():
    words = set()
    for folder in ("include", "src", "tools", "examples", "cmake", "tests"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix not in (".md", ".pyc"):
                words.update(re.findall(r"\w+", file.read_text()))
    for file in ("CMakeLists.txt", "CMakePresets.json", "Makefile"):
        words.update(re.findall(r"\w+", (ROOT / file).read_text()))
    return words


class Documents(unittest.TestCase):
    def test_the_first_program_is_the_example_of_fifteen_lines(self):
        shown = re.search(r"^```cpp\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)[1]
        example = (ROOT / "examples" / "echo_server.cpp").read_text()
        code = re.sub(r"\A(//.*\n)+\n", "", example)
        self.assertEqual(shown, code, "README.md and examples/echo_server.cpp differ")
        self.assertEqual(len(code.splitlines()), 15)

    def test_names_are_those_of_the_sources(self):
        known = words_of_the_sources()
        for document in DOCUMENTS:
            for span in CODE_SPAN.findall(without_fences(document.read_text())):
                if not NAME.fullmatch(span):
                    continue
                for word in re.findall(r"[A-Za-z_]\w*", span.split("(")[0]):
                    where = f"{document.relative_to(ROOT)}: `{span}`"
                    self.assertIn(word, known, f"{where}: no source has this name")

    def test_commands_can_be_given(self):
        targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        presets = {
            preset["name"]
            for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        }
        for document in [*DOCUMENTS, *(ROOT / "examples").glob("*.cpp")]:
            text = document.read_text()
            given = CODE_SPAN.findall(text) + text.splitlines()
            made = {match[1] for each in given if (match := re.match(r"make (\w+)", each))}
            self.assertLessEqual(made, targets, document.name)
            self.assertLessEqual(set(re.findall(r"--preset (\w+)", text)), presets, document.name)

    def test_each_room_has_a_page_that_names_its_headers(self):
        for room in ROOMS:
            page = room / "README.md"
            self.assertTrue(page.exists(), f"{page.relative_to(ROOT)} is missing")
            named = set(re.findall(r"`(\w+\.hpp)`", page.read_text()))
            there = {header.name for header in room.glob("*.hpp")}
            self.assertEqual(there - named, set(), f"not in {page.relative_to(ROOT)}")


class Examples(unittest.TestCase):
    def test_each_says_what_it_shows_and_how_it_is_tried(self):
        for example in (ROOT / "examples").glob("*.cpp"):
            comment = re.match(r"(//.*\n)+", example.read_text())[0]
            self.assertIn("// SPDX-License-Identifier: Apache-2.0\n//\n", comment, example.name)
            self.assertIn(f"--target example_{example.stem}\n", comment, example.name)
            self.assertIn(f"build/dev/examples/{example.stem}", comment, example.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
