// SPDX-License-Identifier: Apache-2.0
// The main program of a target where there is no libFuzzer: it runs the inputs of a folder.
#include "input.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
    std::size_t inputs = 0;
    for (int i = 1; i < argc; ++i) {
        for (auto const& file : std::filesystem::directory_iterator(argv[i])) {
            std::ifstream from(file.path(), std::ios::binary);
            std::vector<char> const bytes(std::istreambuf_iterator<char>(from), {});
            std::printf("%s\n", file.path().c_str());
            std::fflush(stdout);
            LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(bytes.data()),
                                   bytes.size());
            ++inputs;
        }
    }
    plumb::fuzz::check(inputs != 0, "there are inputs");
    return 0;
}
