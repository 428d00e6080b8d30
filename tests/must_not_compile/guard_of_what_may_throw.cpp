// SPDX-License-Identifier: Apache-2.0
// What is guarded is left by a jump and not by an exception.
// expect: no matching member function for call to 'guarded'
// expect: plumb::mapped_file_handle::guarded(
#include <plumb/handle/mapped_file_handle.hpp>

int main() {
    plumb::mapped_file_handle file;
    return file.guarded([] {}) ? 0 : 1;
}
