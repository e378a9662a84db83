// A connection to a database, as other modules use it.
#pragma once

#include "database/statement.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::database {

/// Identifies a database: all connections to it have the same name. Each connection to a private
/// database has its own.
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

  /// Runs a named statement of the .sql files to its end, prepared once per connection. Returns how
  /// many rows it changed, if it changes rows.
  template <class Named>
  std::int64_t run(const Named& statement) {
    Query query{prepared(Named::sql, on_postgres<Named>()), statement};
    query.run();
    return query.changes();
  }
  /// The same, returning its rows: `while (rows.step()) use(rows.sequence());`
  template <class Named>
  typename Named::Row rows(const Named& statement) {
    return typename Named::Row{prepared(Named::sql, on_postgres<Named>()), statement};
  }
  /// Runs a text without parameters and results that is the same on all engines. It must be a
  /// constant of the program: its address identifies it.
  void run(std::string_view sql) { Query{prepared(sql, sql)}.run(); }

  /// Runs statements that are built at run time and aren't kept.
  virtual void execute(const std::string& sql) = 0;

  /// Valid as long as the connection.
  virtual DatabaseName database() const noexcept = 0;
  virtual bool in_transaction() const noexcept = 0;
  /// The server's present run; nil on an engine that loses nothing. A later run may have lost
  /// commits of an earlier one, and reuse their numbers.
  virtual Uuid run() const noexcept { return {}; }

 private:
  template <class Named>
  static constexpr std::string_view on_postgres() noexcept {
    if constexpr (requires { Named::on_postgres; }) return Named::on_postgres;
    return Named::sql;
  }

  /// The statement kept for the constant `sql`, or for `on_postgres` on PostgreSQL.
  virtual Statement& prepared(std::string_view sql, std::string_view on_postgres) = 0;
};

}  // namespace stela::database
