#include <stela/projections/transfer.hpp>

#include "builds.hpp"
#include "database/database.hpp"
#include "projections_sql.hpp"
#include "projections_sql/timers.hpp"
#include "projections_sql/transfer.hpp"
#include "timer_rows.hpp"

#include <stela/framework/error.hpp>

#include <string>
#include <string_view>

namespace stela {

namespace sql = projections::sql;
using database::Connection;

namespace {

void refuse_runners(Connection& connection) {
  auto owned = connection.rows(sql::owned_reaction{.now = system_clock().now()});
  if (!owned.step()) return;
  throw UsageError{"runner '" + std::string{owned.owner()} + "' drives '" +
                   std::string{owned.name()} +
                   "'; stop all runners, or wait until their leases expire, and export again"};
}

class ProjectionState final : public StateTransfer {
 public:
  std::string_view prefix() const noexcept override { return "projection"; }

  void save(Connection& connection, Row row) override {
    if (!projections::has_tables(connection)) return;
    refuse_runners(connection);
    database::save_tables(connection, sql::transfer_tables, row);
  }

  void prepare(database::Database& database) override {
    database.migrate("projections", sql::migrations, sql::migrations_on_postgres);
    now_ = database.now();
  }

  void load(Connection& connection, std::string_view name, std::string_view rows) override {
    if (!has_rows_) {
      refuse_reactions(connection);
      projections::drop_hold(connection, HoldReason::by_operator);
    }
    has_rows_ = true;
    has_timers_ = has_timers_ || name == "projection_timers";
    database::load_table(connection, sql::transfer_tables, name, rows);
  }

  void finish(Connection& connection) override {
    if (has_rows_) connection.run(sql::load_last_builds{});
    // Where nothing is set, nothing can happen twice.
    if (!has_timers_) return;
    projections::set_hold(connection,
                          {.reason = HoldReason::imported,
                           .since = now_,
                           .detail = "this store was imported at " + to_string(now_) +
                                     "; make sure that no runner drives the old one any more"});
  }

 private:
  static void refuse_reactions(Connection& connection) {
    auto row = connection.rows(sql::has_reactions{});
    row.step();
    if (!row.has_any()) return;
    throw UsageError{
        "this store has reactions or processes already, and they aren't overwritten; import into a "
        "new database before a program registers them"};
  }

  Timestamp now_{};
  bool has_rows_ = false;
  bool has_timers_ = false;
};

}  // namespace

std::unique_ptr<StateTransfer> projection_state() {
  return std::make_unique<ProjectionState>();
}

}  // namespace stela
