#include "support/zoo/habitat.hpp"

#include "support/raw_sqlite.hpp"

#include <stela/outbox.hpp>
#include <stela/testing/manual_clock.hpp>

#include <chrono>
#include <stdexcept>

namespace stela::test::zoo {

using namespace std::chrono_literals;

std::string in_sql(Timestamp time) {
  return std::to_string(time.time_since_epoch().count());
}

Timestamp ago(std::chrono::microseconds time) {
  return system_clock().now() - time;
}

Habitat::Habitat() {
  settings = {{"STELA_STORE_READERS", "1"},
              {"STELA_NATS_STREAM", "SHOP"},
              {"STELA_NATS_PREFIX", "shop"},
              {"STELA_NATS_ENSURE_STREAM", "true"},
              {"STELA_NATS_CONNECT_TIMEOUT", "500ms"},
              {"STELA_OUTBOX_LEASE_TTL", "1s"},
              {"STELA_OUTBOX_LEASE_RENEW", "300ms"},
              {"STELA_OUTBOX_HEARTBEAT_TTL", "1s"},
              {"STELA_OUTBOX_PUBLISH_TIMEOUT", "500ms"},
              {"STELA_OUTBOX_IDLE_BACKOFF_MS", "50"},
              {"STELA_OUTBOX_RETRY_BACKOFF", "50ms"},
              {"STELA_OUTBOX_RETRY_BACKOFF_MAX", "200ms"}};
  move_to("shop.db");
}

/// Drops its tables, which would slow down other tests.
Habitat::~Habitat() {
  keeps.clear();
  workers_.clear();
  close();
  if (!is_on_postgres()) return;
  for (const std::string& schema : schemas_) {
    run_on_postgres(path_, "SET client_min_messages = error; DROP SCHEMA \"" + schema +
                               "\" CASCADE; DROP SCHEMA IF EXISTS \"" + schema + "_app\" CASCADE");
  }
}

void Habitat::move_to(const std::string& name) {
  close();
  path_ = dir_.file(name);
  const std::vector<std::string> location = location_of(path_);
  settings["STELA_DB"] = location.front();
  if (location.size() > 1) schemas_.push_back(settings["STELA_STORE_SCHEMA"] = location[1]);
  well({"migrate"});
}

RunOptions Habitat::here() const {
  return {.environment = settings, .folder = dir_.path().string()};
}

Ran Habitat::run(const std::vector<std::string>& words) const {
  return test::run(words, here());
}

std::string Habitat::well(const std::vector<std::string>& words) const {
  const Ran ran = run(words);
  if (ran.code != 0) {
    throw std::runtime_error{"'stela " + words.front() + "' ended with " +
                             std::to_string(ran.code) + ": " + ran.out + ran.err};
  }
  return ran.out;
}

Store& Habitat::store() {
  if (!store_) store_.emplace(open_at(path_));
  return *store_;
}

std::vector<std::string> Habitat::sql(const std::string& text) const {
  return is_on_postgres() ? run_on_postgres(path_, text) : RawSqlite{path_}.rows(text);
}

void Habitat::enable_outbox() {
  well({"outbox", "enable"});
  has_outbox_ = true;
}

void Habitat::append(int count, int bytes) {
  for (int i = 0; i < count; ++i) {
    well({"events", "append", "--stream", "order-" + std::to_string(++appended), "--type",
          "order.placed", "--publish", "--data",
          R"({"customer":")" + std::string(static_cast<std::size_t>(bytes), 'x') +
              R"(","total_cents":1})"});
  }
}

void Habitat::append_at(Timestamp when, int schema_version) {
  testing::ManualClock clock;
  clock.jump_to(when);
  Store store = open_at(path_, {.clock = &clock});
  std::optional<Outbox> outbox;
  if (has_outbox_) outbox.emplace(store);
  const NewEvent event{"order.placed", schema_version, true, R"({"customer":"","total_cents":1})"};
  const StreamId stream = StreamId::parse("order-" + std::to_string(++appended));
  const StreamAppend one{stream, ExpectedVersion::any(), {&event, 1}};
  store.append({.streams = {&one, 1}});
}

NatsServer& Habitat::broker(const std::string& config) {
  if (!broker_) {
    broker_.emplace(config);
    settings["STELA_NATS_URL"] = broker_->url();
  }
  return *broker_;
}

void Habitat::publish() {
  broker();
  run({"outbox", "work", "--until-empty", "--silent", "--id", "publisher"});
}

void Habitat::expect_published() const {
  const bool is_published = eventually([&] {
    return member(well({"outbox", "status", "--json"}), "pending") == "0";
  });
  if (!is_published) throw std::runtime_error{"messages stay pending"};
}

Running& Habitat::start_worker(const std::string& id) {
  broker();
  auto& worker = workers_[id];
  worker = std::make_unique<Running>(
      std::vector<std::string>{"outbox", "work", "--silent", "--id", id}, here());
  const bool is_alive = eventually([&] {
    return sql("SELECT heartbeat_until FROM outbox_workers WHERE worker = '" + id + "'").size() ==
           1;
  });
  if (!is_alive) throw std::runtime_error{"no worker begins: " + worker->err()};
  return *worker;
}

void Habitat::note_worker() {
  sql("INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES ('w9', 'elsewhere', 1, -1, 0, " +
      in_sql(system_clock().now() + 1h) + ", 3600000000, 'connected', 0, 0 <> 0)");
}

bool Habitat::has(const std::string& code) const {
  return run({"check", "--format", "json"}).out.find("\"code\":\"" + code + "\",\"severity\"") !=
         std::string::npos;
}

PostgresServer& Habitat::own_server() {
  if (!own_server_) {
    own_server_.emplace();
    settings["STELA_DB"] = own_server_->url();
    well({"migrate"});
  }
  return *own_server_;
}

}  // namespace stela::test::zoo
