# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/plumb")
install(TARGETS plumb plumb_aio plumb_sim EXPORT plumbTargets FILE_SET HEADERS)
install(EXPORT plumbTargets NAMESPACE plumb:: DESTINATION "${package_dir}")
if(TARGET plumb_cli)
    install(TARGETS plumb_cli)
endif()
configure_package_config_file(cmake/plumbConfig.cmake.in "${PROJECT_BINARY_DIR}/plumbConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/plumbConfig.cmake"
              "${PROJECT_BINARY_DIR}/plumbConfigVersion.cmake" DESTINATION "${package_dir}")

# What gdb knows of plumb; a copy that is named as the shared library is found by itself.
install(FILES tools/gdb/plumb_gdb.py DESTINATION "${CMAKE_INSTALL_DATADIR}/plumb/gdb")
if(BUILD_SHARED_LIBS)
    install(FILES tools/gdb/plumb_gdb.py
            DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR}"
            RENAME "libplumb.so.${PROJECT_VERSION}-gdb.py")
endif()

# plumb_pkg_config(<name> <library> <description> <what it requires>)
function(plumb_pkg_config name library description requires)
    set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
    # Relative, so that the installed tree can be moved.
    file(RELATIVE_PATH prefix "/prefix/${pc_dir}" "/prefix")
    configure_file(plumb.pc.in ${name}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${pc_dir}")
endfunction()

plumb_pkg_config(plumb plumb "${PROJECT_DESCRIPTION}" "liburing")
plumb_pkg_config(plumb-aio plumb_aio "The asyncio-like layer of plumb" "plumb = ${PROJECT_VERSION}")
plumb_pkg_config(plumb-sim plumb_sim "Simulated time and network for plumb"
                 "plumb = ${PROJECT_VERSION}")
