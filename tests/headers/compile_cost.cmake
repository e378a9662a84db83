# Holds what our headers cost the compiler, as a multiple of what iostream, map, string and cereal cost.
# The cost is the memory that GCC allocates: it grows with the time, and is the same in each run.
function(find_cost out file)
  execute_process(COMMAND "${compiler}" ${flags} -ftime-report -c "${file}" -o /dev/null ${ARGN}
    RESULT_VARIABLE result ERROR_VARIABLE said)
  if(NOT result EQUAL 0 OR NOT said MATCHES "TOTAL [^\n]* ([0-9]+)M")
    message(FATAL_ERROR "${file} doesn't compile, or GCC doesn't say what it took:\n${said}")
  endif()
  set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# expect_cost(what most file options...): at most `most` hundredths of the usual includes.
function(expect_cost what most)
  find_cost(cost ${ARGN})
  math(EXPR times "100 * ${cost} / ${usual}")
  message("${what}: ${cost} MB, ${times} % of ${usual} MB")
  if(times GREATER most)
    message(SEND_ERROR "${what}: more than ${most} % of what iostream, map, string and cereal cost")
  endif()
endfunction()

string(REPLACE "," ";" flags "${flags}")
list(TRANSFORM flags PREPEND "@")
find_cost(usual "${folder}/usual_includes.cpp" -O0)
expect_cost("stela/framework.hpp" 200 "${folder}/usual_includes.cpp" -O0 -include stela/framework.hpp)
expect_cost("and stela/eventstore.hpp" 225 "${folder}/usual_includes.cpp" -O0
  -include stela/framework.hpp -include stela/eventstore.hpp)
expect_cost("and stela/projections.hpp" 240 "${folder}/usual_includes.cpp" -O0
  -include stela/framework.hpp -include stela/eventstore.hpp -include stela/projections.hpp)
expect_cost("twenty events, an aggregate, a repository and a projector, -O0" 620
  "${folder}/twenty_events.cpp" -O0)
expect_cost("the same, -O2" 580 "${folder}/twenty_events.cpp" -O2)
