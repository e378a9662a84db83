// A read model on the store's own database.
#pragma once

#include "sqlite/connection.hpp"

#include <stela/projections/read_model.hpp>

#include <string>
#include <unordered_map>

namespace stela::projections {

/// Threads: the one that projects.
class SqliteReadModel final : public ReadModel {
 public:
  explicit SqliteReadModel(sqlite::Connection& connection) noexcept : connection_{connection} {}

 protected:
  void run(std::string_view sql, std::initializer_list<Value> values) override;

 private:
  sqlite::Connection& connection_;
};

}  // namespace stela::projections
