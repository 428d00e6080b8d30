// SPDX-License-Identifier: Apache-2.0
//
// Callbacks as they are composed by value: a composed operation is the handler of its parts, and moves on with each of
// them, so that one block is in use at a time; one block is kept for the thread.
#include "../callbacks.hpp"

namespace {

/// As the paper has it.
class one_block {
public:
    static void* allocate(std::size_t bytes) {
        one_block& kept = of_this_thread();
        if (kept.block_ != nullptr && kept.bytes_ >= bytes) {
            return std::exchange(kept.block_, nullptr);
        }
        return ::operator new(bytes);
    }

    static void deallocate(void* block, std::size_t bytes) noexcept {
        one_block& kept = of_this_thread();
        if (kept.block_ == nullptr || bytes >= kept.bytes_) {
            ::operator delete(kept.block_);
            kept.block_ = block;
            kept.bytes_ = bytes;
        } else {
            ::operator delete(block);
        }
    }

    one_block(one_block const&) = delete;
    one_block& operator=(one_block const&) = delete;
    ~one_block() { ::operator delete(block_); }

private:
    constexpr one_block() noexcept = default;
    static one_block& of_this_thread() noexcept {
        static thread_local one_block kept;
        return kept;
    }

    void* block_ = nullptr;
    std::size_t bytes_ = 0;
};

using object = callback_object<one_block>;

struct levels {
    template <class Handler>
    static void async_read_some(object& o, Handler handler) {
        o.async_io([handler = std::move(handler)]() mutable { handler(); });
    }

    template <class Handler>
    static void async_read(object& o, Handler handler) {
        async_read_some(o, reading<Handler>{&o, reads_of_a_level, std::move(handler)});
    }

    template <class Handler>
    static void async_request(object& o, Handler handler) {
        async_read(o, requesting<Handler>{&o, reads_of_a_level, std::move(handler)});
    }

private:
    template <class Handler>
    struct reading {
        object* of;
        int left;
        Handler handler;

        void operator()() {
            if (--left != 0) {
                async_read_some(*of, std::move(*this));
            } else {
                handler();
            }
        }
    };

    template <class Handler>
    struct requesting {
        object* of;
        int left;
        Handler handler;

        void operator()() {
            if (--left != 0) {
                async_read(*of, std::move(*this));
            } else {
                handler();
            }
        }
    };
};

}  // namespace

int main(int argc, char** argv) {
    return run_layers(argc, argv, []<int Shape>(plumb::io_context& context, layers_meter& meter) {
        callback_driver<Shape, object, levels>(context, meter);
    });
}
