// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/resumption.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/pooled_memory.hpp>

#include <new>

namespace plumb {
namespace {

struct resumption : owned_work {
    explicit resumption(std::coroutine_handle<> h) noexcept
        : owned_work(&resumption::end), waiting(h) {}

    static void end(owned_work& self, fate f) noexcept {
        auto* const item = static_cast<resumption*>(&self);
        auto const h = item->waiting;
        pooled_deallocate(item, sizeof(resumption));
        if (f == fate::run) {
            h.resume();
        }
    }

    std::coroutine_handle<> waiting;
};

}  // namespace

work& make_resumption(std::coroutine_handle<> h) noexcept {
    void* const memory = pooled_allocate(sizeof(resumption));
    require(memory != nullptr, "no memory to hand a coroutine over to its executor");
    return *::new (memory) resumption(h);
}

}  // namespace plumb
