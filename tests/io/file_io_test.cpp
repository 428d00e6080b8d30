// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>

namespace plumb::test {
namespace {

class file_io_test : public on_every_backend {};

INSTANTIATE_TEST_SUITE_P(backends, file_io_test, real_backends(), name_of_backend);

TEST_P(file_io_test, asynchronous_reads_of_files_are_not_supported_and_say_so) {
    auto file = file_handle::temporary_inode({}).value();
    file.set_multiplexer(multiplexer());
    std::array<std::byte, 8> memory{};
    record_of<async_read> read;
    auto operation = connect(async_read(file, {buffer(memory), 0}), recorder(read));
    EXPECT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(read.value->error(), std::errc::not_supported);
}

}  // namespace
}  // namespace plumb::test
