// SPDX-License-Identifier: Apache-2.0
//
// Callbacks whose types are erased, as interfaces without templates need it: handlers are std::function, and the executor
// stands behind a virtual function.
#include "../layers.hpp"

#include <plumb/exec/work.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace {

using callback = std::function<void()>;

class any_executor {
public:
    explicit any_executor(plumb::io_context::executor_type e)
        : held_(std::make_shared<holder>(e)) {}
    void post(plumb::work* w) const { held_->post(w); }

private:
    struct base {
        virtual ~base() = default;
        virtual void post(plumb::work* w) const = 0;
    };
    struct holder : base {
        explicit holder(plumb::io_context::executor_type e) : executor(e) {}
        void post(plumb::work* w) const override { executor.post(w); }
        plumb::io_context::executor_type executor;
    };
    std::shared_ptr<base const> held_;
};

class object {
public:
    explicit object(any_executor executor) : executor_(std::move(executor)) {}

    void async_io(callback handler) { executor_.post(new operation(std::move(handler))); }

private:
    struct operation : plumb::work {
        explicit operation(callback&& h) : work(&complete), handler(std::move(h)) {}

        static void complete(work& w) noexcept {
            auto* const self = static_cast<operation*>(&w);
            callback const next(std::move(self->handler));
            delete self;
            next();
        }

        callback handler;
    };

    any_executor executor_;
};

void async_read_some(object& o, callback handler) {
    o.async_io([handler = std::move(handler)] { handler(); });
}

/// Ten of a lower level, one after another.
struct repeated {
    void (*begin)(object&, callback);
    object* of;
    int left;
    callback handler;

    void operator()() {
        if (--left != 0) {
            begin(*of, std::move(*this));
        } else {
            handler();
        }
    }
};

void async_read(object& o, callback handler) {
    async_read_some(o, repeated{&async_read_some, &o, reads_of_a_level, std::move(handler)});
}

void async_request(object& o, callback handler) {
    async_read(o, repeated{&async_read, &o, reads_of_a_level, std::move(handler)});
}

template <int Shape>
struct driver {
    void begin() {
        auto handler = [this] {
            if (meter.again()) {
                begin();
            }
        };
        if constexpr (Shape == 1) {
            of.async_io(handler);
        } else if constexpr (Shape == 2) {
            async_read_some(of, handler);
        } else if constexpr (Shape == 10) {
            async_read(of, handler);
        } else {
            async_request(of, handler);
        }
    }

    object of;
    layers_meter& meter;
};

}  // namespace

int main(int argc, char** argv) {
    return run_layers(argc, argv, []<int Shape>(plumb::io_context& context, layers_meter& meter) {
        driver<Shape> d{object(any_executor(context.get_executor())), meter};
        d.begin();
        (void)context.run();
    });
}
