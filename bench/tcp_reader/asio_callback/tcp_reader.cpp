// SPDX-License-Identifier: Apache-2.0
//
// asio's async_read_some, whose callback begins the next.
#include "../asio_tcp.hpp"

namespace {

class tcp_reader {
public:
    tcp_reader(asio::io_context& context, reader_options const& o) : options_(o), socket_(context) {
        socket_.async_connect(endpoint_of(o), [this](error_code error) {
            check(error);
            meter_ = reader_begin(&options_);
            read();
        });
    }

    reader_meter const& meter() const { return meter_; }

private:
    void read() {
        socket_.async_read_some(asio::buffer(buffer_, options_.block),
                                [this](error_code error, std::size_t bytes) {
                                    check(error);
                                    if (reader_count(&meter_, bytes)) {
                                        read();
                                    }
                                });
    }

    static void check(error_code error) {
        if (error) {
            reader_fail("asio", error.message().c_str());
        }
    }

    reader_options options_;
    tcp_socket socket_;
    reader_meter meter_{};
    std::array<char, reader_most_block> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
    asio::io_context context(1);
    tcp_reader reader(context, reader_parse_options(argc, argv));
    context.run();
    return reader_report(&reader.meter());
}
