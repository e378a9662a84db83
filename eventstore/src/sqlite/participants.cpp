// Who takes part in appends: what the writer knows of its participants.
#include "sqlite/checksum.hpp"
#include "sqlite/writer.hpp"
#include "sqlite_sql.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::sqlite {

void Writer::attach(TransactionParticipant& participant, FunctionRef<void(Connection&)> prepare) {
  const auto is_registered = [&](Connection& connection) {
    Query known = connection.query(sql::participants);
    while (known.step()) {
      if (known.text(0) != participant.name()) continue;
      if (known.text(1) == participant.detail()) return true;
      throw UsageError{"participant '" + std::string{participant.name()} +
                       "' is registered in this database as '" + std::string{known.text(1)} +
                       "', and this process brings '" + std::string{participant.detail()} + "'"};
    }
    return false;
  };
  // Registered and attached in one turn: an append between the two would be refused.
  const auto attach_it = [&](Connection& connection) {
    prepare(connection);
    if (!is_registered(connection)) {
      const std::int64_t now = now_.time_since_epoch().count();
      connection.query(sql::insert_participant)
          .bind(1, participant.name())
          .bind(2, participant.detail())
          .bind(3, now)
          .bind(4, checksum_of({now}, {participant.name(), participant.detail()}))
          .run();
    }
    participants_.push_back(&participant);
    if (participant.runs_user_code()) has_user_code_.store(true, std::memory_order_relaxed);
    distrusted_ = true;
  };
  try {
    run_statements(attach_it);
  } catch (...) {
    detach(participant);
    throw;
  }
}

void Writer::detach(TransactionParticipant& participant) {
  read([&](Connection&) { std::erase(participants_, &participant); });
}

void Writer::forget_participant(std::string_view name) {
  run_statements([&](Connection& connection) {
    connection.query(sql::delete_participant).bind(1, name).run();
    distrusted_ = true;
  });
}

void Writer::check_participants() const {
  for (const RequiredParticipant& required : required_) {
    const auto attached = std::find_if(
        participants_.begin(), participants_.end(), [&](const TransactionParticipant* participant) {
          return participant->name() == required.name && participant->detail() == required.detail;
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
