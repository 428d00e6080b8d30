// SPDX-License-Identifier: Apache-2.0
//
// Futures with `then`; each completion comes through the queue.
#include "../handcrafted.hpp"
#include "future.hpp"

namespace {

template <class Result, class Value>
void give(promise<Value> const& to, Result const& r, Value value) {
    if (r) {
        to.set_value(std::move(value));
    } else {
        to.set_exception(std::make_exception_ptr(std::system_error(r.error())));
    }
}

future<nothing> connect(connection& c, std::uint16_t port) {
    promise<nothing> const made;
    c.connect(port, [made](plumb::result<void> const& r) { give(made, r, nothing()); });
    return made.get_future();
}

future<std::size_t> read(connection& c, std::byte* to, std::size_t most) {
    promise<std::size_t> const made;
    c.read(to, most, [made](read_result const& r) { give(made, r, r.bytes_transferred()); });
    return made.get_future();
}

future<int> tcp_reader(reader_options const& o) {
    struct state {
        explicit state(reader_options const& given) : options(given) {}
        reader_options options;
        reader_meter meter{};
        connection peer;
        std::byte buffer[reader_most_block];
    };
    auto s = std::make_shared<state>(o);
    return connect(s->peer, o.port)
        .then([s](future<nothing> connected) {
            connected.get();
            s->meter = reader_begin(&s->options);
            return do_while([s] {
                return read(s->peer, s->buffer, s->options.block)
                    .then([s](future<std::size_t> got) {
                        return make_ready_future(reader_count(&s->meter, got.get()) != 0);
                    });
            });
        })
        .then([s](future<nothing> over) {
            over.get();
            return make_ready_future(reader_report(&s->meter));
        });
}

}  // namespace

int main(int argc, char** argv) {
    auto result = tcp_reader(reader_parse_options(argc, argv));
    while (plumb::io_multiplexer::this_thread().run().value() != 0) {
    }
    return result.get();
}
