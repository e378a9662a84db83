#include <stela/projections/transfer.hpp>

#include "database/database.hpp"
#include "database/storable_text.hpp"
#include "projections_sql.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/parked.hpp"
#include "projections_sql/timer_operations.hpp"
#include "projections_sql/timers.hpp"
#include "projections_sql/transfer.hpp"
#include "timer_rows.hpp"

#include <stela/framework/codec/detail/base64.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela {

namespace sql = projections::sql;
using database::Connection;

namespace {

constexpr std::int64_t page_rows = 1000;

constexpr std::string_view reactions_table = "projections";
constexpr std::string_view parked_table = "projection_parked";
constexpr std::string_view processes_table = "projection_processes";
constexpr std::string_view timers_table = "projection_timers";
constexpr std::string_view holds_table = "projection_timer_holds";
constexpr std::string_view actions_table = "projection_timer_actions";

std::int64_t number_of(Timestamp time) {
  return time.time_since_epoch().count();
}

/// Writes a row as JSON.
class RowWriter {
 public:
  RowWriter() : object_{line_} {}

  RowWriter& add(std::string_view name, std::string_view text) {
    object_.add(name, database::is_storable(text) ? text : database::made_storable(text));
    return *this;
  }
  RowWriter& add(std::string_view name, std::int64_t number) {
    object_.add(name, number);
    return *this;
  }
  RowWriter& add_bytes(std::string_view name, std::string_view bytes) {
    std::string text;
    base64::append(text, bytes);
    object_.add(name, text);
    return *this;
  }
  void write(std::string_view table, StateTransfer::Row row) {
    object_.close();
    row(table, line_);
  }

 private:
  std::string line_;
  json::ObjectWriter object_;
};

/// Reads a row back. Missing members are empty, or 0.
class RowReader {
 public:
  explicit RowReader(json::Reader& reader) : reader_{reader} {}

  std::string text(std::string_view name) {
    return reader_.select(name) ? std::string{reader_.get_string()} : std::string{};
  }
  std::int64_t number(std::string_view name) {
    return reader_.select(name) ? reader_.get_int64() : 0;
  }
  Timestamp time(std::string_view name) {
    return Timestamp{std::chrono::microseconds{number(name)}};
  }
  std::string bytes(std::string_view name) {
    std::string decoded;
    if (reader_.select(name) && !base64::decode(reader_.get_string(), decoded)) {
      reader_.fail("isn't base64");
    }
    return decoded;
  }

