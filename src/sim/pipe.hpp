// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/byte_queue.hpp"
#include "sim/node.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <utility>

namespace plumb::sim {

/// What the two ends of a pipe share: bytes in pages, as Linux keeps them, since that decides when
/// a pipe is full.
class pipe {
public:
    /// @return the reading and the writing end
    static std::pair<std::shared_ptr<node>, std::shared_ptr<node>> make(surroundings& around,
                                                                        std::size_t capacity);

    pipe(surroundings& around, std::size_t capacity) noexcept;

private:
    class reader;
    class writer;

    struct page {
        std::size_t begin;
        std::size_t end;
    };

    [[nodiscard]] bool full() const noexcept { return pages_.size() == most_pages_; }
    /// @return how many bytes of a write have been given a place
    std::size_t take_pages(std::size_t bytes);
    void free_pages(std::size_t bytes) noexcept;

    surroundings& around_;
    std::size_t const page_size_;
    std::size_t const most_pages_;
    byte_queue bytes_;
    std::deque<page> pages_;
    reader* reader_ = nullptr;  // while it is open
    writer* writer_ = nullptr;
};

}  // namespace plumb::sim
