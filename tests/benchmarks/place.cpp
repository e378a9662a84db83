#include "place.hpp"

#include <cstdlib>
#include <stdexcept>

namespace stela::bench {

std::string_view to_string(Place place) noexcept {
  return place == Place::disk ? "disk" : "tmpfs";
}

Folder::Folder(const std::filesystem::path& parent) {
  std::string name = (parent / "stela-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error{"no folder can be made in " + parent.string()};
  }
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stela::bench