 private:
  json::Reader& reader_;
};

// --- saving

struct Reaction {
  std::string name;
  std::int64_t build = 0;
};

std::vector<Reaction> save_reactions(Connection& connection, StateTransfer::Row row) {
  std::vector<Reaction> saved;
  auto rows = connection.rows(sql::save_reactions{});
  while (rows.step()) {
    RowWriter line;
    line.add("name", rows.name())
        .add("build", rows.build())
        .add("version", rows.version())
        .add("position", rows.position())
        .add("epoch", rows.epoch())
        .add("attempts", rows.attempts())
        .add("next_attempt_at", rows.next_attempt_at())
        .add("failing", rows.failing())
        .add("error", rows.error())
        .add("halted", rows.halted() ? 1 : 0)
        .add("began_at", rows.began_at())
        .add("changed_at", rows.changed_at())
        .write(reactions_table, row);
    saved.push_back({std::string{rows.name()}, rows.build()});
  }
  return saved;
}

void save_parked(Connection& connection, const Reaction& reaction, StateTransfer::Row row) {
  sql::save_parked_events page{
      .name = reaction.name, .build = reaction.build, .after = 0, .most = page_rows};
  for (std::int64_t found = page_rows; found == page_rows;) {
    found = 0;
    auto rows = connection.rows(page);
    while (rows.step()) {
      ++found;
      page.after = rows.sequence();
      RowWriter line;
      line.add("name", reaction.name)
          .add("build", reaction.build)
          .add("sequence", rows.sequence())
          .add("state", rows.state())
          .add("parked_at", number_of(rows.parked_at()))
          .add("attempts", rows.attempts())
          .add("error", rows.error());
      if (const auto instance = rows.instance()) line.add("instance", *instance);
      line.write(parked_table, row);
    }
  }
}

void save_processes(Connection& connection, StateTransfer::Row row) {
  auto rows = connection.rows(sql::processes{});
  while (rows.step()) {
    RowWriter line;
    line.add("name", rows.name())
        .add("registered_at", number_of(rows.registered_at()))
        .add("fired", rows.fired())
        .add("failed", rows.failed())
        .write(processes_table, row);
  }
}

void save_timers(Connection& connection, StateTransfer::Row row) {
  std::string process;
  std::string key;
  std::string kind;
  for (std::int64_t found = page_rows; found == page_rows;) {
    found = 0;
    auto rows = connection.rows(
        sql::save_timers{.process = process, .key = key, .kind = kind, .most = page_rows});
    std::string last[3];
    while (rows.step()) {
      ++found;
      RowWriter line;
      line.add("process", rows.process())
          .add("key", rows.key())
          .add("kind", rows.kind())
          .add("version", rows.version())
          .add("generation", rows.generation())
          .add("state", rows.state())
          .add("due_at", rows.due_at())
          .add("wake_at", rows.wake_at())
          .add("attempts", rows.attempts())
          .add("error", rows.error())
          .add("recurrence", rows.recurrence())
          .add("set_at", rows.set_at())
          .add("correlation_id", rows.correlation_id())
          .add("causation_id", rows.causation_id())
          .add("metadata", rows.metadata())
          .add_bytes("payload", rows.payload())
          .write(timers_table, row);
      last[0] = rows.process(), last[1] = rows.key(), last[2] = rows.kind();
    }
    process = last[0], key = last[1], kind = last[2];
  }
}

/// Saves operators' holds. A copy's hold or a host clock's hold doesn't apply to the next store.
void save_holds(Connection& connection, StateTransfer::Row row) {
  for (const projections::Hold& hold : projections::read_holds(connection)) {
    if (hold.reason != HoldReason::by_operator) continue;
    RowWriter line;
    line.add("since", number_of(hold.since)).add("detail", hold.detail).write(holds_table, row);
  }
}

void save_actions(Connection& connection, StateTransfer::Row row) {
  sql::save_timer_actions page{.after = 0, .most = page_rows};
  for (std::int64_t found = page_rows; found == page_rows;) {
    found = 0;
    auto rows = connection.rows(page);
    while (rows.step()) {
      ++found;
      page.after = rows.action();
      RowWriter line;
      line.add("at", number_of(rows.at()))
          .add("who", rows.who())
          .add("what", rows.what())
          .add("detail", rows.detail())
          .write(actions_table, row);
    }
  }
}

bool has_projection_tables(Connection& connection) {
  auto row = connection.rows(sql::has_projections{});
  return row.step() && row.present();
}

void refuse_runners(Connection& connection) {
  auto owned = connection.rows(sql::owned_reaction{.now = system_clock().now()});
  if (!owned.step()) return;
  throw UsageError{"runner '" + std::string{owned.owner()} + "' drives '" +
                   std::string{owned.name()} +
                   "'; stop all runners, or wait until their leases expire, and export again"};
}

// --- loading

void load_reaction(Connection& connection, RowReader& row) {
  const std::string name = row.text("name");
  const std::string error = row.text("error");
  const std::int64_t build = row.number("build");
  connection.run(sql::load_reaction{.name = name,
                                    .build = build,
                                    .version = row.number("version"),
                                    .position = row.number("position"),
                                    .epoch = row.number("epoch"),
                                    .attempts = row.number("attempts"),
                                    .next_attempt_at = row.number("next_attempt_at"),
                                    .failing = row.number("failing"),
                                    .error = error,
                                    .halted = row.number("halted") != 0,
                                    .began_at = row.number("began_at"),
                                    .changed_at = row.number("changed_at")});
  connection.run(sql::load_last_build{.name = name, .build = build});
}

void load_parked(Connection& connection, RowReader& row) {
  const std::string name = row.text("name");
  const std::string state = row.text("state");
  const std::string error = row.text("error");
  // Keys are never empty.
  const std::string instance = row.text("instance");
  connection.run(sql::park{.name = name,
                           .build = row.number("build"),
                           .sequence = row.number("sequence"),
                           .state = state,
                           .parked_at = row.time("parked_at"),
                           .attempts = row.number("attempts"),
                           .error = error,
                           .instance = database::or_null(instance)});
}

void load_process(Connection& connection, RowReader& row) {
  const std::string name = row.text("name");
  connection.run(sql::load_process{.name = name,
                                   .registered_at = row.time("registered_at"),
                                   .fired = row.number("fired"),
                                   .failed = row.number("failed")});
}

void load_timer(Connection& connection, RowReader& row) {
  const std::string process = row.text("process");
  const std::string key = row.text("key");
  const std::string kind = row.text("kind");
  const std::string state = row.text("state");
  const std::string error = row.text("error");
  const std::string recurrence = row.text("recurrence");
  const std::string correlation = row.text("correlation_id");
  const std::string causation = row.text("causation_id");
  const std::string metadata = row.text("metadata");
  const std::string payload = row.bytes("payload");
  connection.run(sql::load_timer{.process = process,
                                 .key = key,
                                 .kind = kind,
                                 .version = row.number("version"),
                                 .generation = row.number("generation"),
                                 .state = state,
                                 .due_at = row.number("due_at"),
                                 .wake_at = row.number("wake_at"),
                                 .attempts = row.number("attempts"),
                                 .error = error,
                                 .recurrence = recurrence,
                                 .set_at = row.number("set_at"),
                                 .correlation_id = correlation,
                                 .causation_id = causation,
                                 .metadata = metadata,
                                 .payload = payload});
}

void load_hold(Connection& connection, RowReader& row) {
  projections::set_hold(connection, {.since = row.time("since"), .detail = row.text("detail")});
}

void load_action(Connection& connection, RowReader& row) {
  const std::string who = row.text("who");
  const std::string what = row.text("what");
  const std::string detail = row.text("detail");
  connection.run(
      sql::insert_timer_action{.at = row.time("at"), .who = who, .what = what, .detail = detail});
}

struct Table {
  std::string_view name;
  void (*load)(Connection& connection, RowReader& row);
};

constexpr Table tables[] = {
    {reactions_table, load_reaction}, {parked_table, load_parked}, {processes_table, load_process},
    {timers_table, load_timer},       {holds_table, load_hold},    {actions_table, load_action},
};

class ProjectionState final : public StateTransfer {
 public:
  std::string_view prefix() const noexcept override { return "projection"; }

