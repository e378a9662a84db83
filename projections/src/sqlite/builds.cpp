#include "sqlite/builds.hpp"

#include "projections_sql.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

namespace stela::projections {

using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr std::array kinds{Kind::async, Kind::inline_, Kind::reaction};
constexpr std::array states{State::building, State::living, State::retired, State::scratch};

template <class Enum, std::size_t size>
Enum parse(const std::array<Enum, size>& all, std::string_view text) {
  for (const Enum one : all) {
    if (text == to_string(one)) return one;
  }
  throw SchemaMismatch{"the table projections holds '" + std::string{text} +
                       "', which this Stela doesn't know"};
}

Timestamp time_of(Query& row, int column) {
  return Timestamp{std::chrono::microseconds{row.integer(column)}};
}

std::int64_t micros(Timestamp time) {
  return time.time_since_epoch().count();
}

Build read_build(Query& row) {
  return {.name = std::string{row.text(0)},
          .number = row.integer(1),
          .version = static_cast<int>(row.integer(2)),
          .kind = parse(kinds, row.text(3)),
          .state = parse(states, row.text(4)),
          .position = row.integer(5),
          .epoch = row.integer(6),
          .owner = std::string{row.text(7)},
          .lease_until = time_of(row, 8),
          .attempts = static_cast<int>(row.integer(9)),
          .next_attempt_at = time_of(row, 10),
          .failing = row.integer(11),
          .error = std::string{row.text(12)},
          .halted = row.integer(13) != 0,
          .filter = std::string{row.text(17)},
          .upto = row.integer(18),
          .target = row.integer(19),
          .definitions = row.integer(14),
          .began_at = time_of(row, 15),
          .changed_at = time_of(row, 16)};
}

bool changed_a_row(Connection& connection) {
  return sqlite3_changes(connection.handle()) == 1;
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::async:
      return "async";
    case Kind::inline_:
      return "inline";
    case Kind::reaction:
      return "reaction";
  }
  return "?";
}

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::building:
      return "building";
    case State::living:
      return "living";
    case State::retired:
      return "retired";
    case State::scratch:
      return "scratch";
  }
  return "?";
}

std::string Build::describe() const {
  std::string text = kind == Kind::reaction ? "reaction '" : "projector '";
  text += name + '\'';
  if (kind != Kind::reaction) text += " v" + std::to_string(version);
  return text;
}

std::vector<Build> read_builds(Connection& connection) {
  std::vector<Build> all;
  Query query = connection.query(sql::builds);
  while (query.step()) all.push_back(read_build(query));
  return all;
}

std::vector<Build> read_builds(Connection& connection, std::string_view name) {
  std::vector<Build> all = read_builds(connection);
  std::erase_if(all, [&](const Build& build) { return build.name != name; });
  return all;
}

const Build* find(const std::vector<Build>& builds, std::string_view name, State state) noexcept {
  for (const Build& build : builds) {
    if (build.name == name && build.state == state) return &build;
  }
  return nullptr;
}

void insert(Connection& connection, Build& build, Timestamp now) {
  {
    Query next = connection.query(sql::next_build);
    next.bind(1, build.name).step();
    build.number = next.integer(0);
    next.run();
  }
  build.began_at = build.changed_at = now;
  connection.query(sql::insert_build)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, std::int64_t{build.version})
      .bind(4, to_string(build.kind))
      .bind(5, to_string(build.state))
      .bind(6, build.position)
      .bind(7, micros(now))
      .bind(8, build.filter)
      .bind(9, build.upto)
      .bind(10, build.target)
      .run();
}

void set_state(Connection& connection, const Build& build, State state, Timestamp now) {
  connection.query(sql::set_state)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, to_string(state))
      .bind(4, micros(now))
      .run();
}

bool is_free(const Build& build, const Lease& lease) noexcept {
  return build.owner.empty() || build.lease_until <= lease.now ||
         build.lease_until > lease.now + 2 * lease.ttl;
}

bool acquire(Connection& connection, Build& build, const Lease& lease) {
  Query query = connection.query(sql::acquire);
  query.bind(1, build.name)
      .bind(2, build.number)
      .bind(3, lease.owner)
      .bind(4, micros(lease.now))
      .bind(5, micros(lease.now + 2 * lease.ttl))
      .bind(6, micros(lease.until()));
  if (!query.step()) return false;
  build.epoch = query.integer(0);
  build.position = query.integer(1);
  build.owner = lease.owner;
  build.lease_until = lease.until();
  query.run();
  return true;
}

void seize(Connection& connection, Build& build, const Lease& lease) {
  Query query = connection.query(sql::seize);
  query.bind(1, build.name)
      .bind(2, build.number)
      .bind(3, lease.owner)
      .bind(4, micros(lease.until()))
      .step();
  build.epoch = query.integer(0);
  build.position = query.integer(1);
  build.owner = lease.owner;
  build.lease_until = lease.until();
  query.run();
}

void renew(Connection& connection, const Build& build, const Lease& lease) {
  connection.query(sql::renew)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, build.epoch)
      .bind(4, micros(lease.until()))
      .run();
}

void release(Connection& connection, const Build& build) {
  connection.query(sql::release)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, build.epoch)
      .run();
}

bool advance(Connection& connection, const Build& build, std::int64_t position,
             Timestamp lease_until) {
  connection.query(sql::advance)
      .bind(1, build.name)
      .bind(2, build.number)
      .bind(3, build.position)
      .bind(4, build.epoch)
      .bind(5, position)
      .bind(6, micros(lease_until))
      .run();
  return changed_a_row(connection);
}

}  // namespace stela::projections
