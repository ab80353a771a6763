# One folder of compiler/ is one stage: a static library heddle-<folder>, compiled with a precompiled
# header that holds no more than the stage may use.

# MLIR generates functions that do not use all of their parameters.
set(HEDDLE_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter)
# Defences against a damaged or hostile model: canaries, checked string functions, and tables of
# functions that cannot be written to once the library is loaded.
set(HEDDLE_HARDENED -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
add_compile_options(-fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Compilations of one checkout are found again in another (cmake/cached). Templates of a
  # precompiled header are instantiated once: 0.7 s per file instead of 5.
  add_compile_options(-ffile-compilation-dir=. "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>"
    $<$<COMPILE_LANGUAGE:CXX>:-fpch-instantiate-templates>)
endif()
if(NOT HEDDLE_SANITIZE)
  add_compile_definitions($<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()
if(HEDDLE_SANITIZE)
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
endif()
if(HEDDLE_FUZZ)
  # MLIR comes without run-time type information, which two checks need.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize=vptr,function)
endif()

# heddle_prelude(<target> <header> [target ...]): builds the precompiled header that others reuse, after
# the targets that generate what it includes. Its name is given without the checkout's folder, since
# objects depend on it.
function(heddle_prelude target header)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/compiler/Prelude.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE ${HEDDLE_WARNINGS})
  target_precompile_headers(${target} PRIVATE <${header}>)
  if(ARGN)
    add_dependencies(${target} ${ARGN})
  endif()
endfunction()

function(heddle_tablegen_flags flags)
  list(TRANSFORM MLIR_INCLUDE_DIRS PREPEND "-I;" OUTPUT_VARIABLE included)
  set(${flags} -I ${CMAKE_SOURCE_DIR} ${included} PARENT_SCOPE)
endfunction()

# heddle_passes(<name> [folder ...]): the generated files of Passes.td here, or in each folder;
# registerGeneratedPasses() registers all passes of a file.
function(heddle_passes name)
  heddle_tablegen_flags(flags)
  if(NOT ARGN)
    set(ARGN .)
  endif()
  foreach(folder ${ARGN})
    set(LLVM_TARGET_DEFINITIONS ${folder}/Passes.td)
    mlir_tablegen(${folder}/Passes.h.inc -gen-pass-decls -name=Generated ${flags})
  endforeach()
  add_public_tablegen_target(heddle-${name}-gen)
endfunction()

# heddle_dialect(<folder> KIND ...): the generated files of Ops.td: the dialect, its ops, and of the
# kinds that it has: Attrs, Types, Enums.
function(heddle_dialect name)
  set(LLVM_TARGET_DEFINITIONS Ops.td)
  heddle_tablegen_flags(flags)
  set(Attrs attrdef -attrdefs-dialect=${name})
  set(Types typedef -typedefs-dialect=${name})
  set(Enums enum)
  set(Ops op)
  set(Dialect dialect -dialect=${name})
  foreach(kind Dialect Ops ${ARGN})
    list(POP_FRONT ${kind} what)
    mlir_tablegen(${kind}.h.inc -gen-${what}-decls ${${kind}} ${flags})
    mlir_tablegen(${kind}.cpp.inc -gen-${what}-defs ${${kind}} ${flags})
  endforeach()
  add_public_tablegen_target(heddle-${name}-gen)
endfunction()

# heddle_layers(): reads LAYERS, which says once what each folder uses: sets HEDDLE_STAGES, in its order,
# and HEDDLE_USES_<folder>.
function(heddle_layers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/LAYERS)
  file(STRINGS ${CMAKE_SOURCE_DIR}/LAYERS lines REGEX "^[a-z]+:")
  set(stages "")
  foreach(line ${lines})
    string(REGEX MATCH "^([a-z]+):(.*)$" line "${line}")
    list(APPEND stages ${CMAKE_MATCH_1})
    separate_arguments(uses UNIX_COMMAND "${CMAKE_MATCH_2}")
    set(HEDDLE_USES_${CMAKE_MATCH_1} ${uses} PARENT_SCOPE)
  endforeach()
  set(HEDDLE_STAGES ${stages} PARENT_SCOPE)
endfunction()

# heddle_stage(<folder> SOURCES a.cpp ... [LINKS library ...])
# Links the folders that LAYERS lets it use, and LLVM and MLIR. A stage that uses the graph, itself or
# through others, is compiled with the graph's header.
function(heddle_stage name)
  cmake_parse_arguments(STAGE "" "" "SOURCES;LINKS" ${ARGN})
  set(target heddle-${name})
  add_library(${target} STATIC ${STAGE_SOURCES})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR})
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE ${HEDDLE_WARNINGS})
  set(pch heddle-pch)
  foreach(used ${HEDDLE_USES_${name}})
    if(used MATCHES "^runtime/")
      target_link_libraries(${target} PUBLIC heddle_runtime)
    endif()
    if(NOT TARGET heddle-${used})
      continue()
    endif()
    target_link_libraries(${target} PUBLIC heddle-${used})
    get_target_property(pch_of_used heddle-${used} HEDDLE_PCH)
    if(pch_of_used STREQUAL heddle-graph-pch)
      set(pch heddle-graph-pch)
    endif()
  endforeach()
  if(name STREQUAL graph)
    set(pch heddle-graph-pch)
  endif()
  set_target_properties(${target} PROPERTIES HEDDLE_PCH ${pch})
  target_precompile_headers(${target} REUSE_FROM ${pch})
  target_link_libraries(${target} PUBLIC ${STAGE_LINKS} MLIR LLVM)
  foreach(generated graph warehouse program simplify partition target)
    if(TARGET heddle-${generated}-gen)
      add_dependencies(${target} heddle-${generated}-gen)
    endif()
  endforeach()
