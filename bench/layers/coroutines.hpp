// SPDX-License-Identifier: Apache-2.0
//
// plumb's coroutines: the executor's type is known nowhere below the launch, and the state of an operation lies in the
// frame that awaits it. The object may name where the frames come from.
#pragma once

#include "layers.hpp"

#include <plumb/exec/io_env.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/task.hpp>

#include <coroutine>

class coroutine_object {
public:
    class [[nodiscard]] operation : private plumb::work {
    public:
        operation() noexcept : work(&complete) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> h, plumb::io_env const& env) noexcept {
            waiting_ = h;
            env.executor.post(this);
        }
        void await_resume() const noexcept {}

    private:
        static void complete(work& w) noexcept { static_cast<operation&>(w).waiting_.resume(); }
        std::coroutine_handle<> waiting_;
    };

    /// Completes when the queue comes to it.
    operation async_io() noexcept { return operation(); }
};

template <class Object>
plumb::task<> async_read_some(Object& o) {
    co_await o.async_io();
}

template <class Object>
plumb::task<> async_read(Object& o) {
    for (int left = reads_of_a_level; left != 0; --left) {
        co_await async_read_some(o);
    }
}

template <class Object>
plumb::task<> async_request(Object& o) {
    for (int left = reads_of_a_level; left != 0; --left) {
        co_await async_read(o);
    }
}

template <int Shape, class Object>
plumb::task<> drive(Object& o, layers_meter& meter) {
    do {
        if constexpr (Shape == 1) {
            co_await o.async_io();
        } else if constexpr (Shape == 2) {
            co_await async_read_some(o);
        } else if constexpr (Shape == 10) {
            co_await async_read(o);
        } else {
            co_await async_request(o);
        }
    } while (meter.again());
}

/// The program.
template <class Object>
int run_coroutines(int argc, char** argv) {
    return run_layers(argc, argv, []<int Shape>(plumb::io_context& context, layers_meter& meter) {
        Object o;
        plumb::async_run(context.get_executor(), drive<Shape>(o, meter));
        (void)context.run();
    });
}
