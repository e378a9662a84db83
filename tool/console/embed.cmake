# Writes the source of page_files(): FILES as arrays of bytes, index.html first.
set(types html text/html js text/javascript css text/css svg image/svg+xml txt text/plain)
set(arrays "")
set(table "")
foreach(path IN LISTS FILES)
  get_filename_component(name "${path}" NAME)
  string(REGEX REPLACE "[^a-z]" "_" symbol "${name}")
  string(REGEX MATCH "[a-z]+$" ending "${name}")
  list(FIND types "${ending}" at)
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  file(READ "${path}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char ${symbol}[] = {${bytes} 0};\n")
  string(APPEND table "    {\"${name}\", \"${type}; charset=utf-8\", {${symbol}, sizeof ${symbol} - 1}},\n")
endforeach()
file(WRITE "${OUT}" "#include \"console/page_files.hpp\"

namespace stela::tool {
namespace {

${arrays}
constexpr PageFile files[] = {
${table}};

}  // namespace

std::span<const PageFile> page_files() {
  return files;
}

}  // namespace stela::tool
")
