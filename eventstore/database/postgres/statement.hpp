// A statement that a connection keeps.
#pragma once

#include "database/postgres/connection.hpp"
#include "database/statement.hpp"

#include <stela/eventstore/export.hpp>

#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres {

/// Prepared at its first run, and again if the types of its values change. All rows are read at the
/// first step.
/// Threads: those of its connection, which must outlive it.
class STELA_EVENTSTORE_EXPORT Statement final : public database::Statement {
 public:
  Statement(Connection& connection, std::string_view sql);

  void bind(int parameter, std::int64_t value) override;
  void bind(int parameter, std::string_view text) override;
  void bind(int parameter, std::nullptr_t) override;
  void bind_blob(int parameter, std::string_view bytes) override;
  bool step() override;
  void reset() noexcept override;
  std::int64_t changes() const noexcept override { return result_.changes(); }
  std::int64_t integer(int column) const noexcept override {
    return is_null(column) ? 0 : result_.integer(row_, column);
  }
  std::string_view text(int column) const override { return result_.bytes(row_, column); }
  std::string_view blob(int column) const override { return result_.bytes(row_, column); }
  bool is_null(int column) const noexcept override { return result_.is_null(row_, column); }

 private:
  struct Value {
    Oid type = type::unknown;
    std::int64_t integer = 0;
    std::string_view bytes = {};
    bool is_null = true;
  };

  Value& at(int parameter);
  void run();

  Connection& connection_;
  const std::string sql_;
  std::vector<Value> values_;
  /// Texts made storable, because the server would refuse the originals.
  std::forward_list<std::string> made_;
  std::string name_;
  std::vector<Oid> types_;
  Result result_;
  int row_ = -1;
  bool has_run_ = false;
};

}  // namespace stela::postgres
