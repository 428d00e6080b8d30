// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_operation.hpp>

#include "platform/linux/ring_slot.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace plumb::platform {

/// An operation on a file that the ring does: it stays until the last completion of its parts.
struct file_request {
    io_operation* op = nullptr;  // null: free
    std::uint32_t number = 0;
    std::uint32_t use = 0;  // of this place
    bool cancelling = false;
    file_request* next_free = nullptr;

    /// No other request has it, nor had.
    [[nodiscard]] std::uint64_t user_data() const noexcept {
        return user_data_of(request::file) | (std::uint64_t{use} & 0xff'ffff) << 32 | number;
    }
};

/// All of a ring, so many that the kernel is busy; more operations wait for one.
/// Threads: the ring's. Allocates: when it is made.
class file_requests {
public:
    static constexpr std::size_t most = 256;

    /// @return null where there is no memory
    static std::unique_ptr<file_requests> make() noexcept {
        return std::unique_ptr<file_requests>(new (std::nothrow) file_requests);
    }

    [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
    [[nodiscard]] bool full() const noexcept { return free_ == nullptr; }

    file_request& take(io_operation& op) noexcept {
        file_request& r = *free_;
        free_ = r.next_free;
        r.op = &op;
        ++in_use_;
        return r;
    }
    void give_back(file_request& r) noexcept {
        r.op = nullptr;
        r.cancelling = false;
        ++r.use;
        r.next_free = free_;
        free_ = &r;
        --in_use_;
    }

    /// By the user_data, of a request that is in use.
    [[nodiscard]] file_request& at(std::uint64_t user_data) noexcept {
        return all_[static_cast<std::uint32_t>(user_data)];
    }

    template <class F>
    void for_each(F visit) noexcept {
        for (file_request& r : all_) {
            if (r.op != nullptr) {
                visit(r);
            }
        }
    }

private:
    file_requests() noexcept {
        for (std::size_t i = most; i-- > 0;) {
            all_[i].number = static_cast<std::uint32_t>(i);
            all_[i].next_free = free_;
            free_ = &all_[i];
        }
    }

    file_request all_[most];
    file_request* free_ = nullptr;
    std::size_t in_use_ = 0;
};

}  // namespace plumb::platform
