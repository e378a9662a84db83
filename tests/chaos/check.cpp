#include "chaos/check.hpp"

#include "chaos/ledger.hpp"
#include "chaos/roles.hpp"
#include "nats/jetstream.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/nats/detail/stream_reader.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/outbox/operations.hpp>

#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace stela::chaos {
namespace {

/// More of one kind say no more.
constexpr std::size_t most_of_a_kind = 5;

struct Event {
  std::string id;
  std::string stream;
  std::string type;
  std::int64_t version = 0;
  std::string payload;
  bool publishes = false;
};

class Check {
 public:
  Check(const Settings& settings, const std::string& url, const std::vector<Deletion>& deletions)
      : settings_{settings}, url_{url}, broker_{url} {
    for (const Deletion& each : deletions) {
      deleted_.insert(each.event);
      deleted_at_.insert({each.broker_stream, each.broker_sequence});
    }
  }

  Findings run() {
    read_store();
    check_ledgers();
    for (const std::string& stream : broker_.streams()) check_stream(stream);
    check_completeness();
    check_rows();
    check_effects();
    check_deletions();
    if (settings_.has_deadlines()) check_deadlines();
    return std::move(findings_);
  }

 private:
  void violate(const std::string& kind, const std::string& detail) {
    if (++kinds_[kind] <= most_of_a_kind) findings_.violations.push_back(kind + ": " + detail);
  }

  void read_store() {
    auto shop = open_shop(settings_);
    std::unordered_map<std::string, std::int64_t> versions;
    std::unordered_set<std::string> ids;
    for (const StoredEvent& event : shop.read_all()) {
      const std::int64_t sequence = event.sequence.value();
      if (sequence != static_cast<std::int64_t>(events_.size()) + 1) {
        violate("the global sequence has a gap", std::to_string(sequence));
      }
      if (event.version.value() != ++versions[event.stream.name()]) {
        violate("a stream's versions have a gap", event.describe());
      }
      events_.push_back({event.id.to_string(), event.stream.name(), event.type(),
                         event.version.value(), std::string{event.payload}, event.publishes()});
      if (!ids.insert(events_.back().id).second) violate("an id is there twice", event.describe());
    }
    store_id_ = shop.id().to_string();
    findings_.appended = static_cast<std::int64_t>(events_.size());
  }

  const Event* event_at(std::int64_t sequence) const {
    const auto index = static_cast<std::size_t>(sequence - 1);
    return sequence >= 1 && index < events_.size() ? &events_[index] : nullptr;
  }

  void check_ledgers() {
    std::vector<Attempt> attempts;
    for (const auto& entry : std::filesystem::directory_iterator{settings_.folder}) {
      if (!entry.path().filename().string().starts_with("ledger.")) continue;
      const std::vector<Attempt> more = Ledger::read(entry.path());
      attempts.insert(attempts.end(), more.begin(), more.end());
    }
    for (const Attempt& attempt : attempts) {
      if (attempt.state == Attempt::State::stored) findings_.acknowledged += attempt.count;
      if (attempt.state == Attempt::State::unanswered) ++findings_.unanswered;
    }
    for (const std::string& found : contradictions(attempts, tickets())) {
      violate("the appends", found);
    }
  }

