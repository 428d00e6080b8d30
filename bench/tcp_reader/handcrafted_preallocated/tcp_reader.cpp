// SPDX-License-Identifier: Apache-2.0
//
// A state machine by hand, at its best: one operation and its handler are part of it and are used again for each read; it
// goes on in a loop while reads are over at once.
#include "../handcrafted.hpp"

#include <optional>

namespace {

class tcp_reader : public machine<tcp_reader> {
public:
    explicit tcp_reader(reader_options const& o) : machine(o) {}

private:
    friend machine;

    void begin() {
        plumb::async_read const sender(connection_.socket(),
                                       plumb::buffers(buffer_, options_.block));
        read_.emplace(sender, receiver{this});
        if (over_at_once()) {
            on_read();
        }
    }

    void on_read() {
        do {
            if (error_) {
                return on_error(error_);
            }
            if (!reader_count(&meter_, bytes_)) {
                return on_complete();
            }
            read_->reset();
        } while (over_at_once());
    }

    bool over_at_once() {
        if (read_->start() == plumb::io_status::pending) {
            return false;
        }
        in_loop_ = true;
        (void)read_->poll();
        in_loop_ = false;
        return true;
    }

    struct receiver {
        tcp_reader* self;
        void set_value(read_result&& r) const noexcept {
            self->bytes_ = r.bytes_transferred();
            if (!r) {
                self->error_ = r.error();
            }
        }
        void set_done() const noexcept {
            if (!self->in_loop_) {
                self->on_read();
            }
        }
    };

    std::size_t bytes_ = 0;
    std::error_code error_;
    bool in_loop_ = false;
    std::optional<plumb::io_operation_connection<plumb::async_read, receiver>> read_;
};

}  // namespace

int main(int argc, char** argv) { return run_machine<tcp_reader>(argc, argv); }
