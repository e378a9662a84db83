# Whoever asks for a component that isn't there is told which there are.
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\n"
  "find_package(stela CONFIG REQUIRED COMPONENTS framework carrier_pigeon)\n")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${WORK}" -B "${WORK}/build" -G Ninja
  "-DCMAKE_PREFIX_PATH=${PREFIX}" OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE result)
string(REGEX REPLACE "[ \n]+" " " error "${error}")
if(result EQUAL 0 OR NOT error MATCHES "built without carrier_pigeon; it has framework")
  message(FATAL_ERROR "a missing component gave ${result}: ${error}")
endif()