  std::vector<StoredTicket> tickets() const {
    constexpr std::string_view begin = "{\"serial\":";
    std::vector<StoredTicket> tickets;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].type != TicketIssued::event_type.name) continue;
      tickets.push_back({.sequence = static_cast<std::int64_t>(i) + 1,
                         .serial = std::stoll(events_[i].payload.substr(begin.size()))});
    }
    return tickets;
  }

  /// As its leader has them. A consumer may be on a server that hasn't caught up.
  std::vector<test::RawMessage> messages_in(const std::string& stream) {
    return settings_.servers > 1 ? broker_.messages(stream) : broker_.drain(stream);
  }

  void check_stream(const std::string& stream) {
    std::int64_t last = 0;
    for (const test::RawMessage& message : messages_in(stream)) {
      const std::int64_t sequence = std::stoll(message.headers.at("Stela-Sequence"));
      const std::string where = stream + " at " + std::to_string(message.sequence) + ": event " +
                                std::to_string(sequence);
      const Event* const event = event_at(sequence);
      if (event == nullptr || !event->publishes || message.headers.at("ce-id") != event->id ||
          message.payload != event->payload || message.headers.at("Stela-Store") != store_id_ ||
          message.headers.at("ce-subject") != event->stream) {
        violate("a message isn't what the store has", where);
        continue;
      }
      if (deleted_at_.contains({stream, message.sequence})) came_back_.insert(sequence);
      const bool is_new = published_.insert(sequence).second;
      if (!is_new) ++findings_.copies;
      if (settings_.fence == Fence::none) {
        check_unfenced(*event, is_new, where);
        continue;
      }
      if (!is_new) violate("an event is published twice", where);
      // Of one stream in all modes; of a partition where it has a JetStream stream of its own.
      if (settings_.fence == Fence::stream && sequence <= last) {
        violate("a partition isn't in order", where + " after " + std::to_string(last));
      }
      std::int64_t& before = last_of_subject_[message.subject];
      if (settings_.fence == Fence::subject && sequence <= before) {
        violate("a partition isn't in order", where + " after " + std::to_string(before));
      }
      before = sequence;
      last = sequence;
    }
  }

  void check_unfenced(const Event& event, bool is_new, const std::string& where) {
    std::int64_t& before = last_version_[event.stream];
    if (is_new && event.version < before) violate("first deliveries aren't in order", where);
    if (is_new) before = event.version;
  }

  void check_completeness() {
    findings_.published = static_cast<std::int64_t>(published_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const auto sequence = static_cast<std::int64_t>(i) + 1;
      if (events_[i].publishes && !published_.contains(sequence) && !deleted_.contains(sequence)) {
        violate("an event isn't in its stream", std::to_string(sequence));
      }
    }
  }

  void check_rows() {
    const auto expect_none = [&](const std::string& what, const std::string& sql) {
      for (const std::string& row : shop_rows(settings_, sql + " LIMIT 5")) violate(what, row);
    };
    expect_none("a message still waits",
                "SELECT partition, sequence, attempts, last_error FROM outbox_messages");
    expect_none("a message is parked", "SELECT sequence, reason, error FROM outbox_parked");
    expect_none("a message was discarded", "SELECT sequence, reason FROM outbox_discarded");
    expect_none("a partition is stopped",
                "SELECT partition, stopped, stopped_detail FROM outbox_partitions "
                "WHERE stopped IS NOT NULL");
    // Nobody takes over what a killed relay had drained of an older generation.
    const int count = settings_.resized > 0 ? settings_.resized : settings_.partitions;
    expect_none("a partition isn't free",
                "SELECT partition, owner FROM outbox_partitions WHERE owner IS NOT NULL AND "
                "(lease_until > " +
                    now_in_sql(settings_) + " OR partition BETWEEN " +
                    std::to_string(PartitionId::at(0, count).number) + " AND " +
                    std::to_string(PartitionId::at(count - 1, count).number) + ")");
    if (settings_.is_on_postgres()) return;
    check_integrity(settings_.effects());
    expect_none("foreign keys", "SELECT * FROM pragma_foreign_key_check");
    check_integrity(settings_.database());
  }

  void check_integrity(const std::string& database) {
    const auto integrity = test::RawSqlite{database}.rows("PRAGMA integrity_check");
    if (integrity != std::vector<std::string>{"ok"}) violate("integrity", integrity.at(0));
  }

  void check_effects() {
    findings_.effects = effect_number(settings_, "SELECT count(*) FROM effects");
    const auto expect_none = [&](const std::string& what, const std::string& sql) {
      for (const std::string& row : effect_rows(settings_, sql + " LIMIT 5")) violate(what, row);
    };
    expect_none("an effect happened twice",
                "SELECT id, count(*) FROM effects GROUP BY id HAVING count(*) > 1");
    expect_none("effects of a stream aren't in order",
                "SELECT stream, before, version FROM (SELECT stream, version, lag(version) OVER "
                "(PARTITION BY stream ORDER BY entry) AS before FROM effects) AS each "
                "WHERE version <= before");
    if (deleted_.empty()) {
      expect_none("a consumer saw a gap", "SELECT stream, after, missing FROM inbox_gaps");
    }
    expect_none("a parked message", "SELECT broker_stream, error FROM inbox_parked");
    for (const std::string& id : effect_rows(settings_, "SELECT id FROM effects")) {
      handled_.insert(id);
    }
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (!events_[i].publishes || deleted_.contains(static_cast<std::int64_t>(i) + 1)) continue;
      if (!handled_.contains(events_[i].id)) violate("an effect is missing", events_[i].id);
    }
  }

  void check_deletions() {
    if (deleted_.empty()) return;
    auto shop = open_shop(settings_);
    nats::StreamReader reader{reader_options(settings_, url_)};
    std::vector<std::int64_t> missed;
    // A comparison names the first ones of many.
    Compared compared{.missing = 1};
    for (GlobalSequence from{1}; std::ssize(compared.examples) < compared.missing;
         from = GlobalSequence{missed.back() + 1}) {
      compared = OutboxOperations{shop}.compare(reader, from, Mode::dry_run);
      for (const GlobalSequence each : compared.examples) missed.push_back(each.value());
      if (compared.examples.empty()) break;
    }
    missed.insert(missed.end(), came_back_.begin(), came_back_.end());
    for (const std::string& flaw : flaws_of_deletions(outcomes(), gaps(), missed)) {
      violate("a deletion", flaw);
    }
  }

  /// Each ticket is reminded of once, after it was issued.
  void check_deadlines() {
    std::map<std::string, int> reminded;
    for (const Event& event : events_) {
      if (event.type == TicketReminded::event_type.name) {
        if (--reminded[serial_in(event)] < 0) violate("a reminder is too early", event.payload);
      } else if (event.type == TicketIssued::event_type.name) {
        ++reminded[serial_in(event)];
      }
    }
    for (const auto& [serial, left] : reminded) {
      if (left != 0) violate("reminders of a ticket", serial + ": " + std::to_string(1 - left));
    }
    for (const std::string& row :
         shop_rows(settings_, "SELECT key, error FROM projection_timers LIMIT 5")) {
      violate("a timer is left", row);
    }
  }

  static std::string serial_in(const Event& event) {
    constexpr std::string_view begin = "{\"serial\":";
    return std::to_string(std::stoll(event.payload.substr(begin.size())));
  }

  std::vector<Outcome> outcomes() const {
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const auto sequence = static_cast<std::int64_t>(i) + 1;
      const Event& event = events_[i];
      if (!event.publishes) continue;
      outcomes.push_back(
          {.event = sequence,
           .stream = event.stream,
           .version = event.version,
           .is_deleted = deleted_.contains(sequence),
           .is_at_broker = published_.contains(sequence) && !came_back_.contains(sequence),
           .has_effect = handled_.contains(event.id)});
    }
    return outcomes;
  }

  std::vector<NotedGap> gaps() const {
    auto store = open_effects(settings_);
    std::vector<NotedGap> gaps;
    for (const nats::Gap& gap : nats::InboxOperations{store}.gaps({.limit = 10'000})) {
      gaps.push_back({gap.stream, gap.after.value(), gap.missing.value()});
    }
    return gaps;
  }

  const Settings& settings_;
  const std::string url_;
  test::JetStream broker_;
  /// By their sequences.
  std::set<std::int64_t> deleted_;
  std::set<std::pair<std::string, std::uint64_t>> deleted_at_;
  /// In their old places, where nothing that is sent again gets: a server that was killed forgets
  /// deletions that it hasn't written.
  std::set<std::int64_t> came_back_;
  /// By their ids.
  std::set<std::string> handled_;
  Findings findings_;
  std::map<std::string, std::size_t> kinds_;
  std::string store_id_;
  std::vector<Event> events_;
  std::unordered_set<std::int64_t> published_;
  std::map<std::string, std::int64_t> last_of_subject_;
  std::unordered_map<std::string, std::int64_t> last_version_;
};

}  // namespace

Findings check(const Settings& settings, const std::string& url,
               const std::vector<Deletion>& deletions) {
  return Check{settings, url, deletions}.run();
}

}  // namespace stela::chaos
