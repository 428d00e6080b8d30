// SPDX-License-Identifier: Apache-2.0
//
// Callbacks at their best: a composed operation has a block of its own, which stays where it is, and gives its parts one
// pointer; blocks are kept by size, which the compiler knows.
#include "../callbacks.hpp"

namespace {

class by_size {
public:
    static void* allocate(std::size_t bytes) {
        by_size& kept = of_this_thread[class_of(bytes)];
        if (kept.first_ != nullptr) {
            return std::exchange(kept.first_, kept.first_->next);
        }
        return ::operator new(class_of(bytes) * step);
    }

    static void deallocate(void* block, std::size_t bytes) noexcept {
        by_size& kept = of_this_thread[class_of(bytes)];
        kept.first_ = ::new (block) free_block{kept.first_};
    }

private:
    static constexpr std::size_t step = 16;
    static constexpr std::size_t classes = 16;  // more than any operation here has
    static constexpr std::size_t class_of(std::size_t bytes) { return (bytes + step - 1) / step; }

    struct free_block {
        free_block* next;
    };
    static thread_local constinit by_size of_this_thread[classes];
    free_block* first_ = nullptr;
};
thread_local constinit by_size by_size::of_this_thread[classes];

using object = callback_object<by_size>;

struct levels {
    template <class Handler>
    static void async_read_some(object& o, Handler handler) {
        o.async_io([handler = std::move(handler)]() mutable { handler(); });
    }

    template <class Handler>
    static void async_read(object& o, Handler handler) {
        auto const begin = [](object& of, auto step) { async_read_some(of, step); };
        repeated<Handler, decltype(begin)>::start(o, std::move(handler));
    }

    template <class Handler>
    static void async_request(object& o, Handler handler) {
        auto const begin = [](object& of, auto step) { async_read(of, step); };
        repeated<Handler, decltype(begin)>::start(o, std::move(handler));
    }

private:
    /// Ten of a lower level, one after another.
    template <class Handler, class Begin>
    struct repeated {
        object* of;
        int left;
        Handler handler;

        struct step {
            repeated* self;

            void operator()() const {
                if (--self->left != 0) {
                    Begin()(*self->of, *this);
                    return;
                }
                Handler next(std::move(self->handler));
                self->~repeated();
                by_size::deallocate(self, sizeof(repeated));
                next();
            }
        };

        static void start(object& o, Handler handler) {
            void* const block = by_size::allocate(sizeof(repeated));
            Begin()(o, step{::new (block) repeated{&o, reads_of_a_level, std::move(handler)}});
        }
    };
};

}  // namespace

int main(int argc, char** argv) {
    return run_layers(argc, argv, []<int Shape>(plumb::io_context& context, layers_meter& meter) {
        callback_driver<Shape, object, levels>(context, meter);
    });
}
