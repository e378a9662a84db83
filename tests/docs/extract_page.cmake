# Makes a source file of the ```cpp blocks of PAGE: namespace page_NAME with a function run().
cmake_minimum_required(VERSION 3.25)
file(READ "${PAGE}" text)
set(includes "")
set(scope "")
set(body "")
while(TRUE)
  string(FIND "${text}" "```cpp\n" begin)
  if(begin EQUAL -1)
    break()
  endif()
  string(SUBSTRING "${text}" 0 ${begin} before)
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "```" end)
  string(SUBSTRING "${text}" 0 ${end} code)
  math(EXPR end "${end} + 3")
  string(SUBSTRING "${text}" ${end} -1 text)

  if(before MATCHES "<!-- not compiled: [^>]+ -->\n+$")
    continue()
  endif()
  string(REGEX MATCHALL "#include [^\n]+" lines "${code}")
  string(REPLACE ";" "\n" lines "${lines}")
  string(APPEND includes "${lines}\n")
  string(REGEX REPLACE "#include [^\n]+\n" "" code "${code}")
  if(before MATCHES "<!-- in main -->\n+$")
    string(APPEND body "${code}")
  else()
    string(APPEND scope "${code}\n")
  endif()
endwhile()
file(WRITE "${OUTPUT}" "${includes}
#include <iostream>

namespace page_${NAME} {

void run();

${scope}
void run() {
${body}
}

}  // namespace page_${NAME}
")
