# SPDX-License-Identifier: Apache-2.0
"""The echo server on Python's asyncio.

A buffered protocol is asyncio's fastest interface: a plain one allocates 256 KiB for each read.
"""
import argparse
import asyncio
import json
import signal


class Counter:
    __slots__ = ("requests", "most", "reached")

    def __init__(self, most, reached):
        self.requests = 0
        self.most = most
        self.reached = reached

    def add(self):
        self.requests += 1
        if self.requests == self.most:
            self.reached.set()


class Connection:
    """TCP_NODELAY is set by the loop. Nothing is read while the peer does not take its replies."""

    def __init__(self, counter):
        self.counter = counter

    def connection_made(self, transport):
        self.transport = transport
        self.write = transport.write

    def pause_writing(self):
        self.transport.pause_reading()

    def resume_writing(self):
        self.transport.resume_reading()


class Echo(Connection, asyncio.BufferedProtocol):
    """All connections share one read buffer; the transport gets a copy of what was received."""

    buffer = memoryview(bytearray(16384))

    def get_buffer(self, size_hint):
        return self.buffer

    def buffer_updated(self, size):
        self.write(bytes(self.buffer[:size]))
        self.counter.add()


async def main(options, protocol):
    loop = asyncio.get_running_loop()
    reached = asyncio.Event()
    counter = Counter(options.max_requests, reached)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, reached.set)
    server = await loop.create_server(
        lambda: protocol(counter), "127.0.0.1", options.port, backlog=4096
    )
    print("listening", server.sockets[0].getsockname()[1], flush=True)
    await reached.wait()
    await asyncio.sleep(0)  # replies of this turn are written before the next
    print(json.dumps({"requests": counter.requests}), flush=True)


def run(new_event_loop, protocol):
    parser = argparse.ArgumentParser(prog="echo")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--max-requests", type=int, default=0)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main(options, protocol))


if __name__ == "__main__":
    run(asyncio.new_event_loop, Echo)
