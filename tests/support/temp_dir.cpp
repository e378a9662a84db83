#include "support/temp_dir.hpp"

#include <cstdlib>
#include <stdexcept>

namespace stela::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "stela-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace stela::test
