// Maintains the writer's list of participants.
#include "sqlite_sql/participants.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::sqlite {

void Writer::write(FunctionRef<void(database::Connection&)> statements) {
  run_statements([&](Connection& connection) { statements(connection); });
}

void Writer::run_between(FunctionRef<void()> work) {
  tidy([&](Connection&) { work(); });
}

void Writer::read_participants(database::Connection&) {
  std::vector<ledger::Participants::Required> required;
  auto rows = connection_->rows(sql::participants{});
  while (rows.step()) {
    if (SchemaRequirement::parse(rows.name())) {
      check_schema(rows.name());
    } else {
      required.push_back({std::string{rows.name()}, std::string{rows.detail()}});
    }
  }
  participants_.require(std::move(required));
}

void Writer::insert_participant(database::Connection&, const Participant& participant) {
  sqlite::insert_participant(*connection_, participant.name(), participant.detail(), now_);
}

void Writer::delete_participant(database::Connection&, std::string_view name) {
  connection_->run(sql::delete_participant{.name = name});
}

void Writer::check_schema(std::string_view participant) const {
  const auto required = SchemaRequirement::parse(participant);
  const ledger::KnownModules all = known_schemas();
  const auto known = all.find(required->module);
  // Tables that this process doesn't use don't matter.
  if (known == all.end() || known->second >= required->number) return;
  throw SchemaMismatch{"a newer Stela migrated the tables of '" + known->first +
                       "' while this process had the database open (migration " +
                       std::to_string(required->number) + "; this process knows " +
                       std::to_string(known->second) +
                       "), and older ones must not write to it any more; nothing was written; "
                       "restart this process with the newer Stela"};
}

}  // namespace stela::sqlite
