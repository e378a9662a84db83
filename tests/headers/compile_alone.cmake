# Compiles each header of `folder` by itself and looks at what it includes.
set(hidden "/(sqlite3|nats/nats|simdjson|ncurses)\\.h|/boost/|/date/|/CLI/")
file(GLOB_RECURSE headers "${folder}/*.hpp")
list(LENGTH headers count)
if(count EQUAL 0)
  message(FATAL_ERROR "no headers in ${folder}")
endif()
foreach(header IN LISTS headers)
  execute_process(
    COMMAND "${compiler}" "@${flags}" -fsyntax-only -H -include "${header}" -x c++ /dev/null
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} doesn't compile alone:\n${said}")
  elseif(said MATCHES "${hidden}")
    message(SEND_ERROR "${header} includes ${CMAKE_MATCH_0}, which users needn't have")
  endif()
endforeach()
message("${count} headers")
