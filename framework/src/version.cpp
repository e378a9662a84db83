#include <stela/framework/version.hpp>

namespace stela {

std::string_view version() noexcept {
  return STELA_VERSION;
}

}  // namespace stela
