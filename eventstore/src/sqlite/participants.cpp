// Who takes part in appends: what the writer knows of its participants.
#include "sqlite_sql/participants.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/writer.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::sqlite {

void Writer::attach(TransactionParticipant& participant, FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] {
    participants_.push_back(&participant);
    user_participants_.push_back(&participant);
    has_user_code_.store(true, std::memory_order_relaxed);
  });
}

void Writer::attach(database::DataParticipant& participant,
                    FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] {
    participants_.push_back(&participant);
    data_participants_.push_back(&participant);
  });
}

void Writer::register_participant(const Participant& participant,
                                  FunctionRef<void(Connection&)> prepare,
                                  FunctionRef<void()> list) {
  const auto is_registered = [&](Connection& connection) {
    auto known = connection.rows(sql::participants{});
    while (known.step()) {
      if (known.name() != participant.name()) continue;
      if (participant.accepts(known.detail())) return true;
      throw UsageError{"participant '" + std::string{participant.name()} +
                       "' is registered in this database as '" + std::string{known.detail()} +
                       "', and this process brings '" + std::string{participant.detail()} + "'"};
    }
    return false;
  };
  bool is_listed = false;
  const auto attach_it = [&](Connection& connection) {
    refuse_second(participant.name());
    prepare(connection);
    if (!is_registered(connection)) {
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

void Writer::refuse_second(std::string_view name) const {
  for (const Participant* const attached : participants_) {
    if (attached->name() != name) continue;
    throw UsageError{"'" + std::string{name} +
                     "' takes part in the appends of this store already; attach it once"};
  }
}

void Writer::detach(const Participant& participant) {
  // A forked child appends nothing with its copy, and destroys what takes part.
  if (!owner_.is_this()) return;
  tidy([&](Connection&) {
    std::erase(participants_, &participant);
    std::erase(user_participants_, &participant);
    std::erase(data_participants_, &participant);
  });
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
  // Tables that this process doesn't use are none of its business.
  if (known == known_schemas_.end() || known->second >= required->number) return;
  throw SchemaMismatch{"a newer Stela migrated the tables of '" + known->first +
                       "' while this process had the database open (migration " +
                       std::to_string(required->number) + "; this process knows " +
                       std::to_string(known->second) +
                       "), and older ones must not write to it any more; nothing was written; "
                       "restart this process with the newer Stela"};
}

void Writer::check_participants() const {
  for (const RequiredParticipant& required : required_) {
    const auto attached = std::find_if(
        participants_.begin(), participants_.end(), [&](const Participant* participant) {
          return participant->name() == required.name && participant->accepts(required.detail);
        });
    if (attached == participants_.end()) {
      throw ParticipantMissing{"this database requires '" + required.name + "' (" +
                               required.detail +
                               ") to take part in every append, and this process hasn't attached "
                               "it; nothing was written"};
    }
  }
}

}  // namespace stela::sqlite
