// Maintains the writer's list of participants.
#include "sqlite_sql/participants.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::sqlite {

void Writer::attach(TransactionParticipant& participant, FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] { participants_.add(participant); });
}

void Writer::attach(database::DataParticipant& participant,
                    FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] { participants_.add(participant); });
}

void Writer::register_participant(const Participant& participant,
                                  FunctionRef<void(Connection&)> prepare,
                                  FunctionRef<void()> list) {
  bool is_listed = false;
  const auto attach_it = [&](Connection& connection) {
    participants_.refuse_second(participant.name());
    prepare(connection);
    read_participants();
    if (!participants_.is_required(participant)) {
      insert_participant(connection, participant.name(), participant.detail(), now_);
    }
    is_listed = true;
    list();
    distrust();
  };
  try {
    run_statements(attach_it);
  } catch (...) {
    if (is_listed) detach(participant);
    throw;
  }
}

void Writer::read_participants() {
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

void Writer::detach(const Participant& participant) {
  // A forked child appends nothing with its copy, and destroys its participants.
  if (!owner_.is_this()) return;
  tidy([&](Connection&) { participants_.remove(participant); });
}

void Writer::forget_participant(std::string_view name) {
  run_statements([&](Connection& connection) {
    connection.run(sql::delete_participant{.name = name});
    distrust();
  });
}

void Writer::know_schema(std::string_view module, std::size_t migrations) {
  const std::lock_guard lock{schemas_mutex_};
  known_schemas_.insert_or_assign(std::string{module}, static_cast<std::int64_t>(migrations));
}

void Writer::check_schema(std::string_view participant) const {
  const auto required = SchemaRequirement::parse(participant);
  const std::lock_guard lock{schemas_mutex_};
  const auto known = known_schemas_.find(required->module);
  // Tables that this process doesn't use don't matter.
  if (known == known_schemas_.end() || known->second >= required->number) return;
  throw SchemaMismatch{"a newer Stela migrated the tables of '" + known->first +
                       "' while this process had the database open (migration " +
                       std::to_string(required->number) + "; this process knows " +
                       std::to_string(known->second) +
                       "), and older ones must not write to it any more; nothing was written; "
                       "restart this process with the newer Stela"};
}

}  // namespace stela::sqlite
