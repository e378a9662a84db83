# Whoever asks for a component needs what that needs, and nothing of the others'.
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/main.cpp" "#include <stela/framework.hpp>\nint main() { return stela::Uuid{}.is_nil() ? 0 : 1; }\n")
file(WRITE "${WORK}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\n"
  "find_package(stela CONFIG REQUIRED COMPONENTS framework)\n"
  "add_executable(p main.cpp)\ntarget_link_libraries(p PRIVATE stela::framework)\n")
set(without "")
foreach(package IN ITEMS NATS PostgreSQL SQLite3 tomlplusplus date)
  list(APPEND without "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
endforeach()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}" -B "${WORK}/build" -G Ninja
  "-DCMAKE_PREFIX_PATH=${PREFIX}" "-DCMAKE_CXX_COMPILER=${CXX}" ${without}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
