// A read model in the store's own database.
#pragma once

#include "build_model.hpp"

#include "database/sqlite/caller_sql.hpp"
#include "database/sqlite/driver.hpp"

#include <exception>
#include <string>
#include <utility>

namespace stela::projections {

/// Checks the permissions of a projector's statement when it is prepared.
/// Threads: inside the writer's transactions only; it may be destroyed inside or outside of them.
class SqliteReadModel final : public BuildModel, private sqlite::CallerSql {
 public:
  /// `who` is for messages; tables are called `prefix` plus their plain name.
  SqliteReadModel(sqlite::Driver& driver, std::string who, std::string prefix);
  ~SqliteReadModel() override;

  std::string table(std::string_view name) const override { return prefix_ + std::string{name}; }

  void allow_creation(bool allowed) noexcept override { creating_ = allowed; }
  std::exception_ptr take_store_failure() noexcept override {
    return std::exchange(store_failure_, {});
  }
  void attempt(database::Connection&, FunctionRef<void()> work) override { work(); }

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  std::string refusal_of(const Action& action) override;
  std::string refusal_of(int action, std::string_view object) const;
  std::string translated(std::string_view sql) const override;
  std::string_view prefix() const noexcept override { return prefix_; }
  void note_store_failure() noexcept override { store_failure_ = std::current_exception(); }

  sqlite::Driver& driver_;
  const std::string prefix_;
  std::exception_ptr store_failure_;
  bool creating_ = false;
};

}  // namespace stela::projections
