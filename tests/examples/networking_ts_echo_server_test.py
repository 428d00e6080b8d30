#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""To its clients this example is the same as examples/echo_server.cpp."""

import sys
import unittest

sys.dont_write_bytecode = True
from echo_server_test import EchoServer  # noqa: E402,F401, the tests

if __name__ == "__main__":
    unittest.main(verbosity=2)
