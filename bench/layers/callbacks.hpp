// SPDX-License-Identifier: Apache-2.0
//
// The callback model: the types of the executor and of each handler are known to the compiler, from the i/o object to the
// last level. The block of an operation is freed before its handler is called, which so finds it for the next.
#pragma once

#include "layers.hpp"

#include <plumb/exec/work.hpp>

#include <cstddef>
#include <new>
#include <utility>

/// @tparam Memory  `allocate(bytes)` and `deallocate(block, bytes)`
template <class Memory>
class callback_object {
public:
    explicit callback_object(plumb::io_context::executor_type executor) noexcept
        : executor_(executor) {}

    /// Calls the handler when the queue comes to it.
    template <class Handler>
    void async_io(Handler handler) {
        void* const block = Memory::allocate(sizeof(operation<Handler>));
        executor_.post(::new (block) operation<Handler>(std::move(handler)));
    }

private:
    template <class Handler>
    struct operation : plumb::work {
        explicit operation(Handler&& h) noexcept : work(&complete), handler(std::move(h)) {}

        static void complete(work& w) noexcept {
            auto& self = static_cast<operation&>(w);
            Handler next(std::move(self.handler));
            self.~operation();
            Memory::deallocate(&self, sizeof(operation));
            next();
        }

        Handler handler;
    };

    plumb::io_context::executor_type executor_;
};

/// Begins one composed operation after another. `Levels` has `async_read_some`, `async_read` and `async_request`, which take
/// the object and a handler.
template <int Shape, class Object, class Levels>
class callback_driver {
public:
    callback_driver(plumb::io_context& context, layers_meter& meter)
        : object_(context.get_executor()), meter_(meter) {
        begin();
        (void)context.run();
    }

private:
    void begin() {
        auto handler = [this] {
            if (meter_.again()) {
                begin();
            }
        };
        if constexpr (Shape == 1) {
            object_.async_io(handler);
        } else if constexpr (Shape == 2) {
            Levels::async_read_some(object_, handler);
        } else if constexpr (Shape == 10) {
            Levels::async_read(object_, handler);
        } else {
            Levels::async_request(object_, handler);
        }
    }

    Object object_;
    layers_meter& meter_;
};
