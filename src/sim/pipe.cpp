// SPDX-License-Identifier: Apache-2.0
#include "sim/pipe.hpp"

#include "sim/scattered.hpp"

#include <algorithm>

namespace plumb::sim {
namespace {

constexpr std::size_t linux_page = 4096;
/// Writes up to this move all or nothing.
constexpr std::size_t atomic_write = linux_page;

}  // namespace

class pipe::reader final : public node {
public:
    explicit reader(std::shared_ptr<pipe> p) noexcept : pipe_(std::move(p)) {
        pipe_->reader_ = this;
    }

    [[nodiscard]] std::uint32_t state() const noexcept override {
        return (pipe_->bytes_.empty() ? 0u : can_read) | (pipe_->writer_ == nullptr ? hung_up : 0u);
    }
    [[nodiscard]] platform::native_kind what() const noexcept override {
        return platform::native_kind::pipe;
    }
    outcome read(std::span<buffer const> into) override;
    void close() override;

    using node::changed;

private:
    std::shared_ptr<pipe> const pipe_;
};

class pipe::writer final : public node {
public:
    explicit writer(std::shared_ptr<pipe> p) noexcept : pipe_(std::move(p)) {
        pipe_->writer_ = this;
    }

    [[nodiscard]] std::uint32_t state() const noexcept override {
        return (pipe_->full() ? 0u : can_write) | (pipe_->reader_ == nullptr ? failed : 0u);
    }
    [[nodiscard]] platform::native_kind what() const noexcept override {
        return platform::native_kind::pipe;
    }
    outcome write(std::span<const_buffer const> from) override;
    void close() override;

    using node::changed;

private:
    std::shared_ptr<pipe> const pipe_;
};

outcome pipe::reader::read(std::span<buffer const> into) {
    pipe& p = *pipe_;
    auto const wanted = total_of(into);
    if (wanted == 0) {
        return 0;
    }
    if (p.bytes_.empty()) {
        return p.writer_ == nullptr ? 0 : failed_with(std::errc::resource_unavailable_try_again);
    }
    bool const was_full = p.full();
    auto const possible = std::min(wanted, p.bytes_.size());
    auto const moved = p.around_.shortened(possible);
    scatter(p.bytes_, into, moved);
    p.free_pages(moved);
    if (moved < possible) {
        changed();  // as if the rest came only now
    }
    if (was_full && !p.full() && p.writer_ != nullptr) {
        p.writer_->changed();
    }
    return static_cast<outcome>(moved);
}

void pipe::reader::close() {
    pipe_->reader_ = nullptr;
    if (pipe_->writer_ != nullptr) {
        pipe_->writer_->changed();
    }
}

outcome pipe::writer::write(std::span<const_buffer const> from) {
    pipe& p = *pipe_;
    auto wanted = total_of(from);
    if (wanted == 0) {
        return 0;
    }
    if (p.reader_ == nullptr) {
        return failed_with(std::errc::broken_pipe);
    }
    auto const all = wanted;
    if (wanted > atomic_write) {
        wanted = p.around_.shortened(wanted);
    }
    auto const moved = p.take_pages(wanted);
    if (moved == 0) {
        return failed_with(std::errc::resource_unavailable_try_again);
    }
    gather(p.bytes_, from, moved);
    if (wanted < all && moved == wanted) {
        changed();
    }
    p.reader_->changed();
    return static_cast<outcome>(moved);
}

void pipe::writer::close() {
    pipe_->writer_ = nullptr;
    if (pipe_->reader_ != nullptr) {
        pipe_->reader_->changed();
    }
}

pipe::pipe(surroundings& around, std::size_t capacity) noexcept
    : around_(around),
      page_size_(std::clamp<std::size_t>(capacity, 1, linux_page)),
      most_pages_(std::max<std::size_t>(capacity / page_size_, 1)) {}

std::pair<std::shared_ptr<node>, std::shared_ptr<node>> pipe::make(surroundings& around,
                                                                   std::size_t capacity) {
    auto const made = std::make_shared<pipe>(around, capacity);
    return {std::make_shared<reader>(made), std::make_shared<writer>(made)};
}

// What doesn't fill pages goes behind what is in the last page if all of it fits there; else
// everything gets pages of its own.
std::size_t pipe::take_pages(std::size_t bytes) {
    std::size_t placed = 0;
    if (auto const odd = bytes % page_size_;
        odd != 0 && !pages_.empty() && pages_.back().end + odd <= page_size_) {
        pages_.back().end += odd;
        placed = odd;
    }
    while (placed < bytes && !full()) {
        auto const n = std::min(page_size_, bytes - placed);
        pages_.push_back({0, n});
        placed += n;
    }
    return placed;
}

void pipe::free_pages(std::size_t bytes) noexcept {
    while (bytes != 0) {
        page& first = pages_.front();
        auto const n = std::min(bytes, first.end - first.begin);
        first.begin += n;
        bytes -= n;
        if (first.begin == first.end) {
            pages_.pop_front();
        }
    }
}

}  // namespace plumb::sim
