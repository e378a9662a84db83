// Stores on PostgreSQL, as the figures use them.
#pragma once

#include "appends.hpp"
#include "support/postgres_server.hpp"

#include <stela/outbox.hpp>

#include <span>
#include <string>
#include <vector>

namespace stela::bench {

/// Commits reach the disk; a server as it is set up, but for its connections and its memory.
inline const test::PostgresServer::Options postgres_server_options{
    .durable = true,
    .tcp = true,
    .settings =
        "max_connections = 150\nshared_buffers = 256MB\nmax_wal_size = 4GB\n"
        "autovacuum = on"};

/// The first samples, for bare appends.
inline std::vector<std::string> payloads_of(const Samples& samples, std::size_t events) {
  std::vector<std::string> payloads;
  for (const NewEvent& event : samples.some(0, events)) payloads.emplace_back(event.payload);
  return payloads;
}

/// A store with its outbox, as a process has it.
struct PostgresShop {
  explicit PostgresShop(const std::string& url, const postgres::Options& options = {})
      : store{postgres::open(url, options)}, outbox{store} {}

  Store store;
  Outbox outbox;
};

/// One stream of the caller's own.
class PostgresAppend final : public Subject {
 public:
  PostgresAppend(EventStore& store, const Samples& samples, std::size_t stream, std::size_t events)
      : store_{store}, stream_{basket_id(stream).stream()}, events_{samples.some(0, events)} {
    for (const StoredEvent& event :
         store.read_stream(stream_, {.direction = Direction::backward, .limit = 1})) {
      version_ = event.version;
    }
  }

  void run() override {
    const StreamAppend append{stream_, ExpectedVersion::exactly(version_), events_};
    version_ = store_.append({.streams = {&append, 1}}).versions.front();
  }

 private:
  EventStore& store_;
  const StreamId stream_;
  const std::span<const NewEvent> events_;
  StreamVersion version_;
};

}  // namespace stela::bench
