#include "key_state.hpp"

#include "forgotten_keys.hpp"
#include "keys/seal.hpp"
#include "operations_sql/keys.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>

#include <string>

namespace stela {
namespace {

namespace key_sql = operations::sql;

constexpr std::string_view key_store = "stela_key_store";
constexpr std::string_view personal_types = "stela_personal_types";

std::optional<Uuid> bound_to(database::Connection& connection) {
  auto row = connection.rows(key_sql::key_store{});
  return row.step() ? std::optional{Uuid{keys::code_of(row.key_store())}} : std::nullopt;
}

std::string_view text_in(json::Reader& row, std::string_view name) {
  if (!row.select(name)) throw UsageError{"a row of keys lacks '" + std::string{name} + '\''};
  return row.get_string();
}

void bind(database::Connection& connection, json::Reader& row) {
  const auto id = Uuid::parse(text_in(row, "key_store"));
  if (!id || !row.select("newest_key")) throw UsageError{"a row of keys isn't one"};
  if (const auto known = bound_to(connection); known && *known != *id) {
    throw UsageError{"this store was opened with the key store " + known->to_string() +
                     ", and the exported one with " + id->to_string() +
                     "; import into a store that was never opened with keys"};
  }
  connection.run(key_sql::set_key_store{.key_store = keys::text_of(id->bytes())});
  connection.run(key_sql::note_newest_key{.newest_key = row.get_int64()});
}

}  // namespace

void KeyState::save(database::Connection& connection, Row row) {
  {
    auto bound = connection.rows(key_sql::key_store{});
    if (!bound.step()) return;
    std::string line;
    json::ObjectWriter{line}
        .add("key_store", Uuid{keys::code_of(bound.key_store())}.to_string())
        .add("newest_key", bound.newest_key())
        .close();
    row(key_store, line);
  }
  for (const std::string& type : read_personal_types(connection)) {
    std::string line;
    json::ObjectWriter{line}.add("type", type).close();
    row(personal_types, line);
  }
}

void KeyState::load(database::Connection& connection, std::string_view table,
                    std::string_view rows) {
  json::Reader reader{rows};
  reader.open_array();
  while (reader.next_element()) {
    reader.open_object();
    if (table == key_store) {
      bind(connection, reader);
    } else if (table == personal_types) {
      add_personal_type(connection, text_in(reader, "type"));
    } else {
      throw UsageError{"this Stela has no table '" + std::string{table} +
                       "': the export is of a newer one"};
    }
    reader.close();
  }
}

}  // namespace stela
