# One folder of compiler/ is one stage: a static library heddle-<folder> with one precompiled header.

# MLIR generates functions that do not use all of their parameters.
set(HEDDLE_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter)
# What a damaged or hostile model finds on its way: canaries, checked string functions, and tables of
# functions that cannot be written to once the library is loaded.
set(HEDDLE_HARDENED -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
if(HEDDLE_SANITIZE)
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
endif()
if(HEDDLE_FUZZ)
  # MLIR comes without run-time type information, which two checks need.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=vptr,function)
endif()

# heddle_stage(<folder> SOURCES a.cpp ... [USES stage ...] [LINKS library ...])
# The one precompiled header of all stages is built by the target heddle-pch (compiler/Prelude.h).
function(heddle_stage name)
  cmake_parse_arguments(STAGE "" "" "SOURCES;USES;LINKS" ${ARGN})
  set(target heddle-${name})
  add_library(${target} STATIC ${STAGE_SOURCES})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR})
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE ${HEDDLE_WARNINGS})
  target_precompile_headers(${target} REUSE_FROM heddle-pch)
  foreach(used ${STAGE_USES})
    target_link_libraries(${target} PUBLIC heddle-${used})
  endforeach()
  target_link_libraries(${target} PUBLIC ${STAGE_LINKS})
  if(TARGET heddle-graph-gen)
    add_dependencies(${target} heddle-graph-gen)
  endif()
  if(TARGET heddle-loop-gen AND NOT name MATCHES "^(support|graph|onnx|reference|simplify)$")
    add_dependencies(${target} heddle-loop-gen)
  endif()
endfunction()

# heddle_test(<name> SOURCES a.cpp ... LINKS library ...)
# The unit tests heddle-<name>-test, where GoogleTest is installed. An object library, since only that
# is compiled as the precompiled header is.
function(heddle_test name)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    return()
  endif()
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  set(target heddle-${name}-test)
  add_library(${target}-objects OBJECT ${TEST_SOURCES})
  target_link_libraries(${target}-objects PRIVATE ${TEST_LINKS} GTest::gtest)
  target_compile_options(${target}-objects PRIVATE ${HEDDLE_WARNINGS})
  target_precompile_headers(${target}-objects REUSE_FROM heddle-pch)
  add_executable(${target} $<TARGET_OBJECTS:${target}-objects>)
  target_link_libraries(${target} PRIVATE ${TEST_LINKS} GTest::gtest_main)
  add_test(NAME ${target} COMMAND ${target} --gtest_brief=1)
endfunction()
