#include "sqlite/settings.hpp"

#include "outbox_sql.hpp"

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

std::optional<Settings> find_settings(sqlite::Connection& connection) {
  sqlite::Query query = connection.query(sql::settings);
  if (!query.step()) return std::nullopt;
  return Settings{parse_fence(query.text(0)), query.integer(1) != 0};
}

}  // namespace stela::outbox
