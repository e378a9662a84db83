// How far a long piece of work has come.
#pragma once

#include <cstdint>
#include <string_view>

namespace stela {

struct Progress {
  /// What is being done: the name of a check, "backup", "export", "import".
  std::string_view stage;
  std::int64_t done = 0;
  /// 0 if nobody knows.
  std::int64_t total = 0;
};

}  // namespace stela
