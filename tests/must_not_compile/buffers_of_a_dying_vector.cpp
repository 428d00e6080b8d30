// SPDX-License-Identifier: Apache-2.0
// A view of a temporary would dangle.
// expect: conversion from
// expect: no viable conversion from
#include <plumb/base/buffers.hpp>

#include <vector>

int main() {
    plumb::buffers const list = std::vector<plumb::buffer>(3);
    return static_cast<int>(list.size());
}