  void save(Connection& connection, Row row) override {
    if (!has_projection_tables(connection)) return;
    refuse_runners(connection);
    for (const Reaction& reaction : save_reactions(connection, row)) {
      save_parked(connection, reaction, row);
    }
    save_processes(connection, row);
    save_timers(connection, row);
    save_holds(connection, row);
    save_actions(connection, row);
  }

  void prepare(database::Database& database) override {
    database.migrate("projections", sql::migrations, sql::migrations_on_postgres);
    now_ = database.now();
  }

  void load(Connection& connection, std::string_view name, std::string_view rows) override {
    const Table& table = table_of(name);
    if (!has_rows_) refuse_reactions(connection);
    has_rows_ = true;
    has_timers_ = has_timers_ || name == timers_table;
    json::Reader reader{rows};
    for (std::size_t left = reader.open_array(); left > 0; --left) {
      reader.next_element();
      reader.open_object();
      RowReader row{reader};
      table.load(connection, row);
      reader.close();
    }
  }

  void finish(Connection& connection) override {
    // Without timers, nothing can happen twice.
    if (!has_timers_) return;
    projections::set_hold(connection,
                          {.reason = HoldReason::imported,
                           .since = now_,
                           .detail = "this store was imported at " + to_string(now_) +
                                     "; make sure that no runner drives the old one any more"});
  }

 private:
  static const Table& table_of(std::string_view name) {
    for (const Table& table : tables) {
      if (table.name == name) return table;
    }
    throw UsageError{"this Stela has no table '" + std::string{name} +
                     "': the export is of a newer one"};
  }

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
