#include "chaos/orchestra.hpp"

#include "chaos/roles.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/nats/inbox.hpp>
#include <stela/outbox/operations.hpp>

#include <poll.h>
#include <signal.h>

#include <fstream>
#include <utility>

namespace stela::chaos {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr int appenders = 3;
constexpr int workers = 3;
constexpr int consumers = 2;
constexpr auto drain_limit = 90s;
/// What waits when the faults end may take so much longer: a slow disk makes a long backlog, and
/// slower than this nothing may be relayed and handled.
constexpr std::int64_t least_a_second = 250;
/// A mutant may never drain: that needn't be waited for.
constexpr auto mutant_drain_limit = 15s;

}  // namespace

Orchestra::Orchestra(const Settings& settings)
    : settings_{settings}, random_{settings.seed}, proxy_{server_.port()} {
  make_databases();
  const auto add = [&](const std::string& role, int count) {
    for (int i = 0; i < count; ++i) members_.push_back({.role = role, .child = {}});
  };
  add("append", appenders);
  add("relay", workers);
  add("consume", consumers);
  for (Member& member : members_) start(member);
}

void Orchestra::make_databases() {
  auto shop = open_shop(settings_);
  OutboxOptions options = outbox_options(settings_);
  options.partition_count = settings_.partitions;
  const Outbox outbox{shop, options};
  auto effects = sqlite::open(settings_.effects(), {.durability = sqlite::Durability::relaxed});
  const nats::Inbox inbox{effects};
  // No UNIQUE: an effect that happens twice must be seen.
  test::RawSqlite{settings_.effects()}.run(
      "CREATE TABLE effects (entry INTEGER PRIMARY KEY, id TEXT, stream TEXT, version INTEGER, "
      "sequence INTEGER)");
}

void Orchestra::start(Member& member) {
  const auto number = std::to_string(&member - members_.data());
  member.child = std::make_unique<Child>(
      std::vector<std::string>{
          "--role", member.role, "--folder", settings_.folder, "--url", proxy_.url(), "--number",
          number, "--seed", std::to_string(settings_.seed), "--seconds",
          std::to_string(settings_.seconds), "--mutant", std::string{to_string(settings_.mutant)}},
      settings_.folder + "/" + member.role + ".log");
  member.stopped = member.away = false;
}

// --- time

void Orchestra::later(milliseconds wait, std::function<void()> action) {
  actions_.emplace(steady_clock::now() + wait, std::move(action));
}

void Orchestra::run_actions() {
  while (!actions_.empty() && actions_.begin()->first <= steady_clock::now()) {
    const auto action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
  }
}

void Orchestra::look_after_members() {
  for (Member& member : members_) {
    if (member.away || !member.child || member.child->is_running()) continue;
    problems_.push_back(member.role + " ended by itself with " +
                        std::to_string(member.child->result()) + "; see " + member.role + ".log");
    start(member);
  }
}

void Orchestra::pass(milliseconds time) {
  const Steady until = steady_clock::now() + time;
  test::eventually(
      [&] {
        run_actions();
        look_after_members();
        return steady_clock::now() >= until;
      },
      time);
}

milliseconds Orchestra::between(int least, int most) {
  return milliseconds{std::uniform_int_distribution<int>{least, most}(random_)};
}

void Orchestra::note(const Kind& kind, const std::string& detail) {
  ++faults_;
  ++by_kind_[kind];
  const auto at = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begun_).count();
  std::ofstream{settings_.folder + "/faults.log", std::ios::app} << at << " ms  " << kind << "  "
                                                                 << detail << '\n';
}

// --- the play

bool Orchestra::play() {
  const Steady end = steady_clock::now() + std::chrono::seconds{settings_.seconds};
  if (settings_.resized > 0) {
    later(std::chrono::seconds{settings_.seconds} / 2, [this] { resize(); });
  }
  pass(1s);
  while (steady_clock::now() < end) {
    strike();
    pass(between(settings_.fault_ms / 4, settings_.fault_ms * 7 / 4));
  }
  heal();
  const bool drained = drain();
  for (Member& member : members_) {
    if (!member.child) continue;
    const int result = member.child->stop();
    if (result != 0) {
      problems_.push_back(member.role + " was told to stop and ended with " +
                          std::to_string(result));
    }
  }
  return drained;
}

