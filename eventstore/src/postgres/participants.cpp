// The table of required participants.
#include "postgres_sql/participants.hpp"
#include "postgres/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::postgres {

void Writer::write(FunctionRef<void(database::Connection&)> statements) {
  run_statements([&](Connection& connection) { statements(connection); });
}

void Writer::run_between(FunctionRef<void()> work) {
  if (queue_.is_leading()) return work();
  // A leader carries out only its own group.
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
  connection().run(sql::add_participant{
      .name = participant.name(), .detail = participant.detail(), .now = settings_.clock->now()});
  connection().run(sql::change_epoch{});
}

void Writer::delete_participant(database::Connection&, std::string_view name) {
  connection().run(sql::delete_participant{.name = name});
  connection().run(sql::change_epoch{});
}

void Writer::load_participants(Connection& connection) {
  // The epoch comes first, so that newer participants are read again.
  auto configuration = connection.rows(sql::epoch{});
  if (!configuration.step()) throw SchemaMismatch{"the row of stela_configuration is missing"};
  // A migration that shuts out older writers changes the epoch as well.
  check_writer(connection, known_schemas());
  auto rows = connection.rows(sql::participants{});
  std::vector<ledger::Participants::Required> required;
  while (rows.step()) required.push_back({std::string{rows.name()}, std::string{rows.detail()}});
  participants_.require(std::move(required));
  tag_facts_ = read_tag_facts(connection);
  personal_types_ = read_personal_types(connection);
  epoch_ = configuration.epoch();
}

void Writer::check_participants(Connection& connection) {
  if (!epoch_.is_nil()) {
    try {
      return participants_.check();
    } catch (const Error&) {
      // Another process may have removed the requirement.
    }
  }
  load_participants(connection);
  participants_.check();
}

}  // namespace stela::postgres
