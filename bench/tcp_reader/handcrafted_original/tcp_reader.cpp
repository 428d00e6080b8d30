// SPDX-License-Identifier: Apache-2.0
//
// A state machine by hand: each completion comes through the queue and begins the next read, for which it allocates.
#include "../handcrafted.hpp"

namespace {

class tcp_reader {
public:
    static void start(reader_options const& o) {
        auto p = std::make_unique<tcp_reader>(o);
        p->connection_.connect(o.port, [raw = p.get()](auto const& r) { raw->on_connect(r); });
        (void)p.release();
    }

    explicit tcp_reader(reader_options const& o) : options_(o) {}

    inline static int exit_status = 1;

private:
    void on_connect(plumb::result<void> const& r) {
        if (!r) {
            return on_error(r.error());
        }
        meter_ = reader_begin(&options_);
        read();
    }

    void on_read(read_result const& r) {
        if (!r) {
            return on_error(r.error());
        }
        if (!reader_count(&meter_, r.bytes_transferred())) {
            return on_complete();
        }
        read();
    }

    void read() {
        connection_.read(buffer_, options_.block, [this](auto const& r) { on_read(r); });
    }

    void on_error(std::error_code error) {
        std::unique_ptr<tcp_reader> const me(this);
        std::fprintf(stderr, "tcp_reader: %s\n", error.message().c_str());
    }

    void on_complete() {
        std::unique_ptr<tcp_reader> const me(this);
        exit_status = reader_report(&meter_);
    }

    reader_options options_;
    reader_meter meter_{};
    connection connection_;
    std::byte buffer_[reader_most_block];
};

}  // namespace

int main(int argc, char** argv) { return run_machine<tcp_reader>(argc, argv); }
