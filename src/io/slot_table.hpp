// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/handle.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace plumb {

/// The slots of a backend: they keep their address, and a key (index and generation) names one use of a slot, so
/// that an event of an earlier use finds nothing.
///
/// Ownership: the table lives until its backend has retired it and the last handle has given its slot back, so that
/// handles may outlive their multiplexer. `Slot` derives from `handle_slot`.
/// Threads: the backend's; `give_back` of a retired table from any.
template <class Slot>
class slot_table {
public:
    /// @return one with room for some slots, or null when there is no memory
    static slot_table* make() noexcept {
        auto* const made = new (std::nothrow) slot_table;
        if (made != nullptr && !made->grow()) {
            made->retire();
            return nullptr;
        }
        return made;
    }

    /// @return a fresh slot, or null when there is no memory
    Slot* take() noexcept {
        if (free_ == nullptr && !grow()) {
            return nullptr;
        }
        entry& e = *free_;
        free_ = e.next_free;
        e.slot = Slot();
        e.in_use = true;
        users_.fetch_add(1, std::memory_order_relaxed);
        return &e.slot;
    }

    /// The slot names nothing any more.
    void give_back(Slot& slot) noexcept {
        entry& e = entry_of(slot);
        e.key = next_use(e.key);
        e.in_use = false;
        e.next_free = free_;
        free_ = &e;
        drop();
    }

    [[nodiscard]] static std::uint64_t key(Slot const& slot) noexcept {
        return entry_of(const_cast<Slot&>(slot)).key;
    }

    /// @return the slot, or null when that use of it is over; so for 0, which is no slot's key
    [[nodiscard]] Slot* find(std::uint64_t key) noexcept {
        entry& e = entry_at(key);
        return e.key == key ? &e.slot : nullptr;
    }

    /// The slot of a key whose use is known not to be over.
    [[nodiscard]] Slot& at(std::uint64_t key) noexcept { return entry_at(key).slot; }

    [[nodiscard]] static slot_table& of(Slot& slot) noexcept { return *entry_of(slot).table; }

    template <class F>
    void for_each(F visit) noexcept {
        for (std::uint32_t i = 0; i < size_; ++i) {
            entry& e = chunks_[i / chunk_size]->entries[i % chunk_size];
            if (e.in_use) {
                visit(e.slot);
            }
        }
    }

    /// By the backend, when it ends.
    void retire() noexcept { drop(); }

    /// A key's bits: generations wrap, which leaves the bits above to its user.
    static constexpr std::uint64_t key_mask = (std::uint64_t{1} << 56) - 1;

private:
    static constexpr std::uint32_t chunk_size = 256;
    static constexpr std::uint32_t most_chunks = 1 << 14;

    struct entry {
        Slot slot;
        slot_table* table = nullptr;
        entry* next_free = nullptr;
        std::uint64_t key = 0;  // the index below, the generation above
        bool in_use = false;
    };

    struct chunk {
        entry entries[chunk_size];
    };

    static constexpr std::uint64_t one_generation = std::uint64_t{1} << 32;

    slot_table() noexcept = default;

    [[nodiscard]] entry& entry_at(std::uint64_t key) const noexcept {
        auto const index = static_cast<std::uint32_t>(key);
        chunk* const c = chunks_[index / chunk_size];
        if (c == nullptr) {
            std::unreachable();
        }
        return c->entries[index % chunk_size];
    }

    [[nodiscard]] static std::uint64_t next_use(std::uint64_t key) noexcept {
        std::uint64_t const next = (key + one_generation) & key_mask;
        return next < one_generation ? next + one_generation : next;
    }

    ~slot_table() {
        for (std::uint32_t i = 0; i * chunk_size < size_; ++i) {
            delete chunks_[i];
        }
        ::operator delete(chunks_);
    }

    void drop() noexcept {
        if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }

    static entry& entry_of(Slot& slot) noexcept { return reinterpret_cast<entry&>(slot); }

    [[gnu::noinline]] bool grow() noexcept {
        std::uint32_t const count = size_ / chunk_size;
        if (count == most_chunks) {
            return false;
        }
        if (count == capacity_) {
            std::uint32_t const larger = capacity_ == 0 ? 16 : capacity_ * 2;
            auto** const moved =
                static_cast<chunk**>(::operator new(larger * sizeof(chunk*), std::nothrow));
            if (moved == nullptr) {
                return false;
            }
            for (std::uint32_t i = 0; i < count; ++i) {
                moved[i] = chunks_[i];
            }
            ::operator delete(chunks_);
            chunks_ = moved;
            capacity_ = larger;
        }
        auto* const added = new (std::nothrow) chunk;
        if (added == nullptr) {
            return false;
        }
        chunks_[count] = added;
        for (std::uint32_t i = chunk_size; i-- > 0;) {
            entry& e = added->entries[i];
            e.table = this;
            e.key = one_generation | (size_ + i);
            e.next_free = free_;
            free_ = &e;
        }
        size_ += chunk_size;
        return true;
    }

    chunk** chunks_ = nullptr;
    std::uint32_t capacity_ = 0;
    std::uint32_t size_ = 0;
    entry* free_ = nullptr;
    std::atomic<std::uint32_t> users_{1};
};

}  // namespace plumb
