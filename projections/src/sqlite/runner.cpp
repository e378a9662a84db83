#include <stela/framework/error.hpp>
#include <stela/projections/runner.hpp>

#include "projections_sql.hpp"
#include "sqlite/core.hpp"
#include "sqlite/read_model.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace stela {

namespace sql = projections::sql;
using projections::SqliteReadModel;
using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr std::int64_t batch_size = 500;

}  // namespace

Runner::Runner(sqlite::Store& store) : store_{store} {
  store.core().migrate("projections", sql::migrations);
}

Runner::~Runner() = default;

void Runner::add_any(std::unique_ptr<AnyProjector> projector) {
  const ProjectorType type = projector->type();
  store_.core().writer().run_statements([&](Connection& connection) {
    Query found = connection.query(sql::find_projection);
    if (found.bind(1, type.name).step()) {
      if (found.integer(0) == type.version) return;
      throw UsageError{"projector '" + std::string{type.name} + "' is in this database as version " +
                       std::to_string(found.integer(0)) + ", and this process brings version " +
                       std::to_string(type.version)};
    }
    SqliteReadModel model{connection};
    projector->create(model);
    connection.query(sql::insert_projection)
        .bind(1, type.name)
        .bind(2, std::int64_t{type.version})
        .run();
  });
  projectors_.push_back(std::move(projector));
}

void Runner::catch_up() {
  for (const auto& projector : projectors_) {
    while (project_batch(*projector)) {
    }
  }
}

bool Runner::project_batch(AnyProjector& projector) {
  const ProjectorType type = projector.type();
  std::int64_t position = 0;
  store_.core().reading().read([&](Connection& connection) {
    Query found = connection.query(sql::find_projection);
    if (found.bind(1, type.name).step()) position = found.integer(1);
  });
  EventRange range = store_.read_all({.from = GlobalSequence{position + 1}, .limit = batch_size});
  const std::span<const StoredEvent> events = range.next_page();
  if (events.empty()) return false;
  store_.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::advance_projection)
        .bind(1, type.name)
        .bind(2, position)
        .bind(3, events.back().sequence.value())
        .run();
    if (sqlite3_changes(connection.handle()) != 1) {
      throw UsageError{"projector '" + std::string{type.name} + "' was moved by somebody else"};
    }
    SqliteReadModel model{connection};
    for (const StoredEvent& event : events) {
      projector.project(model, event, store_.conventions().codec);
    }
  });
  return true;
}

}  // namespace stela
