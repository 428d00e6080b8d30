#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of tools/check_layers fires, with one line that names rule, file and line."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/check_layers"


class check_layers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def says(self, files):
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        run = subprocess.run([sys.executable, TOOL, self.root], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout.splitlines()

    def refuses(self, path, text, start):
        lines = self.says({path: text})
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"{path}:{start}"), lines[0])

    def accepts(self, path, text):
        self.assertEqual(self.says({path: text}), [])

    def test_a_room_includes_the_rooms_above_it(self):
        self.accepts("include/plumb/io/a.hpp", "#include <plumb/handle/b.hpp>\n#include <vector>\n")
        self.accepts("src/aio/a.cpp", '#include "task/b.hpp"\n#include <plumb/base/c.hpp>\n')
        self.accepts("src/platform/a.cpp", '#include "io/b.hpp"\n#include <sys/epoll.h>\n')

    def test_an_upward_include_is_refused(self):
        include = "\n#include <plumb/io/b.hpp>\n"
        self.refuses("include/plumb/base/a.hpp", include, "2: layer: ")

    def test_an_upward_private_include_is_refused(self):
        self.refuses("src/io/a.cpp", '#include "task/b.hpp"\n', "1: layer: io may")

    def test_handle_does_not_know_exec(self):
        include = "#include <plumb/exec/work.hpp>\n"
        self.refuses("include/plumb/handle/a.hpp", include, "1: layer:")

    def test_nothing_includes_graph(self):
        self.refuses("src/aio/a.cpp", "#include <plumb/graph/b.hpp>\n", "1: layer:")

    def test_sim_and_task_do_not_know_each_other(self):
        self.refuses("src/sim/a.cpp", "#include <plumb/task/b.hpp>\n", "1: layer:")

    def test_an_os_header_outside_the_platform_is_refused(self):
        for header in ("unistd.h", "sys/socket.h", "liburing.h", "pthread.h", "errno.h"):
            self.refuses("src/io/a.cpp", f"#include <{header}>\n", "1: os-header: <")

    def test_the_seam_is_for_every_room(self):
        self.accepts("src/base/a.cpp", '#include "platform/seam.hpp"\n')
        self.accepts("src/handle/a.hpp", '#include "platform/seam.hpp"\n')

    def test_the_rest_of_the_platform_is_its_own(self):
        self.refuses("src/io/a.cpp", '#include "platform/linux/b.hpp"\n', "1: layer:")

    def test_the_seam_includes_no_os_header(self):
        self.refuses("src/platform/seam.hpp", "#include <poll.h>\n", "1: os-header:")

    def test_the_platform_does_not_know_tasks(self):
        self.refuses("src/platform/a.cpp", "#include <plumb/task/b.hpp>\n", "1: layer:")

    def test_a_public_header_includes_no_private_one(self):
        self.refuses("include/plumb/io/a.hpp", '#include "io/b.hpp"\n', "1: private:")

    def test_an_example_includes_what_users_see(self):
        include = '#include <plumb/io/b.hpp>\n#include "mine/c.hpp"\n#include <vector>\n'
        self.accepts("examples/mine/a.hpp", include)
        (self.root / "examples/mine/a.hpp").unlink()
        self.refuses("examples/a.cpp", "#include <poll.h>\n", "1: os-header: ")
        self.refuses("examples/a.cpp", '#include "platform/seam.hpp"\n', "1: private: ")
        self.refuses("examples/a.cpp", '#include "../src/io/b.hpp"\n', "1: private: ")

    def test_a_file_belongs_to_a_room(self):
        self.refuses("include/plumb/misc/a.hpp", "#include <map>\n", "1: room:")

    def test_headers_are_spelled_one_way(self):
        self.refuses("src/io/a.cpp", '#include "plumb/io/b.hpp"\n', "1: spelling:")
        self.refuses("src/io/a.cpp", '#include "b.hpp"\n', "1: spelling:")

    def test_a_path_in_the_docs_that_is_gone_is_refused(self):
        (self.root / "src").mkdir()
        for text in ("`src/gone.cpp`", "see [it](gone.md)", "`gone/`", "`bash src/gone --fast`",
                     "```\nsrc/gone\n```", "`src/*.txt`", "[it](docs/gone.md#part)"):
            line = 2 if text.startswith("```") else 1
            self.refuses("README.md", text + "\n", f"{line}: docs: ")

    def test_paths_of_rooms_and_folders_are_checked_too(self):
        self.refuses("docs/deep/a.md", "`plumb/io/gone.hpp`\n", "1: docs: ")
        (self.root / "docs/deep/a.md").unlink()
        self.refuses("src/io/README.md", "[x](gone.cpp)\n", "1: docs: ")

    def test_what_exists_or_is_no_path_is_accepted(self):
        (self.root / "include/plumb/io").mkdir(parents=True)
        (self.root / "include/plumb/io/timer.hpp").touch()
        text = ("`include/plumb/io/timer.hpp` `plumb/io/timer.hpp` `io/` `plumb/*/timer.hpp` "
                "`read/write` `build/dev/plumb` `tests/<room>/x.cpp` `a < b` `/etc/hosts` `1/2` "
                "[web](https://example.org/x.md) [part](#part)\n"
                "```cpp\n#include <plumb/io/timer.hpp>\n```\n")
        self.accepts("README.md", text)

    def test_the_changelog_may_name_what_is_gone(self):
        self.accepts("CHANGELOG.md", "`src/gone.cpp`\n")


if __name__ == "__main__":
    unittest.main()
