#include "support/temp_dir.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace stela::test {

namespace fs = std::filesystem;

TempDir::TempDir() : TempDir{fs::temp_directory_path()} {}

TempDir TempDir::in_memory() {
  const fs::path memory = "/dev/shm";
  return TempDir{access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()};
}

TempDir::TempDir(const fs::path& parent) {
  std::string name = (parent / "stela-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace stela::test
