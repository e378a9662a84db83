# Compiles `case`; it must fail, and say what its first line says. A second line "// only that" asks
# that it is the only error. A precompiled header that GCC doesn't take is one, too.
file(STRINGS "${case}" sentence LIMIT_COUNT 1)
string(REGEX REPLACE "^// " "" sentence "${sentence}")
string(REPLACE "\\;" ";" sentence "${sentence}")
execute_process(
  COMMAND "${compiler}" "@${flags}" -Werror=invalid-pch -include "${header}" -fsyntax-only "${case}"
  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(result EQUAL 0)
  message(FATAL_ERROR "this compiles, and should not: ${case}")
endif()
string(FIND "${said}" "${sentence}" found)
if(sentence STREQUAL "" OR found EQUAL -1)
  message(FATAL_ERROR "the compiler should say\n  ${sentence}\nbut says\n${said}")
endif()

file(STRINGS "${case}" head LIMIT_COUNT 2)
list(LENGTH head lines)
if(lines EQUAL 2)
  list(GET head 1 second)
  string(REGEX MATCHALL " error: " errors "${said}")
  list(LENGTH errors count)
  if(second STREQUAL "// only that" AND NOT count EQUAL 1)
    message(FATAL_ERROR "the compiler should name one error, but names ${count}:\n${said}")
  endif()
endif()
