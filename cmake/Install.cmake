# Install: `cmake --install build/release --prefix DIR`: the command, the libraries, the headers, and
# a package for find_package(heddle): heddle::heddle (compiler and runtime), heddle::runtime (the
# runtime alone), heddle::runtime_static with heddle::pool_static for programs with a model inside.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)

foreach(target heddle heddle_runtime_shared)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(heddle PROPERTIES EXPORT_NAME heddle INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(heddle_runtime_shared PROPERTIES EXPORT_NAME runtime)
set_target_properties(heddle_runtime PROPERTIES EXPORT_NAME runtime_static)
set_target_properties(heddle_pool PROPERTIES EXPORT_NAME pool_static)
set_target_properties(heddle-cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS heddle heddle_runtime_shared heddle_runtime heddle_pool EXPORT heddleTargets)
install(TARGETS heddle-cli)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/heddle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET heddle_aarch64)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/aarch64 DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION ${package})
file(WRITE ${CMAKE_BINARY_DIR}/heddleConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
  "include(\${CMAKE_CURRENT_LIST_DIR}/heddleTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heddleConfig.cmake ${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake
  DESTINATION ${package})
