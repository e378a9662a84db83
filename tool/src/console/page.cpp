#include "console/page.hpp"

#include "console/page_files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stela::tool {

std::string ConsolePage::content_of(const PageFile& file) const {
  if (root_.empty()) return std::string{file.content};
  std::ifstream in{root_ + "/" + std::string{file.name}, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

HttpResponse ConsolePage::answer(std::string_view path) const {
  const auto files = page_files();
  const auto named = std::find_if(files.begin(), files.end(), [&](const PageFile& file) {
    return path == "/" + std::string{file.name};
  });
  const PageFile& file = named != files.end() ? *named : files.front();
  HttpResponse response{.content_type = std::string{file.content_type}, .body = content_of(file)};
  constexpr std::string_view base = "<base href=\"/\">";
  if (const std::size_t at = response.body.find(base); at != std::string::npos) {
    response.body.replace(at, base.size(), "<base href=\"" + base_path_ + "\">");
  }
  return response;
}

}  // namespace stela::tool
