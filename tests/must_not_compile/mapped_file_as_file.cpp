// SPDX-License-Identifier: Apache-2.0
// A mapped file is no file with more members: its descriptor can't be moved out from under its map.
// expect: could not convert
// expect: conversion from
// expect: no viable conversion from
#include <plumb/handle/mapped_file_handle.hpp>

#include <utility>

int main() {
    plumb::mapped_file_handle mapped;
    plumb::file_handle file = std::move(mapped);
}
