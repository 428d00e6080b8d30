// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/waits.hpp>

#include <plumb/task/async_stacktrace.hpp>
#include <plumb/task/children.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/wait_list.hpp>

#include <cstddef>
#include <cstdint>

namespace plumb {
namespace {

class visitor {
public:
    visitor(visit_wait_function visit, void* context) noexcept : visit_(visit), context_(context) {}

    void roots(root_list const& list) {
        for (root_node const* node = list.first(); node != nullptr; node = node->next()) {
            if (node->frame() != nullptr) {
                root_ = node->frame();
                below(*root_);
            }
        }
    }

private:
    void below(async_frame const& top) {
        async_frame const* innermost = &top;
        while (innermost->awaited() != nullptr) {
            innermost = innermost->awaited();
        }
        suspension const* const s = innermost->waits_in();
        if (s == nullptr || !branches(*s)) {
            visit_(context_, *root_, *innermost);
        }
    }

    /// @return whether there are any
    bool branches(suspension const& s) {
        bool any = false;
        auto const branch = [&](async_frame const* frame) {
            if (frame != nullptr) {
                any = true;
                below(*frame);
            }
        };
        if (s.is() == suspension::form::tasks) {
            auto const& all = static_cast<children const&>(s);
            for (std::size_t i = 0; i != all.count(); ++i) {
                branch(all.running(i));
            }
        } else if (s.is() == suspension::form::scope) {
            auto const& scope = static_cast<task_scope const&>(s);
            branch(scope.body());
            for (root_node const* node = scope.spawned().first(); node != nullptr;
                 node = node->next()) {
                branch(node->frame());
            }
        }
        return any;
    }

    visit_wait_function visit_;
    void* context_;
    async_frame const* root_ = nullptr;
};

std::string address(void const* of) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (auto bits = reinterpret_cast<std::uintptr_t>(of); bits != 0; bits /= 16) {
        text.insert(text.begin(), digits[bits % 16]);
    }
    return "0x" + text;
}

}  // namespace

wait_description wait_of(async_frame const& innermost) noexcept {
    suspension const* const s = innermost.waits_in();
    if (s == nullptr) {
        return {innermost.hidden() ? "its start" : to_string(innermost.kind())};
    }
    switch (s->is()) {
    case suspension::form::primitive: {
        auto const& w = static_cast<waiter const&>(*s);
        if (!w.alone()) {
            return {"select"};
        }
        auto const& list = w.list();
        return {list.what(), list.of(), list.held_since()};
    }
    case suspension::form::elsewhere:
        return {"a task on another executor"};
    case suspension::form::tasks:
    case suspension::form::scope:
        return {"the start of tasks"};
    }
    return {"unknown"};
}

void visit_waits(root_list const& roots, visit_wait_function visit, void* context) {
    visitor(visit, context).roots(roots);
}

std::string waits_to_string(root_list const& roots) {
    std::string text;
    visit_waits(roots, [&](async_frame const&, async_frame const& innermost) {
        auto const wait = wait_of(innermost);
        text += "waits for ";
        text += wait.what;
        if (wait.of != nullptr) {
            text += ' ' + address(wait.of);
        }
        if (wait.held_since.line() != 0) {
            text += ", held since ";
            text += function_of(wait.held_since);
            text += " at ";
            text += wait.held_since.file_name();
            text += ':' + std::to_string(wait.held_since.line());
        }
        text += '\n';
        text += async_stacktrace(innermost).to_string();
    });
    return text;
}

void print_waits(root_list const& roots, std::FILE* to) {
    std::fputs(waits_to_string(roots).c_str(), to);
}

}  // namespace plumb
