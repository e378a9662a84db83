#include "builds.hpp"

#include "database/journal.hpp"
#include "database/stored_enum.hpp"
#include "projections_sql/builds.hpp"
#include "projections_sql/events.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::projections {

using database::Connection;

namespace {

/// Throws SchemaMismatch if only a newer Stela knows one of them.
void require_recognized(const std::vector<Build>& builds) {
  for (const Build& build : builds) {
    if (build.kind != ProjectionKind::unrecognized && build.state != BuildState::unrecognized) {
      continue;
    }
    throw SchemaMismatch{"the table projections has a kind or state for '" + build.name +
                         "' that this Stela doesn't know; a newer one wrote it"};
  }
}

Build read_build(const sql::builds::Row& row) {
  return {
      .name = std::string{row.name()},
      .number = row.build(),
      .version = static_cast<int>(row.version()),
      .kind = database::parse_stored(
          {ProjectionKind::async, ProjectionKind::inline_, ProjectionKind::reaction}, row.kind()),
      .state = database::parse_stored(
          {BuildState::building, BuildState::living, BuildState::retired, BuildState::scratch},
          row.state()),
      .position = row.position(),
      .epoch = row.epoch(),
      .owner = std::string{row.owner()},
      .lease = {row.lease_until(), std::chrono::microseconds{row.lease_ttl()}, row.presence()},
      .failing = {row.failing(), static_cast<int>(row.attempts()), row.next_attempt_at(),
                  std::string{row.error()}},
      .stopped = row.stopped(),
      .failing_since = row.failing_since(),
      .stopped_at = row.stopped_at(),
      .filter = std::string{row.filter()},
      .upto = row.upto(),
      .target = row.target(),
      .definitions = row.definitions(),
      .began_at = row.began_at(),
      .changed_at = row.changed_at()};
}

/// Updates the build with its new lease.
template <class Row>
void take_over(Build& build, Row& row, const follow::Term& lease) {
  build.epoch = row.epoch();
  build.position = row.position();
  build.owner = lease.owner;
  build.lease = lease.stored();
  row.run();
}

}  // namespace

std::string Build::describe() const {
  std::string text = kind == ProjectionKind::reaction ? "reaction '" : "projector '";
  text += name + '\'';
  if (kind != ProjectionKind::reaction) text += " v" + std::to_string(version);
  return text;
}

bool has_tables(Connection& connection) {
  auto row = connection.rows(sql::has_projections{});
  return row.step() && row.present();
}

std::vector<Build> list_builds(Connection& connection) {
  std::vector<Build> all;
  auto rows = connection.rows(sql::builds{});
  while (rows.step()) all.push_back(read_build(rows));
  return all;
}

std::vector<Build> read_builds(Connection& connection) {
  std::vector<Build> all = list_builds(connection);
  require_recognized(all);
  return all;
}

std::vector<Build> read_builds(Connection& connection, std::string_view name) {
  std::vector<Build> all = read_builds(connection);
  std::erase_if(all, [&](const Build& build) { return build.name != name; });
  return all;
}

const Build* find(const std::vector<Build>& builds, std::string_view name,
                  BuildState state) noexcept {
  for (const Build& build : builds) {
    if (build.name == name && build.state == state) return &build;
  }
  return nullptr;
}

std::pair<std::int64_t, std::chrono::microseconds> lag_of(Connection& connection,
                                                          const Build& build, std::int64_t last,
                                                          Timestamp now) {
  std::chrono::microseconds waiting{0};
  auto first = connection.rows(sql::recorded_at{.sequence = build.position + 1});
  if (first.step()) waiting = std::max(now - first.recorded_at(), waiting);
  return {std::max<std::int64_t>(last - build.position, 0), waiting};
}

void insert(Connection& connection, Build& build, Timestamp now) {
  {
    auto next = connection.rows(sql::next_build{.name = build.name});
    next.step();
    build.number = next.last();
    next.run();
  }
  build.began_at = build.changed_at = now;
  connection.run(sql::insert_build{.name = build.name,
                                   .build = build.number,
                                   .version = build.version,
                                   .kind = to_string(build.kind),
                                   .state = to_string(build.state),
                                   .position = build.position,
                                   .now = now,
                                   .filter = build.filter,
                                   .upto = build.upto,
                                   .target = build.target});
}

void set_upto(Connection& connection, const Build& build) {
  connection.run(sql::set_upto{.name = build.name, .build = build.number, .upto = build.upto});
}

void note_statements(Connection& connection, Build& build, std::int64_t checksum) {
  build.upto = checksum;
  connection.run(
      sql::set_statements{.name = build.name, .build = build.number, .statements = checksum});
}

void set_state(Connection& connection, const Build& build, BuildState state, Timestamp now) {
  connection.run(sql::set_state{
      .name = build.name, .build = build.number, .state = to_string(state), .now = now});
}

bool is_free(const Build& build, Timestamp now) noexcept {
  return follow::is_free(build.owner, build.lease, now);
}

bool is_free(const Build& build, Timestamp now, const database::Database& database) noexcept {
  return follow::is_free(build.owner, build.lease, now, database);
}

bool acquire(Connection& connection, Build& build, const follow::Term& lease) {
  auto row = connection.rows(sql::acquire{.name = build.name,
                                          .build = build.number,
                                          .found_epoch = build.epoch,
                                          .found_until = build.lease.until,
                                          .owner = lease.owner,
                                          .until = lease.until(),
                                          .ttl = lease.length.count(),
                                          .presence = lease.presence});
  if (!row.step()) return false;
  const std::string before = build.owner;
  take_over(build, row, lease);
  if (!before.empty() && before != lease.owner) {
    database::note(
        connection, lease.now,
        database::Takeover{
            .part = "projections", .subject = build.name, .from = before, .to = lease.owner});
  }
  return true;
}

void seize(Connection& connection, Build& build, const follow::Term& lease) {
  auto row = connection.rows(sql::seize{.name = build.name,
                                        .build = build.number,
                                        .owner = lease.owner,
                                        .until = lease.until(),
                                        .ttl = lease.length.count(),
                                        .presence = lease.presence});
  row.step();
  take_over(build, row, lease);
}

void dispossess(Connection& connection, const Build& build) {
  connection.run(sql::dispossess{.name = build.name, .build = build.number});
}

bool renew(Connection& connection, const Build& build, Timestamp until) {
  return connection.run(sql::renew{
             .name = build.name, .build = build.number, .epoch = build.epoch, .until = until}) == 1;
}

void release(Connection& connection, const Build& build) {
  connection.run(sql::release{.name = build.name, .build = build.number, .epoch = build.epoch});
}

bool advance(Connection& connection, const Build& build, std::int64_t position,
             Timestamp lease_until) {
  const bool advanced = connection.run(sql::advance{.name = build.name,
                                                    .build = build.number,
                                                    .from_position = build.position,
                                                    .epoch = build.epoch,
                                                    .to_position = position,
                                                    .until = lease_until,
                                                    .resumes = build.resumes}) == 1;
  if (advanced && build.resumes) {
    database::note(
        connection, lease_until - build.lease.length,
        database::StateChange{.part = "projections", .subject = build.name, .what = "resumed"});
  }
  return advanced;
}

}  // namespace stela::projections
