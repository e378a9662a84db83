#include <stela/projections/detail/model_reader.hpp>

#include "build_tables.hpp"
#include "database/database.hpp"

namespace stela {

std::int64_t ModelReader::run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) {
  store_.database().read([&](database::Connection& connection) {
    projections::tables_of(connection).query(connection, sql, values, rows);
  });
  return 0;
}

}  // namespace stela
