// Tables that move with a store, as the .sql files describe them.
#pragma once

#include "database/connection.hpp"
#include "database/storable_text.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::database {

struct MovedTable {
  std::string_view name;
  /// The key before that of any row.
  std::string_view before_first;
  void (*save)(Connection& connection, const MovedTable& table, StateTransfer::Row row);
  void (*load)(Connection& connection, std::string_view rows);
};

template <class Save>
void save_rows(Connection& connection, const MovedTable& table, StateTransfer::Row row) {
  constexpr std::int64_t page_rows = 1000;
  std::string after{table.before_first};
  for (std::int64_t found = page_rows; found == page_rows;) {
    found = 0;
    const std::string from = after;
    auto rows = connection.rows(Save{.after = from, .most = page_rows});
    for (; rows.step(); ++found) {
      after = rows.key();
      const std::string_view line = rows.line();
      // SQLite's texts may be of any bytes.
      row(table.name, is_storable(line) ? line : made_storable(line));
    }
  }
}

template <class Load>
void load_rows(Connection& connection, std::string_view rows) {
  connection.run(Load{.rows = rows});
}

inline void save_tables(Connection& connection, std::span<const MovedTable> tables,
                        StateTransfer::Row row) {
  for (const MovedTable& table : tables) table.save(connection, table, row);
}

/// Loads rows of one of the tables; UsageError if none has this name.
inline void load_table(Connection& connection, std::span<const MovedTable> tables,
                       std::string_view name, std::string_view rows) {
  const auto table = std::find_if(tables.begin(), tables.end(),
                                  [&](const MovedTable& each) { return each.name == name; });
  if (table != tables.end()) return table->load(connection, rows);
  throw UsageError{"this Stela has no table '" + std::string{name} +
                   "': the export is of a newer one"};
}

}  // namespace stela::database
