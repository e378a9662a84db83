# Links each static library of PREFIX as the shared one that it could be: what a module calls in
# another must be exported there. Quick, for nothing is compiled.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(GLOB_RECURSE pc_file "${PREFIX}/*/stela-framework.pc")
get_filename_component(folder "${pc_file}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${folder}")
set(before "")
set(failures "")
foreach(module IN LISTS MODULES)
  execute_process(COMMAND pkg-config --libs stela-${module} OUTPUT_VARIABLE libs
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(libs UNIX_COMMAND "${libs}")
  list(FILTER libs EXCLUDE REGEX "stela|^-L")
  execute_process(COMMAND "${CXX}" -shared -fuse-ld=bfd -Wl,--no-undefined -Wl,--strip-debug
    -o "${WORK}/libstela_${module}.so"
    -Wl,--whole-archive "${PREFIX}/${LIBDIR}/libstela_${module}.a" -Wl,--no-whole-archive
    ${before} ${libs} ERROR_VARIABLE error RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    string(REGEX MATCHALL "undefined reference to [^\n]+" missing "${error}")
    list(REMOVE_DUPLICATES missing)
    list(JOIN missing "\n  " missing)
    string(APPEND failures "stela_${module} calls what isn't exported:\n  ${missing}\n")
    execute_process(COMMAND "${CXX}" -shared -o "${WORK}/libstela_${module}.so"
      -Wl,--whole-archive "${PREFIX}/${LIBDIR}/libstela_${module}.a" -Wl,--no-whole-archive
      ${before} ${libs})
  endif()
  list(APPEND before "${WORK}/libstela_${module}.so")
endforeach()
if(failures)
  message(FATAL_ERROR "${failures}")
endif()
