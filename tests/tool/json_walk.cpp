#include "tool/json_walk.hpp"

#include "decisions/bookings.hpp"
#include "projections/bookings.hpp"
#include "support/moved.hpp"
#include "support/orders.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/outbox.hpp>
#include <stela/privacy.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <vector>

namespace stela::test {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

struct Picky {
  static constexpr ProjectorType projector_type{"picky", 2};
  using Events = EventSet<OrderPlaced>;
  void create(ReadModel& model) { model.execute("CREATE TABLE {picky} (n BIGINT)"); }
  void project(ReadModel&, const Recorded<OrderPlaced>&) {
    throw std::runtime_error{"can't take it"};
  }
};
struct Counting {
  static constexpr ProjectorType projector_type{"counting", 1};
  using Events = EventSet<OrderPlaced>;
  void create(ReadModel& model) { model.execute("CREATE TABLE {counting} (n BIGINT)"); }
  void project(ReadModel&, const Recorded<OrderPlaced>&) {}
};

void place_and_publish(Store& store, Outbox& outbox) {
  Repository<Order> orders{store};
  for (const char* const name : {"1", "2"}) {
    Order order = Order::place(Id<Order>::from(name), "ann", 100);
    order.note("by hand");
    orders.save(order);
  }
  EventBus bus{store, {}, EventBus::Feed::deliver};
  const auto refusing = bus.on_any([](const StoredEvent& event) {
    if (event.stream.name() == "order-1") throw std::runtime_error{"no printer"};
  });
  BusPublisher publisher{bus};
  Relay relay{outbox, publisher, {.max_attempts = 1}};
  relay.run_once();
  Order first = orders.load(Id<Order>::from("1"));
  first.ship("dhl");
  orders.save(first);
  relay.run_once();
  Order third = Order::place(Id<Order>::from("3"), "bob", 100);
  orders.save(third);
}

void project(Store& store) {
  Projections projections{store};
  projections.add(Counting{});
  projections.add(Picky{}, {.on_error = OnError::park, .max_attempts = 1});
  projections.add_process(
      PaymentDeadline{[](stela::Process&, const std::string&) { throw std::runtime_error{"no"}; }},
      {.handling = {.max_attempts = 1}});
  request(store, "1", 60);
  request(store, "2", 0);
  Runner runner{projections};
  runner.run_once();
  runner.run_once();
  TimerOperations{store}.move({"payment_deadline", "booking-1", "not_paid"},
                              system_clock().now() + 2h);
  TimerOperations{store}.hold("moving house");
}

void consume(Store& store, const std::function<void(const std::string&)>& sql) {
  const nats::Consumer billing{store, {.name = "billing"}};
  const std::string payload = "(SELECT payload FROM events WHERE sequence = 1)";
  sql("INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, source, "
      "stream, version, subject, headers, payload, parked_at, attempts, error) SELECT consumer, "
      "'STELA', 7, 0, 'shop', 'order-1', 1, 's', '{\"ce-subject\":\"order-1\"}', " +
      payload +
      ", "
      "1700000000000000, 5, 'no such customer' FROM inbox_consumers");
  sql("INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, subject, "
      "headers, payload, parked_at, attempts, error) SELECT consumer, 'STELA', 8, 0, 's', '{}', " +
      payload + ", 1700000000000000, 0, '' FROM inbox_consumers");
  sql("INSERT INTO inbox_gaps (consumer, source, stream, after, before, missing, seen_at) SELECT "
      "consumer, 'shop', 'order-9', 1, 4, 3, 1700000000000000 FROM inbox_consumers");
  nats::InboxOperations{store}.pause("billing");
  sql("INSERT INTO outbox_workers (worker, host, pid, presence, started_at, heartbeat_until, "
      "heartbeat_ttl, broker, broker_since, is_cut_off) VALUES "
      "('w1', 'h', 1, -1, 1700000000000000, 1700000000000000, 1, 'connected', 1700000000000000, "
      "0 <> 0), ('w2', 'h', 2, -1, 1700000000000000, 1700000000000000, 1, "
      "'down: no server answers', 1700000000000000, 0 <> 0)");
}

/// Apart from the store, which may be on a server.
std::string place_of_keys() {
  static const TempDir folder;
  return folder.file("keys.db");
}

/// One person is forgotten and returns, another one stays.
void forget_somebody(const std::string& db) {
  Keys keys = open_keys(place_of_keys());
  Store store = stela::open(db, {.keys = &keys});
  const Outbox outbox{store};
  const auto move = [&](const char* name) {
    UnitOfWork unit{store};
    unit.append(StreamId::parse(name), ExpectedVersion::any(), Moved{"Elm Street 1"});
    unit.commit();
  };
  move("guest-m1");
  move("guest-a1");
  forget(store, StreamId::parse("guest-m1"), {.by = "dpo-7", .reason = "Art. 17"});
  allow_again(store, StreamId::parse("guest-m1"));
  move("guest-m1");
}

/// How each command that only reads is called; exit codes say what they find.
const std::map<std::string, std::vector<Words>>& reading_commands() {
  static const std::map<std::string, std::vector<Words>> all{
      {"outbox status", {{}}},
      {"outbox history", {{}, {"--partition", "p00"}}},
      {"outbox check", {{}}},
      {"outbox list", {{}, {"--state", "published"}, {"--state", "parked"}}},
      {"outbox groups", {{}}},
      {"outbox show", {{"1"}, {"3"}, {"6"}}},
      {"outbox workers", {{}}},
      {"outbox partitions list", {{}}},
      {"events list", {{}, {"--correlation", "c-1"}, {"--type", "order.placed"}}},
      {"events show", {{"1"}, {"9"}}},
      {"events query", {{"--type", "order.placed"}}},
      {"events head", {{}}},
      {"events tail", {{"--limit", "3"}}},
      {"events stats", {{}}},
      {"events tree", {{"1"}, {"9"}}},
      {"streams list", {{}}},
      {"streams show", {{"order-1"}}},
      {"snapshots list", {{}}},
      {"tags list", {{}}},
      {"tags show", {{"customer-7"}}},
      {"tags types", {{}}},
      {"projections status", {{}}},
      {"projections check", {{}}},
      {"projections history", {{"counting"}}},
      {"topology", {{}}},
      {"projections list", {{}, {"--newest-first", "--type", "order.placed"}}},
      {"processes list", {{}}},
      {"processes show", {{"payment_deadline"}}},
      {"timers list", {{}, {"--parked"}, {"--since", "2020-01-01"}}},
      {"timers show", {{"payment_deadline", "booking-1", "not_paid"}}},
      {"timers check", {{}}},
      {"timers log", {{}}},
      {"inbox status", {{}}},
      {"inbox check", {{}}},
      {"inbox list", {{}, {"--newest-first"}, {"--since", "2020-01-01"}}},
      {"inbox gaps", {{}, {"--newest-first"}}},
      {"check", {{}, {"--format", "json"}}},
      {"why", {{}, {"1"}, {"picky"}, {"billing"}}},
      {"findings known", {{}}},
      {"log", {{}, {"t1"}}},
      {"changes", {{}}},
      {"verify", {{}}},
      {"doctor", {{}}},
      {"config show", {{}}},
      {"version", {{}}},
      {"privacy subjects", {{}, {"--destroyed"}}},
      {"privacy show", {{"guest-m1"}}},
      {"privacy report", {{"guest-m1"}}},
  };
  return all;
}

/// They write, never end, or print no JSON of their own.
const std::set<std::string>& other_commands() {
  static const std::set<std::string> all{"serve",
                                         "mcp",
                                         "outbox work",
                                         "outbox enable",
                                         "tenants init",
                                         "tenants create",
                                         "tenants list",
                                         "tenants status",
                                         "tenants migrate",
                                         "tenants adopt",
                                         "tenants each",
                                         "tenants suspend",
                                         "tenants resume",
                                         "tenants drop",
                                         "tenants erase",
                                         "outbox top",
                                         "outbox retry",
                                         "outbox discard",
                                         "outbox republish",
                                         "outbox reconcile",
                                         "outbox purge",
                                         "outbox partitions resize",
                                         "outbox partitions sync",
                                         "outbox partitions adopt",
                                         "outbox partitions resume",
                                         "outbox partitions retry",
                                         "events append",
                                         "index build",
                                         "streams state",
                                         "snapshots drop",
                                         "tags add",
                                         "tags forget",
                                         "append-ids purge",
                                         "projections retry",
                                         "projections skip",
                                         "projections replay",
                                         "projections rebuild",
                                         "projections run",
                                         "projections cancel",
                                         "projections remove",
                                         "timers move",
                                         "timers cancel",
                                         "timers fire",
                                         "timers retry",
                                         "timers hold",
                                         "timers resume",
                                         "inbox retry",
                                         "inbox discard",
                                         "inbox pause",
                                         "inbox resume",
                                         "inbox move",
                                         "inbox forget",
                                         "privacy export",
                                         "privacy forget",
                                         "privacy hold",
                                         "privacy release",
                                         "privacy rotate",
                                         "privacy reapply",
                                         "findings ack",
                                         "findings unack",
                                         "migrate",
                                         "backup",
                                         "checkpoint",
                                         "export",
                                         "import",
                                         "completion",
                                         "manual"};
  return all;
}

class Vocabulary {
 public:
  /// The keys of the object on this line.
  std::set<std::string> check(const std::string& line) {
    json::Reader reader{line};
    std::set<std::string> keys = check_object(reader);
    reader.finish();
    return keys;
  }

