# Aarch64Runtime: the runtime for artefacts that are compiled for AArch64 on another machine, where
# clang and Debian's 'libc6-dev-arm64-cross' are there: build/*/lib/aarch64/libheddle_runtime.a and
# libheddle_pool.a. Atomics are instructions: artefacts are not linked with libgcc, which has them as
# functions.
#
# heddle_aarch64_runtime(RUNTIME source ... POOL source ... INCLUDES folder ... HEADERS file ...)
function(heddle_aarch64_runtime)
  cmake_parse_arguments(CROSS "" "" "RUNTIME;POOL;INCLUDES;HEADERS" ${ARGN})
  find_program(HEDDLE_CROSS_CLANG NAMES clang-${HEDDLE_LLVM} clang)
  find_program(HEDDLE_CROSS_AR NAMES llvm-ar-${HEDDLE_LLVM} llvm-ar PATHS /usr/lib/llvm-${HEDDLE_LLVM}/bin)
  find_path(HEDDLE_AARCH64_LIBC stdlib.h PATHS /usr/aarch64-linux-gnu/include NO_DEFAULT_PATH)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64" OR HEDDLE_SANITIZE OR NOT HEDDLE_CROSS_CLANG OR
     NOT HEDDLE_CROSS_AR OR NOT HEDDLE_AARCH64_LIBC)
    return()
  endif()
  # Headers of libraries that are only declared are the same for all architectures, and are beside
  # those of this machine's libc, which are not.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/aarch64/include)
  file(MAKE_DIRECTORY ${include})
  foreach(folder ${CROSS_INCLUDES})
    file(CREATE_LINK ${folder} ${include}/oneapi SYMBOLIC)
  endforeach()
  foreach(header ${CROSS_HEADERS})
    get_filename_component(name ${header} NAME)
    file(CREATE_LINK ${header} ${include}/${name} SYMBOLIC)
  endforeach()
  set(archives "")
  foreach(library RUNTIME POOL)
    set(objects "")
    foreach(source ${CROSS_${library}})
      set(object ${CMAKE_CURRENT_BINARY_DIR}/aarch64/${source}.o)
      get_filename_component(folder ${object} DIRECTORY)
      file(MAKE_DIRECTORY ${folder})
      add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${HEDDLE_CROSS_CLANG} --target=aarch64-linux-gnu
          -std=gnu11 -O3 -DNDEBUG -fPIC -fvisibility=hidden -ffunction-sections
          -mno-outline-atomics -D_GNU_SOURCE -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/include
          -isystem ${include} -isystem ${HEDDLE_AARCH64_LIBC} ${HEDDLE_WARNINGS}
          -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building ${source} for AArch64" VERBATIM)
      list(APPEND objects ${object})
    endforeach()
    string(TOLOWER ${library} name)
    set(archive ${CMAKE_BINARY_DIR}/lib/aarch64/libheddle_${name}.a)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/aarch64)
    add_custom_command(OUTPUT ${archive} COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
      COMMAND ${HEDDLE_CROSS_AR} rcsD ${archive} ${objects} DEPENDS ${objects} VERBATIM)
    list(APPEND archives ${archive})
  endforeach()
  add_custom_target(heddle_aarch64 ALL DEPENDS ${archives})
endfunction()
