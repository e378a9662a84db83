#include "forgotten_keys.hpp"

#include "keys/seal.hpp"
#include "operations_sql/keys.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela {
namespace {

namespace sql = operations::sql;

}  // namespace

void check_keys(database::Connection& connection, const AppendRequest& request) {
  std::int64_t newest = 0;
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) {
      newest = std::max(newest, event.newest_key);
      for (const KeyId& key : event.keys) {
        if (!connection.rows(sql::find_forgotten_key{.key_id = keys::text_of(key.bytes)}).step())
          continue;
        throw SubjectForgotten{"a personal field of '" + std::string{event.type} + "' for '" +
                               append.stream.name() +
                               "' is sealed with a key that was destroyed: its subject was "
                               "forgotten; nothing was written"};
      }
    }
  }
  if (newest > 0) connection.run(sql::note_newest_key{.newest_key = newest});
}

PersonalTypes read_personal_types(database::Connection& connection) {
  PersonalTypes all;
  auto rows = connection.rows(sql::personal_types{});
  while (rows.step()) all.emplace(rows.type());
  return all;
}

void add_personal_type(database::Connection& connection, std::string_view type) {
  connection.run(sql::add_personal_type{.type = type});
}

void refuse_untyped(std::string_view type) {
  throw UsageError{"events of type '" + std::string{type} +
                   "' have personal fields in this database, which are sealed: append them with "
                   "the application that knows the type, and not from text"};
}

}  // namespace stela
