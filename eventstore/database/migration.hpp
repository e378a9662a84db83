// One step of a module's schema, from sql/migrations.
#pragma once

#include <string_view>

namespace stela::database {

struct Migration {
  int number;
  std::string_view name;
  std::string_view text;
};

}  // namespace stela::database
