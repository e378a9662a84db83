// The console's page: the files that a browser loads, without any data.
#pragma once

#include "http/message.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// A built-in file of the page.
struct PageFile {
  std::string_view name;
  std::string_view content_type;
  std::string_view content;
};

/// Threads: any number may use it.
class ConsolePage {
 public:
  /// `root` is a folder whose files replace the built-in ones. Empty: none.
  ConsolePage(std::string base_path, std::string root)
      : base_path_{std::move(base_path)}, root_{std::move(root)} {}

  /// A path that names no file is a view inside the page, so it gets the page itself.
  HttpResponse answer(std::string_view path) const;

 private:
  std::string content_of(const PageFile& file) const;

  std::string base_path_;
  std::string root_;
};

}  // namespace stela::tool
