// SPDX-License-Identifier: Apache-2.0
// What the test of the debugger's commands looks at: coroutines that wait, of every form.

#include <plumb/base/deadline.hpp>
#include <plumb/base/io_result.hpp>
#include <plumb/handle/endpoint.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/event.hpp>
#include <plumb/task/mutex.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_all.hpp>

#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

namespace {

plumb::event never;
plumb::mutex guard;

/// Where the debugger stops.
[[gnu::noinline]] void stop_here(void const* shown) { asm volatile("" : : "r"(shown) : "memory"); }

plumb::task<> sleeps() {
    (void)co_await plumb::co_wait(std::chrono::hours(1));  // line of sleeps
}

plumb::task<> awaits_event() {
    (void)co_await never.wait();  // line of awaits_event
}

plumb::task<> holds() {
    auto const held = (co_await guard.lock()).value();  // line of lock
    co_await awaits_event();                            // line of holds
}

plumb::task<> wants() {
    auto const held = (co_await guard.lock()).value();  // line of wants
}

plumb::task<> awaits_both(plumb::pipe_handle& from) {
    auto const reads = [](plumb::pipe_handle& p) -> plumb::task<> {
        std::byte byte{};
        (void)co_await p.co_read(plumb::buffer(&byte, 1));  // line of reads
    };
    co_await plumb::when_all(reads(from), sleeps());  // line of awaits_both
}

plumb::task<> scoped() {
    co_await plumb::task_scope::run([](plumb::task_scope& scope) -> plumb::task<> {
        scope.spawn(awaits_event());
        co_return;
    });  // ends the scope
}

plumb::task<> looks() {
    auto const good = plumb::result<int>(42);
    auto const bad = plumb::result<int>(std::make_error_code(std::errc::timed_out));
    auto const nothing = plumb::result<void>();
    auto const limit = plumb::deadline(std::chrono::seconds(5));
    auto const no_limit = plumb::deadline();
    char bytes[10] = {};
    auto const room = plumb::buffer(bytes, sizeof(bytes));
    auto const moved = plumb::io_result<plumb::buffers>(plumb::buffers(room));
    auto const peer = plumb::endpoint::parse("127.0.0.1:80").value();
    auto const peer6 = plumb::endpoint::parse("[::1]:81").value();
    auto const local = plumb::endpoint::parse("unix:/run/it").value();
    auto [reader, writer] = plumb::pipe_handle::anonymous_pipe().value();
    (void)writer.close();
    auto const started = sleeps();
    void const* const shown[] = {&good, &bad,   &nothing, &limit,  &no_limit, &room,   &moved,
                                 &peer, &peer6, &local,   &reader, &writer,   &started};
    stop_here(static_cast<void const*>(shown));
    co_return;
}

}  // namespace

int main() {
    plumb::io_context elsewhere;
    plumb::io_context context;
    auto const executor = context.get_executor();
    auto [reader, writer] = plumb::pipe_handle::anonymous_pipe().value();
    async_run(executor, holds());
    async_run(executor, wants());
    async_run(executor, awaits_both(reader));
    async_run(executor, scoped());
    async_run(executor, plumb::run_on(elsewhere.get_executor(), awaits_event()));
    (void)context.run_some(-1, plumb::deadline(std::chrono::milliseconds(1))).value();
    (void)elsewhere.run_some(-1, plumb::deadline(std::chrono::milliseconds(1))).value();
    async_run(executor, looks());
    (void)context.run_some(-1, plumb::deadline(std::chrono::milliseconds(1))).value();
    (void)reader.close();
    return 0;
}
