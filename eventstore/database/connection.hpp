// A connection to a database, as the modules beside the event store use it.
#pragma once

#include "database/statement.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::database {

/// Tells databases apart: all connections to one have one name, but for those to a database that
/// nobody else can see.
struct DatabaseName {
  const void* connection;
  std::string_view place;

  bool is(const DatabaseName& other) const noexcept {
    return connection == other.connection || (!place.empty() && place == other.place);
  }
};

/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Connection {
 public:
  virtual ~Connection() = default;

  /// Runs one of the statements that the .sql files name, prepared once per connection, to its end.
  /// How many rows it changed, if it is one that changes rows.
  template <class Named>
  std::int64_t run(const Named& statement) {
    Query query{prepared(Named::sql, on_postgres<Named>()), statement};
    query.run();
    return query.changes();
  }
  /// The same, with its rows: `while (rows.step()) use(rows.sequence());`
  template <class Named>
  typename Named::Row rows(const Named& statement) {
    return typename Named::Row{prepared(Named::sql, on_postgres<Named>()), statement};
  }
  /// The same of a text that takes and gives nothing, and is the same on all engines. It must be a
  /// constant of the program: its address stands for it.
  void run(std::string_view sql) { Query{prepared(sql, sql)}.run(); }

  /// Runs statements that are made at run time, and aren't worth keeping.
  virtual void execute(const std::string& sql) = 0;

  /// Valid as long as the connection.
  virtual DatabaseName database() const noexcept = 0;
  virtual bool in_transaction() const noexcept = 0;
  /// In which run of its server it is; nil on an engine that loses nothing. Another run may have
  /// lost what the one before it had committed, and give its numbers out again.
  virtual Uuid run() const noexcept { return {}; }

 private:
  template <class Named>
  static constexpr std::string_view on_postgres() noexcept {
    if constexpr (requires { Named::on_postgres; }) return Named::on_postgres;
    return Named::sql;
  }

  /// The statement that is kept for the constant `sql`, or on PostgreSQL for the other one.
  virtual Statement& prepared(std::string_view sql, std::string_view on_postgres) = 0;
};

}  // namespace stela::database
