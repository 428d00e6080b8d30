# SPDX-License-Identifier: Apache-2.0

# plumb_library(<target> ROOMS <room>...)
#
# Adds a library made of rooms: the sources in src/<room>/ and the public headers in
# include/plumb/<room>/, found by name, so that a new file needs no edit here. `plumb_aio` is
# `plumb::aio` to those who link it, in this build as in an installed package.
function(plumb_library target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" ROOMS)
    set(sources "")
    set(headers "")
    foreach(room IN LISTS arg_ROOMS)
        file(GLOB_RECURSE found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cpp")
        list(APPEND sources ${found})
        file(GLOB_RECURSE found CONFIGURE_DEPENDS
             "${PROJECT_SOURCE_DIR}/include/plumb/${room}/*.hpp")
        list(APPEND headers ${found})
    endforeach()

    string(REPLACE "plumb_" "" exported_name ${target})
    add_library(${target} ${sources})
    add_library(plumb::${exported_name} ALIAS ${target})
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include"
                                    FILES ${headers})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_compile_features(${target} PUBLIC cxx_std_23)
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${exported_name}
                                               VERSION ${PROJECT_VERSION}
                                               SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# plumb_without_exceptions(<target> ROOMS <room>...)
#
# Compiles these rooms of the library without exceptions and RTTI, all but the one file that throws.
function(plumb_without_exceptions target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" ROOMS)
    list(JOIN arg_ROOMS "|" rooms)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "/src/(${rooms})/")
    list(FILTER sources EXCLUDE REGEX "/src/base/throw_error\\.cpp$")
    set_source_files_properties(${sources} TARGET_DIRECTORY ${target}
                                PROPERTIES COMPILE_OPTIONS "-fno-exceptions;-fno-rtti")
endfunction()
