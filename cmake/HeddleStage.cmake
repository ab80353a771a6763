# One folder of compiler/ is one stage: a static library heddle-<folder> with one precompiled header.

# MLIR generates functions that do not use all of their parameters.
set(HEDDLE_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter)
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
