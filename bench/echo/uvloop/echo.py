# SPDX-License-Identifier: Apache-2.0
"""The echo server on uvloop: asyncio's program, but a plain protocol, which is faster there."""
import asyncio
import pathlib
import runpy

import uvloop

program = runpy.run_path(str(pathlib.Path(__file__).parents[1] / "python_asyncio" / "echo.py"))


class Echo(program["Connection"], asyncio.Protocol):
    def data_received(self, data):
        self.write(data)
        self.counter.add()


if __name__ == "__main__":
    program["run"](uvloop.new_event_loop, Echo)
