# Bundle: libheddle, the command and a linker for machines that have none of our packages. What is
# used of LLVM, MLIR and LLD is inside of libheddle.so; `heddle-ld` is its linker as a program. Built
# by the target `bundle` from the objects of the other targets, into build/*/bundle; `./dev wheel`
# puts the few shared libraries beside it that it still needs, and packs all.
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(SQLite3 REQUIRED)
find_library(HEDDLE_LLD lldELF PATHS ${LLVM_LIBRARY_DIR} NO_DEFAULT_PATH)
find_library(HEDDLE_LLD_COMMON lldCommon PATHS ${LLVM_LIBRARY_DIR} NO_DEFAULT_PATH)
if(NOT HEDDLE_LLD)
  return()
endif()

# Archives that hold all; the linker takes what is asked for.
file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
# Debian's archives of these are no code for shared libraries.
foreach(name z zstd tinfo)
  find_library(HEDDLE_LIBRARY_${name} NAMES ${name} lib${name}.so.6 lib${name}.so.1 REQUIRED)
  list(APPEND archives ${HEDDLE_LIBRARY_${name}})
endforeach()
set(own "")
foreach(stage ${HEDDLE_STAGES} onnx-proto)
  list(APPEND own $<TARGET_FILE:heddle-${stage}>)
endforeach()

add_library(heddle-linker OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tools/wheel/linker.cpp)
target_include_directories(heddle-linker SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_options(heddle-linker PRIVATE ${HEDDLE_WARNINGS})

add_library(heddle-bundled SHARED EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/runtime/base/empty.c
  $<TARGET_OBJECTS:heddle-linker>)
add_dependencies(heddle-bundled heddle) # the stages
target_link_libraries(heddle-bundled PRIVATE
  -Wl,--whole-archive $<TARGET_FILE:heddle-api> $<TARGET_FILE:heddle_runtime> $<TARGET_FILE:heddle_pool>
  -Wl,--no-whole-archive ${own} ${HEDDLE_LLD} ${HEDDLE_LLD_COMMON} ${archives}
  protobuf::libprotobuf SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(heddle-bundled PRIVATE ${HEDDLE_HARDENED}
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/compiler/api/exports.map -Wl,--no-undefined -Wl,--build-id
  -Wl,--gc-sections -Wl,-s)
set_target_properties(heddle-bundled PROPERTIES
  OUTPUT_NAME heddle LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/lib
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/compiler/api/exports.map)

add_executable(heddle-bundled-cli EXCLUDE_FROM_ALL $<TARGET_OBJECTS:heddle-cli>)
set_target_properties(heddle-bundled-cli PROPERTIES OUTPUT_NAME heddle)
add_executable(heddle-ld EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tools/wheel/ld.c)
foreach(program heddle-bundled-cli heddle-ld)
  target_link_libraries(${program} PRIVATE heddle-bundled)
  target_link_options(${program} PRIVATE ${HEDDLE_HARDENED} -Wl,-s)
  set_target_properties(${program} PROPERTIES LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/bin
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
endforeach()
add_custom_target(bundle DEPENDS heddle-bundled-cli heddle-ld)
