#include "tables/settings.hpp"

#include "outbox_sql/partitions.hpp"

#include <stela/framework/error.hpp>

#include <string>

namespace stela::outbox {

Fence parse_fence(std::string_view text) {
  for (const Fence fence : {Fence::stream, Fence::subject, Fence::none}) {
    if (text == to_string(fence)) return fence;
  }
  throw SchemaMismatch{"the outbox has the fence '" + std::string{text} +
                       "', which this Stela doesn't know"};
}

std::optional<Settings> find_settings(database::Connection& connection) {
  auto row = connection.rows(sql::settings{});
  if (!row.step()) return std::nullopt;
  return Settings{parse_fence(row.fence()), row.leasing()};
}

}  // namespace stela::outbox