 private:
  static bool is_of_users(const std::string& key) { return key == "payload" || key == "metadata"; }

  std::set<std::string> check_object(json::Reader& reader) {
    std::set<std::string> keys;
    std::string key;
    reader.open_object();
    while (reader.next_member(key)) {
      EXPECT_TRUE(keys.insert(key).second) << key << " twice";
      check_key(key);
      check_value(key, reader);
    }
    reader.close();
    return keys;
  }

  static void check_key(const std::string& key) {
    static const std::regex known{"[a-z][a-z0-9_]*"};
    static const std::regex gone{
        "version|last_error|correlation|causation|ts|finding|advice|.*_ms|(.*_)?(since|until)"};
    EXPECT_TRUE(std::regex_match(key, known)) << key;
    EXPECT_FALSE(std::regex_match(key, gone)) << key;
  }

  void check_value(const std::string& key, json::Reader& reader) {
    const std::string raw{reader.get_raw()};
    const char first = raw.front();
    const bool is_null = raw.starts_with("null");
    const bool is_moment = key == "at" || key.ends_with("_at");
    if (is_of_users(key)) {
      EXPECT_NE(first, '"') << key << " is a text";
      return;
    }
    if (key.ends_with("_s")) {
      EXPECT_TRUE(is_null || first == '-' || (first >= '0' && first <= '9')) << key << " " << raw;
    }
    if (is_moment) {
      EXPECT_TRUE(is_null || first == '"') << key << " " << raw;
    }
    json::Reader inside{raw};
    if (first == '{') check_object(inside);
    if (first == '[') {
      inside.open_array();
      while (inside.next_element()) check_value("of " + key, inside);
      inside.close();
    }
    if (first == '"') check_text(key, std::string{inside.get_string()}, is_moment);
  }

