# Compiles through ccache, if it is installed, so that code which was compiled earlier, in this
# folder or another clone, isn't compiled again. Precompiled headers need all these settings.
# Without relative paths, other folders miss the cache. Without the sloppiness, ccache skips every
# file that uses a precompiled header. Without -fpch-preprocess, GCC doesn't tell ccache which one
# that is. Without the compiler's list of dependencies, ccache confuses two whose headers differ
# only in a comment, which #pragma once doesn't. A namespace separates results that were cached
# without these settings.
find_program(STELA_CCACHE ccache)
if(STELA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_DEPEND=1 CCACHE_NAMESPACE=depend
    CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros "${STELA_CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
