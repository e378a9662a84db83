// Messages that failed, and those that were given up.
#include "inbox_sql/failures.hpp"
#include "inbox_sql/letters.hpp"
#include "inbox_store.hpp"

namespace stela::nats {

namespace sql = inbox::sql;
std::pair<int, std::string> InboxStore::failure_of(const HeldMessage& message) const {
  std::pair<int, std::string> failure;
  store_.database().read([&](database::Connection& connection) {
    auto found = connection.rows(of_version<sql::find_failure>(key_of(message)));
    if (!found.step()) return;
    failure = {static_cast<int>(found.attempts()), std::string{found.error()}};
  });
  return failure;
}

int InboxStore::note_failure(database::Connection& connection, const ReceivedEvent& event,
                             const std::string& error) {
  auto failure = connection.rows(sql::upsert_failure{.consumer = consumer_,
                                                     .source = event.store_id,
                                                     .stream = event.stream.name(),
                                                     .version = event.version.value(),
                                                     .error = error});
  failure.step();
  const auto attempts = static_cast<int>(failure.attempts());
  failure.run();
  note_trouble(key_of(event));
  return attempts;
}

Timestamp InboxStore::note_unknown(database::Connection& connection, const ReceivedEvent& event,
                                   const std::string& error, Timestamp now) {
  auto noted = connection.rows(sql::note_unknown{.consumer = consumer_,
                                                 .source = event.store_id,
                                                 .stream = event.stream.name(),
                                                 .version = event.version.value(),
                                                 .error = error,
                                                 .now = now});
  noted.step();
  const Timestamp since = noted.unknown_since();
  noted.run();
  note_trouble(key_of(event));
  return since;
}

void InboxStore::explain_failure(database::Connection& connection, const ReceivedEvent& event,
                                 const std::string& error) {
  connection.run(sql::explain_failure{.consumer = consumer_,
                                      .source = event.store_id,
                                      .stream = event.stream.name(),
                                      .version = event.version.value(),
                                      .error = error});
}

void InboxStore::discount_failure(database::Connection& connection, const ReceivedEvent& event) {
  connection.run(of_version<sql::take_back_failure>(key_of(event)));
}

void InboxStore::take_back_failure(database::Connection& connection, const ReceivedEvent& event) {
  const InboxKey key = key_of(event);
  connection.run(of_version<sql::take_back_failure>(key));
  connection.run(of_version<sql::delete_untried>(key));
}

void InboxStore::bury(database::Connection& connection, const Delivery& delivery, Arrival standing,
                      int attempts, const std::string& error, bool whole) {
  if (delivery.event && !take(connection, *delivery.event, standing, whole)) return;
  insert_letter(connection, delivery, attempts, error);
}

void InboxStore::insert_letter(database::Connection& connection, const Delivery& delivery,
                               int attempts, const std::string& error) {
  const std::string headers = KeptHeaders::to_json(MessageHeaders{delivery.message.get()});
  connection.run(
      sql::insert_dead_letter{.consumer = consumer_,
                              .broker_stream = delivery.place.stream,
                              .broker_sequence = static_cast<std::int64_t>(delivery.place.sequence),
                              .broker_time = delivery.place.time,
                              .subject = delivery.subject(),
                              .headers = headers,
                              .payload = delivery.payload(),
                              .dead_at = now(),
                              .attempts = attempts,
                              .error = error});
}

std::optional<InboxStore::Letter> InboxStore::next_to_retry(std::int64_t after) {
  std::optional<Letter> letter;
  store_.database().read([&](database::Connection& connection) {
    auto next = connection.rows(sql::next_to_retry{.consumer = consumer_, .after = after});
    if (!next.step()) return;
    letter = Letter{next.letter(), std::string{next.broker_stream()},
                    KeptHeaders::from_json(next.headers()), std::string{next.payload()},
                    static_cast<int>(next.attempts())};
  });
  return letter;
}

bool InboxStore::take_letter(std::int64_t letter, const std::string& error) {
  bool taken = false;
  store_.database().write([&](database::Connection& connection) {
    taken = connection.run(sql::take_dead_letter{.letter = letter, .error = error}) > 0;
  });
  return taken;
}

bool InboxStore::remove_letter(database::Connection& connection, std::int64_t letter) {
  return connection.run(sql::delete_dead_letter{.letter = letter}) > 0;
}

void InboxStore::explain_letter(std::int64_t letter, const std::string& error) {
  store_.database().write([&](database::Connection& connection) {
    connection.run(sql::explain_dead_letter{.letter = letter, .error = error});
  });
}

void InboxStore::leave_letter(std::int64_t letter, const std::string& error) {
  store_.database().write([&](database::Connection& connection) {
    connection.run(sql::leave_dead_letter{.letter = letter, .error = error});
  });
}

}  // namespace stela::nats
