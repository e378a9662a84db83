// Who takes part in appends: what the writer knows of its participants.
#include "postgres/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::postgres {

void Writer::attach(TransactionParticipant& participant, FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] { participants_.add(participant); });
}

void Writer::attach(database::DataParticipant& participant,
                    FunctionRef<void(Connection&)> prepare) {
  register_participant(participant, prepare, [&] {
    if (const auto* const other = data_participant()) {
      throw UsageError{"'" + std::string{other->name()} +
                       "' adds rows to appends already, and PostgreSQL takes one participant that "
                       "does"};
    }
    participants_.add(participant);
  });
}

void Writer::register_participant(const Participant& participant,
                                  FunctionRef<void(Connection&)> prepare,
                                  FunctionRef<void()> list) {
  bool is_listed = false;
  const auto attach_it = [&](Connection& connection) {
    participants_.refuse_second(participant.name());
    prepare(connection);
    load_participants(connection);
    const bool is_known = participants_.is_required(participant);
    // Known again when it is committed.
    epoch_ = {};
    if (!is_known) {
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

void Writer::detach(const Participant& participant) {
  // A forked child appends nothing with its copy, and destroys what takes part.
  if (!owner_.is_this()) return;
  if (queue_.is_leading()) return participants_.remove(participant);
  // Between others' groups: who leads carries out one group, his own.
  CommitQueue::Ticket ticket;
  ticket.exclusive = true;
  queue_.submit(ticket, [&](Members) { participants_.remove(participant); });
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
  std::vector<ledger::Participants::Required> required;
  for (int row = 0; row < rows.rows(); ++row) {
    required.push_back({std::string{rows.bytes(row, 0)}, std::string{rows.bytes(row, 1)}});
  }
  participants_.require(std::move(required));
  tag_facts_ = read_tag_facts(connection);
  personal_types_ = read_personal_types(connection);
  epoch_ = to_uuid(epoch.bytes(0, 0));
}

void Writer::check_participants(Connection& connection) {
  if (!epoch_.is_nil()) {
    try {
      return participants_.check();
    } catch (const ParticipantMissing&) {
      // Maybe another process has forgotten it.
    }
  }
  load_participants(connection);
  participants_.check();
}

}  // namespace stela::postgres
