# Where nats.c is a static library, as vcpkg and Conan have it, users link what it needs, too.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/nats/lib/libnats_static.a" "")
file(WRITE "${WORK}/nats/include/nats/nats.h" "")
file(WRITE "${WORK}/nats/include/nats/version.h" "#define NATS_VERSION_STRING \"3.9.1\"\n")
file(WRITE "${WORK}/nats/lib/cmake/cnats/cnats-config.cmake" "
add_library(cnats::nats_static STATIC IMPORTED)
set_target_properties(cnats::nats_static PROPERTIES
  IMPORTED_LOCATION \"${WORK}/nats/lib/libnats_static.a\" INTERFACE_LINK_LIBRARIES of_nats)
")
file(WRITE "${WORK}/main.cpp" "")
file(WRITE "${WORK}/CMakeLists.txt" "
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH \"${SOURCE}/cmake\")
find_package(NATS 3.4 REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE NATS::nats)
")
execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${WORK}" -B "${WORK}/build"
  "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_PREFIX_PATH=${WORK}/nats"
  "-DNATS_INCLUDE_DIR=${WORK}/nats/include" "-DNATS_LIBRARY=${WORK}/nats/lib/libnats_static.a"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
file(READ "${WORK}/build/build.ninja" rules)
if(NOT result EQUAL 0 OR NOT rules MATCHES "LINK_LIBRARIES = [^\n]*-lof_nats")
  message(FATAL_ERROR "users don't link what a static nats.c needs: ${output}")
endif()
