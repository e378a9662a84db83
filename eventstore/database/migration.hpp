// One step of a module's schema, from sql/migrations.
#pragma once

#include <stela/framework/error.hpp>

#include <string>
#include <string_view>

namespace stela::database {

struct Migration {
  int number;
  std::string_view name;
  std::string_view text;
};

[[noreturn]] inline void refuse_older(std::string_view module) {
  throw SchemaMismatch{"the tables of '" + std::string{module} +
                       "' are of an older Stela, and this program leaves migrating them to an "
                       "operator: 'stela migrate', or 'stela tenants migrate'"};
}

}  // namespace stela::database
