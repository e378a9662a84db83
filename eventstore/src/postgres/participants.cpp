// Who takes part in appends: what the writer knows of its participants.
#include "postgres/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::postgres {

void Writer::write(FunctionRef<void(database::Connection&)> statements) {
  run_statements([&](Connection& connection) { statements(connection); });
}

void Writer::run_between(FunctionRef<void()> work) {
  if (queue_.is_leading()) return work();
  // A leader carries out only one group, its own.
  CommitQueue::Ticket ticket;
  ticket.exclusive = true;
  queue_.submit(ticket, [&](Members) { work(); });
}

void Writer::check_room_for(const database::DataParticipant&) const {
  const auto* const other = data_participant();
  if (other == nullptr) return;
  throw UsageError{"'" + std::string{other->name()} +
                   "' adds rows to appends already, and PostgreSQL takes one participant that "
                   "does"};
}

void Writer::insert_participant(database::Connection&, const Participant& participant) {
  Parameters parameters;
  parameters.add(participant.name()).add(participant.detail());
  parameters.add(std::int64_t{settings_.clock->now().time_since_epoch().count()});
  connection().query("INSERT INTO stela.stela_participants VALUES ($1, $2, $3)",
                     std::move(parameters), "registering a participant");
  connection().query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
}

void Writer::delete_participant(database::Connection&, std::string_view name) {
  Parameters parameters;
  parameters.add(name);
  connection().query("DELETE FROM stela.stela_participants WHERE name = $1", std::move(parameters),
                     "forgetting a participant");
  connection().query("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
}

void Writer::load_participants(Connection& connection) {
  // The epoch first: participants that are newer than it are looked for again.
  const Result epoch = connection.query("SELECT epoch FROM stela.stela_configuration", {},
                                        "reading the participants");
  if (epoch.rows() != 1) throw SchemaMismatch{"the row of stela_configuration is missing"};
  // A migration that shuts out older writers changes the epoch as well.
  check_writer(connection, known_schemas());
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
