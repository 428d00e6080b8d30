// SPDX-License-Identifier: Apache-2.0
//
// Coroutines each of whose frames is a block of the heap, so that counting allocations counts frames.
#include "../coroutines.hpp"

#include <plumb/task/frame_allocation.hpp>

#include <cstddef>
#include <cstdlib>

namespace {

class object : public coroutine_object {
public:
    [[nodiscard]] plumb::frame_resource& get_frame_resource() const noexcept {
        static heap resource;
        return resource;
    }

private:
    class heap : public plumb::frame_resource {
    public:
        heap() noexcept : frame_resource(functions_of) {}

    private:
        static void* take(frame_resource&, std::size_t bytes) noexcept {
            return std::malloc(bytes);
        }
        static void give_back(frame_resource&, void* block, std::size_t) noexcept {
            std::free(block);
        }
        static void keep(frame_resource&) noexcept {}
        static constexpr functions functions_of{&take, &give_back, &keep, &keep};
    };
};

}  // namespace

int main(int argc, char** argv) { return run_coroutines<object>(argc, argv); }
