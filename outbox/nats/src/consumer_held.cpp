// Messages that wait in the inbox, and are read from the broker again when it is their turn.
#include "consumer_worker.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace stela::nats {

using std::chrono::milliseconds;

namespace {

/// How often is asked what a clock that was ahead has put off for too long.
constexpr milliseconds look_ahead_interval{30'000};
/// How often the broker is asked what is on its way, at most, however much waits for that.
constexpr milliseconds ask_interval{250};
/// How often is noted which other streams are gone.
constexpr milliseconds note_of_gone_interval{60'000};

bool is_same(const HeldMessage& message, const ReceivedEvent& event) {
  const auto& bytes = event.id.bytes();
  return message.event_id.size() == bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), message.event_id.begin(),
                    [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); });
}

constexpr const char* left_broker = "the message left the broker before it could be handled";

}  // namespace

/// As long as nothing that is held is due.
milliseconds Consumer::Worker::until_next_held(milliseconds wait) {
  const std::optional<Timestamp> due = inbox_.held().next_due(options_.stream);
  if (!due || now() < next_drain_) return wait;
  const auto left = std::chrono::ceil<milliseconds>(*due - inbox_.now());
  return std::clamp(left, milliseconds{1}, wait);
}

/// Some at a time, so that others don't wait for long.
void Consumer::Worker::drain() {
  bring_forward_if_due();
  const std::optional<Timestamp> due = inbox_.held().next_due(options_.stream);
  if (!due || *due > inbox_.now() || now() < next_drain_) return;
  const std::vector<HeldMessage> claimed = claim();
  if (claimed.empty()) return;
  std::vector<Delivery> batch;
  try {
    batch = read_held(claimed);
    troubles_of_drain_ = 0;
    handle(batch);
  } catch (const Error& e) {
    unclaim(claimed);
    if (e.code() != ErrorCode::broker_failed) throw;
    wait_before_draining(e);
  }
}

/// No pause of this consumer is longer.
void Consumer::Worker::bring_forward_if_due() {
  if (now() < next_look_ahead_) return;
  next_look_ahead_ = now() + look_ahead_interval;
  inbox_.held().bring_forward(options_.stream, std::max({pull_->gap_patience(), pull_->ack_wait(),
                                                         2 * options_.retry_backoff_max}));
}

std::vector<HeldMessage> Consumer::Worker::claim() {
  Claiming rules{.broker_stream = options_.stream,
                 .most = std::min(options_.batch_size, Pull::most_to_read),
                 .most_bytes = std::min(options_.prefetch_bytes, pull_->bytes_to_ask()),
                 .is_whole = is_whole_,
                 .has_whole_history = pull_->has_whole_history(),
                 .lease = pull_->ack_wait(),
                 .patience = pull_->gap_patience()};
  if (now() < next_ask_) rules.on_their_way = asked_;
  Claimed claimed = inbox_.held().claim(rules);
  note_losses(claimed.lost);
  if (claimed.wants_to_ask) claim_after_asking(rules, claimed.messages);
  return std::move(claimed.messages);
}

/// What waits for the broker's word doesn't wait for others that are due, however many there are.
void Consumer::Worker::claim_after_asking(Claiming rules, std::vector<HeldMessage>& claimed) try {
  rules.on_their_way = asked_ = ask_what_is_on_its_way();
  next_ask_ = now() + ask_interval;
  rules.most -= std::ssize(claimed);
  for (const HeldMessage& message : claimed) rules.most_bytes -= message.size;
  Claimed rest = inbox_.held().claim(rules);
  std::move(rest.messages.begin(), rest.messages.end(), std::back_inserter(claimed));
  note_losses(rest.lost);
} catch (...) {
  unclaim(claimed);
  throw;
}

