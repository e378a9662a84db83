// The progress of a long operation.
#pragma once

#include <cstdint>
#include <string_view>

namespace stela {

struct Progress {
  /// The current stage: the name of a check, "backup", "export", "import".
  std::string_view stage;
  std::int64_t done = 0;
  /// 0 if unknown.
  std::int64_t total = 0;
};

}  // namespace stela
