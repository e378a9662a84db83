// Who takes part in appends: what the writer knows of its participants.
#include "postgres/writer.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::postgres {

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
    if (data_participant_ != nullptr) {
      throw UsageError{"'" + std::string{data_participant_->name()} +
                       "' adds rows to appends already, and PostgreSQL takes one participant that "
                       "does"};
    }
    participants_.push_back(&participant);
    data_participant_ = &participant;
  });
}

void Writer::register_participant(const Participant& participant,
                                  FunctionRef<void(Connection&)> prepare,
                                  FunctionRef<void()> list) {
  bool is_listed = false;
  const auto attach_it = [&](Connection& connection) {
    refuse_second(participant.name());
    prepare(connection);
    load_participants(connection);
    const auto known = std::find_if(
        required_.begin(), required_.end(),
        [&](const RequiredParticipant& one) { return one.name == participant.name(); });
    if (known != required_.end() && !participant.accepts(known->detail)) {
      throw UsageError{"participant '" + known->name + "' is registered in this database as '" +
                       known->detail + "', and this process brings '" +
                       std::string{participant.detail()} + "'"};
    }
    // Known again when it is committed.
    epoch_ = {};
    if (known == required_.end()) {
      Parameters parameters;
      parameters.add(participant.name()).add(participant.detail());
      parameters.add(std::int64_t{settings_.clock->now().time_since_epoch().count()});
      connection.query("INSERT INTO stela.stela_participants VALUES ($1, $2, $3)",
                       std::move(parameters), "registering a participant");
      connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
    }
    is_listed = true;
    list();
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
  const auto leave = [&] {
    std::erase(participants_, &participant);
    std::erase(user_participants_, &participant);
    if (data_participant_ == &participant) data_participant_ = nullptr;
    has_user_code_.store(!user_participants_.empty(), std::memory_order_relaxed);
  };
  if (queue_.is_leading()) return leave();
  // Between others' groups: who leads carries out one group, his own.
  CommitQueue::Ticket ticket;
  ticket.exclusive = true;
  queue_.submit(ticket, [&](Members) { leave(); });
}

void Writer::forget_participant(std::string_view name) {
  run_statements([&](Connection& connection) {
    Parameters parameters;
    parameters.add(name);
    connection.query("DELETE FROM stela.stela_participants WHERE name = $1", std::move(parameters),
                     "forgetting a participant");
    connection.query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
    epoch_ = {};
  });
}

void Writer::know_schema(std::string_view module, std::size_t migrations) {
  const std::lock_guard lock{known_mutex_};
  known_[std::string{module}] = static_cast<std::int64_t>(migrations);
}

void Writer::load_participants(Connection& connection) {
  KnownModules known;
  {
    const std::lock_guard lock{known_mutex_};
    known = known_;
  }
  // The epoch first: participants that are newer than it are looked for again.
  const Result epoch = connection.query("SELECT epoch FROM stela.stela_configuration", {},
                                        "reading the participants");
  if (epoch.rows() != 1) throw SchemaMismatch{"the row of stela_configuration is missing"};
  // A migration that shuts out older writers changes the epoch as well.
  check_writer(connection, known);
  const Result rows =
      connection.query("SELECT name, detail FROM stela.stela_participants ORDER BY name", {},
                       "reading the participants");
  required_.clear();
  for (int row = 0; row < rows.rows(); ++row) {
    required_.push_back({std::string{rows.bytes(row, 0)}, std::string{rows.bytes(row, 1)}});
  }
  tag_facts_ = read_tag_facts(connection);
  personal_types_ = read_personal_types(connection);
  epoch_ = to_uuid(epoch.bytes(0, 0));
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

void Writer::check_participants(Connection& connection) {
  if (!epoch_.is_nil()) {
    try {
      return check_participants();
    } catch (const ParticipantMissing&) {
      // Maybe another process has forgotten it.
    }
  }
  load_participants(connection);
  check_participants();
}

}  // namespace stela::postgres