  static void check_text(const std::string& key, const std::string& text, bool is_moment) {
    static const std::regex moment{R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)"};
    static const std::regex word{"[a-z][a-z0-9_]*"};
    EXPECT_NE(text, "") << key;
    EXPECT_NE(text, "-") << key;
    EXPECT_FALSE(text.starts_with("{\"")) << key << " is JSON in a text: " << text;
    EXPECT_EQ(std::regex_match(text, moment), is_moment) << key << " " << text;
    EXPECT_FALSE(text.starts_with("1970-")) << key;
    const bool is_word = key == "state" || key == "severity" || key == "kind" || key == "reason" ||
                         key == "stopped" || key == "broker" || key == "code";
    if (is_word) {
      EXPECT_TRUE(std::regex_match(text, word)) << key << " " << text;
    }
  }
};

/// Those of a list have the same keys; what isn't a row of it comes after.
void check_lines(const std::string& command, const std::vector<std::string>& lines) {
  Vocabulary vocabulary;
  std::set<std::string> keys;
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const std::set<std::string> own = vocabulary.check(line);
    const bool is_end =
        (command == "events query" || command == "verify") && &line == &lines.back();
    if (keys.empty() || is_end) keys = own;
    EXPECT_EQ(own, keys) << "a row has keys of its own";
  }
}

std::set<std::string> commands_of_the_manual() {
  std::set<std::string> all;
  for (const std::string& line : lines_of(run_well({"manual", "--markdown"}))) {
    if (line.starts_with("## ")) all.insert(line.substr(3));
  }
  return all;
}

}  // namespace

void populate(Store& store, const std::string& db,
              const std::function<void(const std::string&)>& sql) {
  Outbox outbox{store, {.partition_count = 2, .fence = Fence::none}};
  place_and_publish(store, outbox);
  const auto room = Id<Room>::from("1");
  decide(store, InRoom{room}, [&](Decision& decision, const InRoom&) {
    decision.record(Booked{room, Id<Guest>::from("ann")});
  });
  project(store);
  consume(store, sql);
  run_well({"events", "append", "--db", db, "--stdin"},
           {.input = R"({"stream":"note-1","type":"note.taken","data":{},"tags":["customer-7"],)"
                     R"("correlation_id":"c-1","actor":"ann"})"});
  const Ran noted = run({"events", "list", "--db", db, "--stream", "note-1", "--json"});
  run_well({"events", "append", "--db", db, "--stdin"},
           {.input = R"({"stream":"note-1","type":"note.read","schema_version":2,"data":{"n":1},)"
                     R"("publish":true,"causation_id":")" +
                     member(noted.out, "id") + "\"}"});
  store.save_snapshot(StreamId::parse("note-1"),
                      {.version = StreamVersion{1}, .sequence = store.last_sequence()});
  run_well({"findings", "ack", "outbox_parked", "--why", "known", "--db", db});
}

void check_json_of_every_command(const std::string& db) {
  forget_somebody(db);
  for (const std::string& command : commands_of_the_manual()) {
    const auto found = reading_commands().find(command);
    EXPECT_NE(found != reading_commands().end(), other_commands().contains(command))
        << "'" << command << "' is neither run here nor named as one that isn't";
    if (found == reading_commands().end()) continue;
    for (const Words& arguments : found->second) {
      Words words{"--json"};
      for (std::size_t at = 0; at < command.size();) {
        const std::size_t end = std::min(command.find(' ', at), command.size());
        words.insert(words.end() - 1, command.substr(at, end - at));
        at = end + 1;
      }
      words.insert(words.end(), arguments.begin(), arguments.end());
      SCOPED_TRACE(::testing::PrintToString(words));
      const Ran ran =
          run(words, {.environment = {{"STELA_DB", db}, {"STELA_KEYS_STORE", place_of_keys()}}});
      const std::vector<std::string> lines = lines_of(ran.out);
      EXPECT_FALSE(lines.empty()) << ran.err;
      check_lines(command, lines);
    }
  }
}

}  // namespace stela::test
