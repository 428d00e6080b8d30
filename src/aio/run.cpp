// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/run.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/task/waits.hpp>

#include <string>

namespace plumb::aio {
namespace {

/// Runs until nothing can happen any more, or the context is stopped.
void exhaust(io_context& context) {
    auto const ran = context.run();
    // A system that sees that a wait can't end says so; others are idle.
    if (!ran && ran.error() != std::errc::resource_deadlock_would_occur) {
        throw_error(ran.error(), "aio::run");
    }
}

/// Ends the tasks that wait for what can't happen: from inside the context, because it may move others on.
class leftovers {
public:
    leftovers(io_context& context, stop_source const& launched_with) noexcept
        : context_(context), launched_with_(launched_with) {}
    leftovers(leftovers const&) = delete;
    leftovers& operator=(leftovers const&) = delete;
    ~leftovers() {
        struct ending : work {
            explicit ending(leftovers const& l) noexcept
                : work([](work& self) noexcept { static_cast<ending&>(self).run(); }), of(l) {}
            void run() noexcept {
                destroyed = of.context_.roots().destroy_youngest_since(of.launched_with_);
                ran = true;
                of.context_.stop();
            }
            leftovers const& of;
            bool destroyed = false;
            bool ran = false;
        };
        for (bool again = true; again;) {
            ending one(*this);
            context_.get_executor().post(&one);
            while (!one.ran) {
                (void)context_.run();
            }
            again = one.destroyed;
        }
    }

private:
    io_context& context_;
    stop_source const& launched_with_;
};

}  // namespace

void drive(io_context& context, stop_source& rest, bool const& done) {
    require(!context.get_executor().running_in_this_thread(),
            "aio::run was called from inside the context that it is to run");
    leftovers const ended_at_last(context, rest);
    exhaust(context);
    bool const deadlock = !done;
    std::string const waits = deadlock ? waits_to_string(context.roots()) : std::string();
    rest.request_stop();
    exhaust(context);
    if (deadlock) {
        if (done) {
            exhaust(context);  // it stopped the context when it ended
        }
        throw_error(
            std::make_error_code(std::errc::resource_deadlock_would_occur),
            ("aio::run: the main task waits for something that can't happen\n" + waits).c_str());
    }
}

}  // namespace plumb::aio
