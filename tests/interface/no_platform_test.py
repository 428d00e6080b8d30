#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public headers, preprocessed, have nothing of the operating system: they include none of its
headers, and name none of its types.

Usage: no_platform_test.py <compiler>. What the standard library includes for itself is its own
affair.
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CXX = sys.argv.pop(1)

OPTIONAL = {"plumb/task/execution.hpp"}  # it is nothing without a library of senders
MARKER = re.compile(r'# \d+ "([^"]*)"(.*)')
STANDARD = re.compile(r"/c\+\+/")
# Types of the C library that aren't C++'s, and of the kernel.
TYPE = re.compile(
    r"\b(sockaddr\w*|socklen_t|sa_family_t|in6?_addr\w*|in_port_t|iovec|msghdr|mmsghdr|cmsghdr|"
    r"addrinfo|ip_mreqn?|ipv6_mreq|linger|epoll_event|epoll_data\w*|pollfd|nfds_t|fd_set|"
    r"signalfd_siginfo|inotify_event|io_uring_\w+|(?<=struct )io_uring|__kernel_\w+|__[us](?:8|16|32|64)|open_how|"
    r"timespec|timeval|itimerspec|itimerval|clockid_t|timer_t|suseconds_t|pid_t|uid_t|gid_t|id_t|"
    r"off(?:64)?_t|ssize_t|mode_t|dev_t|ino(?:64)?_t|nlink_t|blksize_t|blkcnt_t|flock(?:64)?|"
    r"statx?(?=\s*[&*{])|rlimit|rusage|sigset_t|siginfo_t|sigaction|sigevent|ucontext_t|DIR|dirent|"
    r"pthread_\w+|sem_t|locale_t)\b"
)


def violations(include):
    """Yields what the public headers below the folder `include` have of the system."""
    headers = sorted(str(h.relative_to(include)) for h in include.rglob("*.hpp"))
    headers = [h for h in headers if h not in OPTIONAL]
    text = "".join(f"#include <{header}>\n" for header in headers)
    command = [CXX, "-std=c++23", "-E", "-x", "c++", f"-I{include}", "-"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    seen, stack = set(), [None]
    for line in run.stdout.splitlines():
        if marker := MARKER.match(line):
            file = Path(marker[1])
            own = file.is_relative_to(include)
            if "1" in marker[2].split():
                if stack[-1] and not own and not STANDARD.search(str(file)):
                    yield f"{stack[-1]} includes {file}"
                stack.append(None)
            elif "2" in marker[2].split():
                stack.pop()
            stack[-1] = str(file.relative_to(include)) if own else None
            seen.add(stack[-1])
        elif stack[-1] and (found := TYPE.search(line)):
            yield f"{stack[-1]} names {found[0]}: {line.strip()}"
    for header in set(headers) - seen:
        yield f"{header} was not seen"


class no_platform(unittest.TestCase):
    def test_is_in_the_public_headers(self):
        self.assertEqual(list(violations(ROOT / "include")), [])

    def finds(self, text, what):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "plumb/a.hpp"
            header.parent.mkdir()
            header.write_text("#pragma once\n" + text)
            found = list(violations(Path(folder)))
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith(f"plumb/a.hpp {what}"), found)

    def test_that_is_included_is_found(self):
        for header in ("unistd.h", "sys/socket.h", "netinet/in.h", "fcntl.h", "pthread.h"):
            self.finds(f"#include <{header}>\n", "includes /usr/include/")

    def test_that_is_named_is_found(self):
        for name in ("struct sockaddr_in;", "extern iovec* v;", "long f(timespec const&);",
                     "using t = pid_t;", "struct io_uring_sqe;", "int f(struct stat*);"):
            self.finds(f"#include <ctime>\n{name}\n", "names ")

    def test_of_the_standard_library_is_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "a.hpp"
            header.write_text("#include <cstdint>\n#include <ctime>\n#include <mutex>\n")
            self.assertEqual(list(violations(Path(folder))), [])


if __name__ == "__main__":
    unittest.main()
