# Runs PROGRAM with ARGUMENTS in a folder of its own, so that its database is a new one.
string(RANDOM LENGTH 12 name)
set(folder "${CMAKE_CURRENT_BINARY_DIR}/readme-${name}")
file(MAKE_DIRECTORY "${folder}")
execute_process(COMMAND "${PROGRAM}" ${ARGUMENTS} WORKING_DIRECTORY "${folder}"
  OUTPUT_VARIABLE printed RESULT_VARIABLE result)
file(REMOVE_RECURSE "${folder}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${result}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E echo_append "${printed}")
