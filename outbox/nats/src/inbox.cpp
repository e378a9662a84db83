#include <stela/nats/inbox.hpp>

#include "envelope.hpp"
#include "inbox_sql/consumers.hpp"
#include "inbox_sql/gaps.hpp"
#include "inbox_sql/held.hpp"
#include "inbox_sql/letters.hpp"
#include "inbox_store.hpp"

#include <stela/framework/not_found.hpp>

namespace stela::nats {

namespace sql = inbox::sql;
namespace {

bool has_inbox(database::Connection& connection) {
  auto inbox = connection.rows(sql::has_inbox{});
  inbox.step();
  return inbox.present();
}

/// Where there is no inbox, there is nothing to read.
template <class Work>
void read(Store& store, Work&& work) {
  store.database().read([&](database::Connection& connection) {
    if (has_inbox(connection)) work(connection);
  });
}

/// Throws NotFound unless `statement` changes what it is about, which is called `item`.
template <class Statement>
void change(Store& store, const Statement& statement, std::string_view item, std::int64_t number) {
  bool found = false;
  store.database().write([&](database::Connection& connection) {
    found = has_inbox(connection) && connection.run(statement) == 1;
  });
  if (found) return;
  throw NotFound{"there is no " + std::string{item} + ' ' + std::to_string(number)};
}

/// The header's value as it stands there if it can't be decoded: nobody checked it.
std::string text_of_header(const std::map<std::string, std::string>& headers,
                           const char* name) try {
  const auto at = headers.find(name);
  return at == headers.end() ? std::string{} : percent_decoded(at->second);
} catch (const CorruptEvent&) {
  return headers.at(name);
}

std::map<std::string, std::string> first_of_each(const KeptHeaders::Map& headers) {
  return {headers.begin(), headers.end()};
}

/// With what its headers say of the event.
DeadLetter with_event(DeadLetter letter) {
  letter.stream = text_of_header(letter.headers, "ce-subject");
  letter.event_id = text_of_header(letter.headers, "ce-id");
  return letter;
}

}  // namespace

InboxOperations::InboxOperations(Store& store) : store_{store.anchor()} {
  bool is_there = false;
  read(store, [&](database::Connection&) { is_there = true; });
  if (is_there) migrate_inbox(store);
}

std::vector<DeadLetter> InboxOperations::dead_letters(const InboxQuery& query) {
  std::vector<DeadLetter> letters;
  read(store_, [&](database::Connection& connection) {
    auto rows = connection.rows(sql::list_dead_letters{
        .consumer = query.consumer, .after = query.after, .most = query.limit});
    while (rows.step()) {
      letters.push_back(
          with_event({.number = rows.letter(),
                      .consumer = std::string{rows.consumer()},
                      .broker_stream = std::string{rows.broker_stream()},
                      .broker_sequence = static_cast<std::uint64_t>(rows.broker_sequence()),
                      .subject = std::string{rows.subject()},
                      .headers = first_of_each(KeptHeaders::from_json(rows.headers())),
                      .payload = std::string{rows.payload()},
                      .dead_at = rows.dead_at(),
                      .attempts = static_cast<int>(rows.attempts()),
                      .error = std::string{rows.error()},
                      .is_to_retry = rows.retry()}));
    }
  });
  return letters;
}

void InboxOperations::retry(std::int64_t letter) {
  change(store_, sql::retry_dead_letter{.letter = letter}, "dead letter", letter);
}

void InboxOperations::discard(std::int64_t letter) {
  change(store_, sql::delete_dead_letter{.letter = letter}, "dead letter", letter);
}

std::vector<Gap> InboxOperations::gaps(const InboxQuery& query) {
  std::vector<Gap> gaps;
  read(store_, [&](database::Connection& connection) {
    auto rows = connection.rows(
        sql::list_gaps{.consumer = query.consumer, .after = query.after, .most = query.limit});
    while (rows.step()) {
      gaps.push_back({.number = rows.gap(),
                      .consumer = std::string{rows.consumer()},
                      .source = std::string{rows.source()},
                      .stream = std::string{rows.stream()},
                      .after = StreamVersion{rows.after()},
                      .missing = StreamVersion{rows.missing()},
                      .seen_at = rows.seen_at()});
    }
  });
  return gaps;
}

std::vector<HeldStream> InboxOperations::held(const InboxQuery& query) {
  std::vector<HeldStream> streams;
  read(store_, [&](database::Connection& connection) {
    auto rows = connection.rows(
        sql::list_held{.consumer = query.consumer, .after = query.after, .most = query.limit});
    while (rows.step()) {
      streams.push_back({.number = rows.held(),
                         .consumer = std::string{rows.consumer()},
                         .source = std::string{rows.source()},
                         .stream = std::string{rows.stream()},
                         .version = StreamVersion{rows.version()},
                         .broker_stream = std::string{rows.broker_stream()},
                         .broker_sequence = static_cast<std::uint64_t>(rows.broker_sequence()),
                         .held_at = rows.held_at(),
                         .due_at = rows.due_at(),
                         .attempts = static_cast<int>(rows.attempts()),
                         .error = std::string{rows.error()},
                         .behind = rows.behind(),
                         .is_released = rows.wish().has_value()});
    }
  });
  return streams;
}

void InboxOperations::release(std::int64_t held, HeldRelease how) {
  const std::string_view wish = how == HeldRelease::skip ? "skip" : "retry";
  change(store_, sql::release_held{.held = held, .wish = wish, .due_at = store_.database().now()},
         "held stream", held);
}

std::vector<ConsumerStatus> InboxOperations::status() {
  std::vector<ConsumerStatus> all;
  read(store_, [&](database::Connection& connection) {
    auto rows = connection.rows(sql::count_inbox{});
    while (rows.step()) {
      all.push_back({.consumer = std::string{rows.consumer()},
                     .held_streams = rows.held_streams(),
                     .held_messages = rows.held_messages(),
                     .held_since = rows.held_since(),
                     .dead_letters = rows.dead_letters(),
                     .gaps = rows.gaps()});
    }
  });
  return all;
}

}  // namespace stela::nats
