# Compiles `case`; it must fail, and say what its first line says.
file(STRINGS "${case}" sentence LIMIT_COUNT 1)
string(REGEX REPLACE "^// " "" sentence "${sentence}")
string(REPLACE "\\;" ";" sentence "${sentence}")
execute_process(
  COMMAND "${compiler}" "@${flags}" -include "${header}" -fsyntax-only "${case}"
  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(result EQUAL 0)
  message(FATAL_ERROR "this compiles, and should not: ${case}")
endif()
string(FIND "${said}" "${sentence}" found)
if(sentence STREQUAL "" OR found EQUAL -1)
  message(FATAL_ERROR "the compiler should say\n  ${sentence}\nbut says\n${said}")
endif()
