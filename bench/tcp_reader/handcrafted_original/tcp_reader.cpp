// SPDX-License-Identifier: Apache-2.0
//
// A state machine by hand: each completion comes through the queue and begins the next read, for which it allocates.
#include "../handcrafted.hpp"

namespace {

class tcp_reader : public machine<tcp_reader> {
public:
    explicit tcp_reader(reader_options const& o) : machine(o) {}

private:
    friend machine;

    void on_read(read_result const& r) {
        if (!r) {
            return on_error(r.error());
        }
        if (!reader_count(&meter_, r.bytes_transferred())) {
            return on_complete();
        }
        read();
    }

    void begin() { read(); }
    void read() {
        connection_.read(buffer_, options_.block, [this](auto const& r) { on_read(r); });
    }
};

}  // namespace

int main(int argc, char** argv) { return run_machine<tcp_reader>(argc, argv); }
