// Streams at the broker: which ones consumers read, and how far they have settled them.
#include "inbox_sql/streams.hpp"
#include "inbox_store.hpp"

namespace stela::nats {

namespace sql = inbox::sql;
namespace {

std::string_view in_words(ConsumerStart start) noexcept {
  return start == ConsumerStart::now ? "now" : "first";
}

}  // namespace

void InboxStore::note_stream(const std::string& broker_stream) {
  store_.database().write([&](database::Connection& connection) {
    connection.run(
        sql::insert_broker_stream{.consumer = consumer_, .broker_stream = broker_stream});
  });
}

std::vector<std::string> InboxStore::other_streams(const std::string& broker_stream) const {
  std::vector<std::string> streams;
  store_.database().read([&](database::Connection& connection) {
    streams.clear();
    auto others = connection.rows(
        sql::list_other_streams{.consumer = consumer_, .broker_stream = broker_stream});
    while (others.step()) streams.emplace_back(others.broker_stream());
  });
  return streams;
}

void InboxStore::note_gone(const std::vector<std::string>& others,
                           const std::set<std::string>& gone, std::chrono::microseconds retention) {
  store_.database().write(
      [&](database::Connection& connection) {
        for (const std::string& stream : others) {
          if (!gone.contains(stream)) {
            connection.run(
                sql::insert_broker_stream{.consumer = consumer_, .broker_stream = stream});
            continue;
          }
          connection.run(sql::note_gone_stream{
              .consumer = consumer_, .broker_stream = stream, .gone_since = now()});
          connection.run(sql::forget_gone_stream{
              .consumer = consumer_, .broker_stream = stream, .gone_before = now() - retention});
        }
      },
      database::Sync::none);
}

std::optional<Settled> InboxStore::settled(const ConsumerOptions& options) const {
  std::optional<Settled> settled;
  store_.database().read([&](database::Connection& connection) {
    auto found = connection.rows(sql::find_settled{.consumer = consumer_,
                                                   .broker_stream = options.stream,
                                                   .filter = options.filter_subject,
                                                   .begins = in_words(options.start)});
    if (!found.step()) return;
    settled = Settled{found.stream_made_at(), static_cast<std::uint64_t>(found.settled_through())};
  });
  return settled;
}

void InboxStore::note_settled(const ConsumerOptions& options, const Settled& settled) {
  store_.database().write(
      [&](database::Connection& connection) {
        connection.run(
            sql::upsert_settled{.consumer = consumer_,
                                .broker_stream = options.stream,
                                .filter = options.filter_subject,
                                .begins = in_words(options.start),
                                .stream_made_at = settled.stream_made_at,
                                .settled_through = static_cast<std::int64_t>(settled.through)});
      },
      database::Sync::none);
}

}  // namespace stela::nats
