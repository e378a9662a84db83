// Opens an input file named on the command line.
#pragma once

#include "cli/exit.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace stela::tool {

/// Exit if it can't be read. The message names it as `what`.
inline std::ifstream open_to_read(const std::string& path, const std::string& what) {
  std::ifstream file{path, std::ios::binary};
  std::error_code ignored;
  // A folder can be opened, but not read.
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  if (!file || is_folder) {
    throw Exit{not_found, what + " can't be read" + (is_folder ? ": it is a folder" : "")};
  }
  return file;
}

}  // namespace stela::tool
