// A file that only its owner may read.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace stela::test {

inline std::string write_secret(const std::string& path, const std::string& text) {
  std::ofstream{path} << text;
  std::filesystem::permissions(path, std::filesystem::perms{0600});
  return path;
}

}  // namespace stela::test
