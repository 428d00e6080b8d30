// SPDX-License-Identifier: Apache-2.0
//
// A state machine by hand, which goes on in a loop while reads are over at once.
#include "../handcrafted.hpp"

namespace {

class tcp_reader : public machine<tcp_reader> {
public:
    explicit tcp_reader(reader_options const& o) : machine(o) {}

private:
    friend machine;

    void begin() {
        read_result got;
        if (read(got)) {
            on_read(got);
        }
    }

    void on_read(read_result got) {
        do {
            if (!got) {
                return on_error(got.error());
            }
            if (!reader_count(&meter_, got.bytes_transferred())) {
                return on_complete();
            }
        } while (read(got));
    }

    bool read(read_result& got) {
        return connection_.read(buffer_, options_.block, got,
                                [this](auto const& r) { on_read(r); });
    }
};

}  // namespace

int main(int argc, char** argv) { return run_machine<tcp_reader>(argc, argv); }
