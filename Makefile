# SPDX-License-Identifier: Apache-2.0
# Thin wrappers: everything that they do is in the presets and in tools/.

SUITE ?= echo
SECONDS ?= 60
JOBS := $(shell nproc)

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

deps: ## install what is missing to build and test
	@tools/install_deps core

check: deps ## build everything and run the tests
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev --parallel $(JOBS)

check-large: deps ## copy files of several GB, beside cp and socat
	cmake --preset dev
	cmake --build --preset dev --target plumb_cli --parallel $(JOBS)
	ctest --preset dev --build-config large --label-regex '^large$$' --verbose

demo: deps ## serve real load beside asio and print the table
	@tools/install_deps demo
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	tools/demo

bench: deps ## measure a suite beside its peers: make bench SUITE=echo
	@tools/install_deps bench
	bench/run $(SUITE)

fuzz: deps ## try random inputs: make fuzz TARGET=endpoint SECONDS=60
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS)
	fuzz/run $(SECONDS) $(TARGET)

format: deps ## lay out the sources
	tools/format

.PHONY: help deps check check-large demo bench fuzz format
