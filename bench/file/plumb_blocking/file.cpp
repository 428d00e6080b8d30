// SPDX-License-Identifier: Apache-2.0
//
// plumb's blocking read in a loop; copying by clone_extents.
#include "../file.h"

#include <plumb/handle/file_handle.hpp>

namespace {

int copy(file_options const& options) {
    using plumb::file_handle;
    auto const began = file_now();
    auto from = plumb::file({}, options.path).value();
    auto to =
        plumb::file({}, options.copy, file_handle::mode::write, file_handle::creation::create_new)
            .value();
    (void)from.clone_extents(0, from.maximum_extent().value(), to, 0).value();
    to.close().value();
    from.close().value();
    file_report_copy(began);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    file_options const options = file_parse_options(argc, argv);
    if (options.copy != nullptr) {
        return copy(options);
    }
    auto places = file_places_of(&options);
    using caching = plumb::file_handle::caching;
    auto file = plumb::file({}, options.path, plumb::file_handle::mode::read,
                            plumb::file_handle::creation::open_existing,
                            options.direct != 0 ? caching::none : caching::all)
                    .value();
    plumb::buffer const memory(file_memory(file_block), file_block);
    auto meter = file_meter_of(&options);
    do {
        if (file.read({memory, file_next_place(&places)}).bytes_transferred() != file_block) {
            file_fail("read");
        }
    } while (file_count(&meter) != 0);
    file_report(&meter);
}
