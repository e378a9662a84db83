#include <stela/outbox/care.hpp>

#include "database/checksum.hpp"
#include "database/database.hpp"
#include "outbox_sql.hpp"
#include "outbox_sql/inspection.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/transfer.hpp"
#include "tables/settings.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>

#include <string>

namespace stela {

namespace sql = outbox::sql;
using database::Connection;

namespace {

constexpr std::string_view settings_table = "outbox_settings";
constexpr std::string_view numbers_table = "outbox_numbers";

class OutboxState final : public StateTransfer {
 public:
  std::string_view prefix() const noexcept override { return "outbox_"; }

  void save(Connection& connection, Row row) override {
    if (!has_tables(connection) || !save_settings(connection, row)) return;
    refuse_workers(connection);
    database::save_tables(connection, sql::transfer_tables, row);
    std::string numbers;
    json::ObjectWriter{numbers}.add("last_redelivery", last_redelivery(connection)).close();
    row(numbers_table, numbers);
  }

  void prepare(database::Database& database) override {
    database.migrate("outbox", sql::migrations, sql::migrations_on_postgres);
    now_ = database.now();
    database.read([&](Connection& connection) {
      if (!outbox::find_settings(connection)) return;
      throw UsageError{
          "this store has an outbox already, and its state isn't overwritten; if an import of this "
          "export made it, that one was complete, and nothing is left to do; otherwise import into "
          "a new database"};
    });
  }

  void load(Connection& connection, std::string_view name, std::string_view rows) override {
    if (name == settings_table) return load_settings(connection, rows);
    if (name == numbers_table) return load_numbers(connection, rows);
    database::load_table(connection, sql::transfer_tables, name, rows);
  }

  void finish(Connection& connection) override {
    if (!has_settings_) return;
    connection.run(sql::keep_actions{});
    connection.run(sql::change_epoch{});
  }

 private:
  static bool has_tables(Connection& connection) {
    auto row = connection.rows(sql::has_outbox{});
    return row.step() && row.is_there();
  }

  /// False if there is no outbox.
  static bool save_settings(Connection& connection, Row row) {
    auto settings = connection.rows(sql::save_settings{});
    if (!settings.step()) return false;
    row(settings_table, settings.line());
    return true;
  }

  static std::int64_t last_redelivery(Connection& connection) {
    auto row = connection.rows(sql::last_redelivery{});
    return row.step() ? row.number() : 0;
  }

  static void refuse_workers(Connection& connection) {
    auto owned = connection.rows(sql::owned_partition{.now = system_clock().now()});
    if (!owned.step()) return;
    throw UsageError{"worker '" + std::string{owned.owner()} + "' owns partition " +
                     PartitionId{static_cast<int>(owned.partition())}.label() +
                     "; stop all workers, or wait until their leases expire, and export again"};
  }

  void load_settings(Connection& connection, std::string_view rows) {
    json::Reader reader{rows};
    reader.open_array();
    reader.next_element();
    reader.open_object();
    const auto text = [&](std::string_view name) {
      return reader.select(name) ? std::string{reader.get_string()} : std::string{};
    };
    const std::string partitioner = text("partitioner");
    const std::string fence = text("fence");
    // SQLite writes booleans as numbers.
    const bool leasing =
        reader.select("leasing") && (reader.get_raw() == "true" || reader.get_raw() == "1");
    connection.run(
        sql::insert_settings{.fence = to_string(outbox::parse_fence(fence)), .leasing = leasing});
    const std::int64_t at = now_.time_since_epoch().count();
    connection.run(
        sql::register_outbox{.detail = partitioner,
                             .at = now_,
                             .checksum = database::checksum_of({at}, {"outbox", partitioner})});
    has_settings_ = true;
  }

  static void load_numbers(Connection& connection, std::string_view rows) {
    json::Reader reader{rows};
    reader.open_array();
    reader.next_element();
    reader.open_object();
    const std::int64_t number = reader.select("last_redelivery") ? reader.get_int64() : 0;
    if (number == 0) return;
    // Numbers are never reused, because message ids at the broker contain them.
    if (last_redelivery(connection) >= number) return;
    connection.run(sql::keep_redelivery{.number = number});
    connection.run(sql::forget_kept_redelivery{});
  }

  Timestamp now_{};
  bool has_settings_ = false;
};

}  // namespace

std::unique_ptr<StateTransfer> outbox_state() {
  return std::make_unique<OutboxState>();
}

}  // namespace stela