OnTheirWay Consumer::Worker::ask_what_is_on_its_way() {
  OnTheirWay found{.settled_through = pull_->settled_through()};
  const std::vector<std::string> others = inbox_.other_streams(options_.stream);
  if (others.empty()) return found;
  try {
    found.others_settled_at = other_streams_.look(others, *pull_, now());
    note_gone(others);
  } catch (const BrokerFailed& e) {
    // It may let this account ask for its own stream only.
    log(LogLevel::warning, "consumer.trouble", e.what());
    found.others_settled_at = Steady::min();
  }
  found.are_others_moving = now() < other_streams_.moved_at() + pull_->gap_patience();
  return found;
}

void Consumer::Worker::note_gone(const std::vector<std::string>& others) {
  if (now() < next_note_of_gone_) return;
  inbox_.note_gone(others, other_streams_.gone(), options_.retention);
  next_note_of_gone_ = now() + note_of_gone_interval;
}

std::vector<Delivery> Consumer::Worker::read_held(const std::vector<HeldMessage>& claimed) {
  std::vector<std::uint64_t> places;
  std::int64_t bytes = 0;
  for (const HeldMessage& message : claimed) {
    places.push_back(message.broker_sequence);
    bytes += message.size;
  }
  std::vector<std::optional<Delivery>> found = pull_->read(places, bytes);
  std::vector<Delivery> batch;
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    const HeldMessage& message = claimed[i];
    std::optional<Delivery>& delivery = found[i];
    if (!delivery || !delivery->event || !is_same(message, *delivery->event)) {
      lose(message);
      continue;
    }
    delivery->held = message.number;
    delivery->is_released = message.is_released;
    delivery->place.deliveries = message.claims;
    if (message.is_to_skip) {
      skip(message, *delivery);
      continue;
    }
    batch.push_back(std::move(*delivery));
  }
  return batch;
}

void Consumer::Worker::lose(const HeldMessage& message) {
  bool lost = false;
  store_.database().write([&](database::Connection& connection) {
    lost = inbox_.lose(connection, message, is_whole_);
  });
  if (lost) report_loss({message.source, message.stream, message.version, left_broker});
}

/// The broker was going to send them again.
void Consumer::Worker::note_losses(const std::vector<LostMessage>& lost) {
  for (const LostMessage& message : lost) {
    if (!message.is_noted) inbox_.note_loss(message);
    report_loss(message);
  }
}

void Consumer::Worker::report_loss(const LostMessage& message) {
  ++tick_.lost;
  const std::string version = std::to_string(message.version.value());
  const std::array fields{
      LogEntry::Field{"consumer", options_.name}, LogEntry::Field{"stream", options_.stream},
      LogEntry::Field{"event_stream", message.stream}, LogEntry::Field{"version", version},
      LogEntry::Field{"problem", message.error}};
  store_.conventions().log->write({.level = LogLevel::error,
                                   .name = "consumer.lost",
                                   .message = "version " + version + " of '" + message.stream +
                                              "' is lost to the consumer: " + message.error,
                                   .fields = fields});
}

void Consumer::Worker::skip(const HeldMessage& message, Delivery& delivery) {
  const auto [attempts, error] = inbox_.failure_of(message);
  bury(delivery, attempts, "skipped by an operator" + (error.empty() ? "" : ": " + error));
}

void Consumer::Worker::unclaim(const std::vector<HeldMessage>& claimed) noexcept try {
  std::vector<std::int64_t> numbers;
  for (const HeldMessage& message : claimed) numbers.push_back(message.number);
  inbox_.held().unclaim(numbers, inbox_.now());
} catch (const Error&) {
  // They are due again when their lease is over.
}

/// The broker may give messages and refuse to be read: others go on.
void Consumer::Worker::wait_before_draining(const Error& trouble) {
  if (troubles_of_drain_++ == 0) log(LogLevel::warning, "consumer.trouble", trouble.what());
  next_drain_ = now() + backoff_after(troubles_of_drain_);
}

}  // namespace stela::nats
