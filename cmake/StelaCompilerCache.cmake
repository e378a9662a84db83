# Compiles through ccache, if it is there: what an earlier build compiled, in this folder or in another
# clone, isn't compiled again. Precompiled headers need all these settings: without relative paths
# another folder misses, without the sloppiness ccache leaves every file that uses one alone, without
# -fpch-preprocess GCC doesn't tell it which one that is, and unless it goes by the compiler's list of
# dependencies, ccache takes one for another whose headers differ by a comment: #pragma once doesn't.
# What was cached without that is left alone, in a namespace of its own.
find_program(STELA_CCACHE ccache)
if(STELA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_DEPEND=1 CCACHE_NAMESPACE=depend
    CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros "${STELA_CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
