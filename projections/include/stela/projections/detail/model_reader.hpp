// Read access to read models.
#pragma once

#include <stela/eventstore/sql.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/projections/export.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace stela {

/// Queries on the views with plain names: `SELECT … FROM orders` reads the living model. Each query
/// sees one state of the database, and never a half-built model. UsageError for wrong SQL, for more
/// than one statement, for a statement that writes and for a PRAGMA. Threads: any number at once.
class STELA_PROJECTIONS_EXPORT ModelReader final : public SqlQueries {
 public:
  /// `store` must outlive the reader.
  explicit ModelReader(Store& store) noexcept : store_{store.anchor()} {}

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  Store& store_;
};

}  // namespace stela