/// What a mutant is most likely to stumble over: short runs must find it.
int Orchestra::favourite() const {
  switch (settings_.mutant) {
    case mutants::Mutant::mark_before_ack:
    case mutants::Mutant::no_read_back_at_acquisition:
      return 0;
    case mutants::Mutant::dedup_only:
      return 14;
    case mutants::Mutant::skip_failed_row:
      return 17;
    default:
      return -1;
  }
}

void Orchestra::strike() {
  const int drawn = static_cast<int>(random_() % 19);
  switch (favourite() >= 0 && random_() % 4 != 0 ? favourite() : drawn) {
    case 0:
    case 1:
    case 2:
      return kill("relay");
    case 3:
      return kill("append");
    case 4:
      return kill("consume");
    case 5:
    case 6:
      return suspend("relay");
    case 7:
      return suspend("consume");
    case 8:
      return kill_broker();
    case 9:
      return pause_broker();
    case 10:
      proxy_.delay(between(1, 60));
      later(between(200, 1'200), [this] { proxy_.delay(0ms); });
      return note("delay");
    case 11:
      proxy_.slice(static_cast<int>(1 + random_() % 40));
      later(between(100, 400), [this] { proxy_.slice(0); });
      return note("slice");
    case 12:
      proxy_.cut();
      if (random_() % 2 == 0) {
        proxy_.refuse(true);
        later(between(100, 1'000), [this] { proxy_.refuse(false); });
      }
      return note("cut");
    case 13:
      if (random_() % 2 == 0) {
        proxy_.half_open();
        return note("half open");
      }
      proxy_.drop_answers();
      return note("drop answers");
    case 14:
    case 15:
      proxy_.linger(between(1'800, 3'000));
      quiet_until_ = steady_clock::now() + 5s;
      return note("late bytes");
    case 16:
      return leave_and_return();
    case 17:
      return squeeze_broker();
    default:
      return keep_busy();
  }
}

void Orchestra::heal() {
  healing_ = true;
  // What was going to be undone is undone now.
  while (!actions_.empty()) {
    const auto action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
  }
  proxy_.heal();
  for (Member& member : members_) {
    if (member.role != "append") {
      if (member.child) member.child->signal(SIGCONT);
      continue;
    }
    if (member.child) member.child->stop();
    member.away = true;
  }
}

bool Orchestra::drain() {
  const bool is_mutant = settings_.mutant != mutants::Mutant::none;
  const Steady limit = steady_clock::now() +
                       (is_mutant ? mutant_drain_limit
                                  : drain_limit + std::chrono::seconds{waiting() / least_a_second});
  while (waiting() > 0) {
    if (steady_clock::now() > limit) return false;
    pass(200ms);
  }
  // What dead connections still hold may arrive.
  pass(1'500ms);
  return true;
}

std::int64_t Orchestra::number_in(const std::string& database, const std::string& sql) {
  test::RawSqlite raw{database};
  return raw.integer(sql);
}

/// Messages that aren't published yet, and those that haven't had their effect.
std::int64_t Orchestra::waiting() {
  const std::int64_t published =
      number_in(settings_.database(),
                "SELECT count(*) FROM events JOIN event_kinds USING (kind) WHERE publishes = 1");
  return number_in(settings_.database(), "SELECT count(*) FROM outbox_messages") + published -
         number_in(settings_.effects(), "SELECT count(*) FROM effects");
}

// --- faults

Orchestra::Member& Orchestra::any(const std::string& role) {
  std::vector<Member*> found;
  for (Member& member : members_) {
    if (member.role == role) found.push_back(&member);
  }
  return *found[random_() % found.size()];
}

void Orchestra::kill(const std::string& role) {
  Member& victim = any(role);
  if (victim.away) return;
  victim.child->kill();
  victim.away = true;
  later(between(0, 800), [this, &victim] { start(victim); });
  note("kill", role);
}

void Orchestra::suspend(const std::string& role) {
  Member& victim = any(role);
  if (victim.away || victim.stopped) return;
  victim.child->signal(SIGSTOP);
  victim.stopped = true;
  const bool past_its_lease = random_() % 2 == 0;
  later(past_its_lease ? between(2'200, 4'000) : between(50, 1'500), [&victim] {
    victim.stopped = false;
    if (victim.child) victim.child->signal(SIGCONT);
  });
  note(past_its_lease ? "pause past the lease" : "pause", role);
}

void Orchestra::leave_and_return() {
  Member& victim = any("relay");
  if (victim.away || victim.stopped) return;
  victim.child->signal(SIGTERM);
  victim.away = true;
  later(between(500, 3'000), [this, &victim] {
    victim.child->kill();
    start(victim);
  });
  note("leave and return", "relay");
}

void Orchestra::kill_broker() {
  if (std::exchange(broker_down_, true)) return;
  server_.kill();
  later(between(0, 1'500), [this] {
    server_.start_again();
    broker_down_ = false;
  });
  note("kill the broker");
}

void Orchestra::pause_broker() {
  if (std::exchange(broker_down_, true)) return;
  server_.pause();
  later(between(100, 2'500), [this] {
    server_.resume();
    broker_down_ = false;
  });
  note("pause the broker");
}

/// Stops the relays, until what they sent has arrived and longer.
class Orchestra::Standstill {
 public:
  explicit Standstill(std::vector<Member>& members) {
    for (Member& member : members) {
      if (member.role != "relay" || member.away || member.stopped) continue;
      member.child->signal(SIGSTOP);
      stopped_.push_back(member.child.get());
    }
    poll(nullptr, 0, 50);
  }
  ~Standstill() {
    for (const Child* const child : stopped_) child->signal(SIGCONT);
  }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  std::vector<const Child*> stopped_;
};

/// Each stream takes so many more messages; -1: any number. False if the broker isn't there.
bool Orchestra::limit_streams(std::int64_t more) {
  if (broker_down_) return false;
  // A limit below what is there would delete messages, so nobody publishes meanwhile.
  const Standstill standstill{members_};
  try {
    test::JetStream broker{server_.url()};
    for (const std::string& stream : broker.streams()) {
      const auto most = more < 0 ? -1 : broker.count(stream) + more;
      broker.update_stream(stream, [&](jsStreamConfig& config) { config.MaxMsgs = most; });
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Orchestra::squeeze_broker() {
  // Late bytes must not be under way either.
  if (steady_clock::now() < quiet_until_ || !limit_streams(200)) return;
  later(between(200, 1'000), [this] { widen_broker(); });
  note("fill the broker");
}

void Orchestra::widen_broker() {
  if (!limit_streams(-1)) later(100ms, [this] { widen_broker(); });
}

void Orchestra::keep_busy() {
  auto writer = std::make_shared<test::RawSqlite>(settings_.database());
  try {
    sqlite3_busy_timeout(writer->handle(), 1'000);
    writer->run("BEGIN IMMEDIATE");
  } catch (const std::exception&) {
    return;
  }
  later(between(100, 2'500), [writer] { writer->run("ROLLBACK"); });
  note("busy database");
}

void Orchestra::resize() {
  try {
    auto shop = open_shop(settings_);
    OutboxOperations{shop}.resize(settings_.resized);
  } catch (const Error& e) {
    // Somebody who is paused may hold the lock.
    if (!e.is_retryable()) throw;
    return later(500ms, [this] { resize(); });
  }
  note("resize", std::to_string(settings_.partitions) + " to " + std::to_string(settings_.resized));
}

}  // namespace stela::chaos