endfunction()

# heddle_test_program(<target> source ...): a program that is built with the target `tests`, not by default.
function(heddle_test_program target)
  add_executable(${target} EXCLUDE_FROM_ALL ${ARGN})
  add_dependencies(tests ${target})
endfunction()

# heddle_test(<name> [UNLISTED] SOURCES a.cpp ... LINKS library ...)
# The unit tests heddle-<name>-test, where GoogleTest is installed, known to ctest unless UNLISTED. An
# object library, since only that is compiled as the precompiled header is.
function(heddle_test name)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    return()
  endif()
  if(NOT TARGET heddle-test-pch)
    heddle_prelude(heddle-test-pch test/prelude.h heddle-graph-gen)
    target_link_libraries(heddle-test-pch PRIVATE GTest::gtest) # its definitions
  endif()
  cmake_parse_arguments(TEST "UNLISTED" "" "SOURCES;LINKS" ${ARGN})
  set(target heddle-${name}-test)
  add_library(${target}-objects OBJECT EXCLUDE_FROM_ALL ${TEST_SOURCES})
  target_link_libraries(${target}-objects PRIVATE ${TEST_LINKS} GTest::gtest)
  target_compile_options(${target}-objects PRIVATE ${HEDDLE_WARNINGS})
  target_precompile_headers(${target}-objects REUSE_FROM heddle-test-pch)
  heddle_test_program(${target} $<TARGET_OBJECTS:${target}-objects>)
  target_link_libraries(${target} PRIVATE ${TEST_LINKS} GTest::gtest_main)
  if(NOT TEST_UNLISTED)
    add_test(NAME ${target} COMMAND ${target} --gtest_brief=1)
  endif()
endfunction()

# heddle_fuzz(<name> SOURCES a.cpp ... LINKS library ...): the libFuzzer target heddle-<name>-fuzz.
function(heddle_fuzz name)
  cmake_parse_arguments(FUZZ "" "" "SOURCES;LINKS" ${ARGN})
  set(target heddle-${name}-fuzz)
  add_library(${target}-objects OBJECT ${FUZZ_SOURCES})
  target_link_libraries(${target}-objects PRIVATE ${FUZZ_LINKS})
  target_compile_options(${target}-objects PRIVATE ${HEDDLE_WARNINGS})
  target_precompile_headers(${target}-objects REUSE_FROM heddle-graph-pch)
  add_executable(${target} $<TARGET_OBJECTS:${target}-objects>)
  target_link_libraries(${target} PRIVATE ${FUZZ_LINKS})
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
endfunction()
