#include "consumer_worker.hpp"

#include "connect.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <exception>

namespace stela::nats {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds longest_trouble_wait = 5s;
/// How often the reader's row is read while messages arrive.
constexpr milliseconds look_interval = 250ms;

}  // namespace

Consumer::Worker::Worker(Store& store, const ConsumerOptions& options, ConsumerPorts ports)
    : store_{store.anchor()},
      options_{options},
      ports_{std::move(ports)},
      reader_{store, options_} {}

Consumer::Worker::~Worker() {
  reader_.release();
}

void Consumer::Worker::add(std::string_view event, std::unique_ptr<Handler> handler) {
  if (handler_of(std::string{event}) != nullptr) {
    throw UsageError{"this consumer has a handler for '" + std::string{event} + "' already"};
  }
  handlers_.push_back(std::move(handler));
}

void Consumer::Worker::on_tick(std::function<void(const ConsumerTick&)> listener) {
  listener_ = std::move(listener);
}

Handler* Consumer::Worker::handler_of(const std::string& event) const noexcept {
  for (const auto& handler : handlers_) {
    if (handler->answers_to(event)) return handler.get();
  }
  return nullptr;
}

ConsumerTick Consumer::Worker::run_once() {
  next_look_ = next_retry_ = {};
  while (turn(std::min(options_.idle_wait, 100ms))) {
  }
  reader_.release();
  is_reading_ = false;
  return take_tick();
}

void Consumer::Worker::run(std::stop_token stop) {
  stop_ = stop;
  while (!stop.stop_requested()) {
    const bool went_well = try_turn();
    report();
    if (went_well) continue;
    follow::Backoff pauses = backoff();
    // Pauses must be short enough to keep the lease.
    pauses.most = std::min<std::chrono::microseconds>(
        {pauses.most, longest_trouble_wait, options_.lease_ttl / 4});
    rest(std::chrono::ceil<milliseconds>(pauses.after(troubles_)));
  }
  stop_ = {};
  start_over();
  source_.reset();
  reader_.release();
}

bool Consumer::Worker::try_turn() try {
  const auto trouble = follow::trouble_of(store_.database(), [this] { turn(options_.idle_wait); });
  if (!trouble) {
    troubles_ = 0;
    broker_trouble_.clear();
    said_.forget();
    return true;
  }
  ++troubles_;
  if (said_.lets_through(*trouble, now())) log(LogLevel::warning, "consumer.trouble", *trouble);
  return false;
} catch (const Error& e) {
  if (e.code() != ErrorCode::broker_failed) throw;
  ++troubles_;
  note_broker_trouble(e);
  return false;
}

bool Consumer::Worker::turn(milliseconds wait) try {
  if (!hold_lease()) return rest(wait), false;
  const ConsumerTick before = tick_;
  if (!is_reading_) begin_reading();
  retry_parked();
  if (const milliseconds left = backoff_left(); left > 0ms) {
    return rest(std::min(left, wait)), false;
  }
  if (is_full_of_parked()) return rest(wait), false;
  if (queue_.empty()) {
    for (Delivery& delivery : source_->fetch(options_.batch_size, wait)) {
      queue_.push_back(std::move(delivery));
    }
  }
  note_broker_works();
  if (queue_.empty()) {
    next_look_ = {};
    return tick_ != before;
  }
  handle_queue();
  return tick_ != before;
} catch (const SourceForgotten&) {
  start_over();
  return true;
} catch (const LeaseLost&) {
  start_over();
  reader_.lose();
  log(LogLevel::warning, "consumer.lease_lost",
      "another process reads the stream now, or an operator has moved the consumer");
  return false;
} catch (const Error& e) {
  start_over();
  if (e.code() != ErrorCode::broker_failed) throw;
  // Another process may be able to reach the broker.
  reader_.release();
  const std::unique_ptr<MessageSource> ended = std::move(source_);
  if (ended) ended->fail_if_denied();
  throw;
}

void Consumer::Worker::start_over() noexcept {
  queue_.clear();
  is_reading_ = false;
  next_look_ = {};
}

bool Consumer::Worker::hold_lease() {
  if (reader_.is_held() && now() < next_look_) return true;
  const bool was_held = reader_.is_held();
  reader_.look();
  next_look_ = now() + look_interval;
  if (reader_.standing().is_paused) return note_pause(), false;
  if (reader_.is_held()) return true;
  if (was_held) throw LeaseLost{};
  start_over();
  // A process that can't reach the broker leaves the stream to others.
  if (!source_) source_ = ports_.connect(options_);
  if (acquire_lease()) return true;
  note_broker_works();
  tick_.reader = reader_.is_free() ? std::string{} : reader_.standing().owner;
  return false;
}

void Consumer::Worker::note_pause() {
  start_over();
  reader_.release();
  if (std::exchange(standstill_, "paused") == "paused") return;
  log(LogLevel::info, "consumer.paused",
      "an operator paused it: it reads nothing until it is resumed");
}

bool Consumer::Worker::acquire_lease() {
  const Standing& standing = reader_.standing();
  const bool leaves = left_to_newer_ != 0 && standing.failing.at == left_to_newer_ &&
                      standing.unknown_since &&
                      reader_.now() < *standing.unknown_since + options_.unknown_version_wait;
  if (leaves || !reader_.is_free() || !reader_.acquire()) return false;
  left_to_newer_ = 0;
  if (reader_.is_unclean()) alone_ = static_cast<std::size_t>(options_.batch_size);
  parked_bytes_ = reader_.count_parked_bytes();
  standstill_.clear();
  // If the last holder's halt persists, it will be recorded again.
  if (standing.failing.at == 0) reader_.note_standstill(0, "");
  tick_.reader.clear();
  return true;
}

// --- the broker

/// Repeats until the stream is seen unchanged, because it may be recreated after a look.
void Consumer::Worker::begin_reading() {
  StreamEnds ends = source_->look();
  for (StreamEnds seen;; ends = seen) {
    find_place(ends);
    reader_.stand_in(ends);
    source_->stand_at(reader_.standing().position);
    seen = source_->look();
    const bool is_same = seen.made_at == ends.made_at && seen.last >= ends.last;
    if (is_same) break;
  }
  is_reading_ = true;
}

/// Compares the recorded place with the broker's stream.
void Consumer::Worker::find_place(const StreamEnds& ends) {
  const Standing& standing = reader_.standing();
  if (standing.stream_made_at != 0) return check_stream(ends);
  begin_behind(find_beginning(ends), ends, 0);
}

/// Checks that the stream still has the message that was read at the position. If not, it was
/// recreated or the broker's files were restored, and it is read from the beginning. A server may
/// report another creation time for an edited stream, so the time alone proves nothing.
void Consumer::Worker::check_stream(const StreamEnds& ends) {
  const Standing& standing = reader_.standing();
  if (standing.position == 0) return;
  const bool is_of_another_time = standing.stream_made_at != ends.made_at;
  const bool has_read_nothing = standing.position == standing.began_after;
  if (has_read_nothing && !is_of_another_time && ends.last < standing.position) {
    return begin_behind(ends.last, ends, standing.known_through);
  }
  const auto stored =
      ends.last < standing.position ? std::nullopt : source_->time_of(standing.position);
  const bool is_unknown = standing.position_time == 0 && !is_of_another_time;
  const bool is_same = stored && (*stored == standing.position_time || is_unknown);
  const bool has_left = !stored && ends.last >= standing.position && !is_of_another_time;
  if (is_same || has_left) return;
  log(LogLevel::error,
      is_of_another_time ? "consumer.stream_made_again" : "consumer.stream_went_back",
      is_of_another_time
          ? "the stream was deleted and made again; the consumer reads it from the beginning, and "
            "handles none again whose event it knows"
          : "the stream has lost messages that the consumer had read, or has others in their "
            "place; it "
            "reads from the beginning, and handles none again whose event it knows");
  const std::uint64_t from = is_of_another_time ? 0 : std::min(standing.began_after, ends.last);
  begin_behind(from, ends, std::max(standing.known_through, standing.position));
}

void Consumer::Worker::begin_behind(std::uint64_t position, const StreamEnds& ends,
                                    std::uint64_t known_through) {
  const std::int64_t time = position > 0 ? source_->time_of(position).value_or(0) : 0;
  reader_.begin(ends, {.sequence = position, .time = time}, known_through);
}

/// The beginning for a reader that is new to the stream, or was moved by an operator.
std::uint64_t Consumer::Worker::find_beginning(const StreamEnds& ends) const {
  const Standing& standing = reader_.standing();
  if (standing.position > 0) return std::min(standing.position, ends.last);
  // A stream that was made later has nothing that was there when the consumer was made: a resize
  // makes such streams.
  const bool is_newer =
      std::chrono::nanoseconds{ends.made_at} > standing.consumer_made_at.time_since_epoch();
  return options_.start == ConsumerStart::now && !is_newer ? ends.last : 0;
}

void Consumer::Worker::note_broker_works() {
  const BrokerState before = std::exchange(tick_.broker, {BrokerState::connected}).state;
  if (before == BrokerState::down || before == BrokerState::misconfigured) {
    log(LogLevel::info, "consumer.broker_back", "the broker answers again");
  }
}

/// Logs the trouble unless it was the last one logged.
void Consumer::Worker::note_broker_trouble(const Error& trouble) {
  const bool is_new = std::exchange(broker_trouble_, trouble.what()) != trouble.what();
  const bool is_misconfigured = dynamic_cast<const Misconfigured*>(&trouble) != nullptr;
  tick_.broker = {is_misconfigured ? BrokerState::misconfigured : BrokerState::down,
                  broker_trouble_};
  if (!is_new) return;
  log(LogLevel::error, is_misconfigured ? "consumer.misconfigured" : "consumer.broker_down",
      broker_trouble_);
}

// --- standing still, and saying so

milliseconds Consumer::Worker::backoff_left() const {
  const auto left = reader_.standing().failing.pause_left(backoff(), reader_.now());
  return std::chrono::ceil<milliseconds>(left);
}

/// Counts again, because operators may have made room.
bool Consumer::Worker::is_full_of_parked() {
  if (parked_bytes_ >= options_.parked_bytes_limit) parked_bytes_ = reader_.count_parked_bytes();
  const bool is_full = parked_bytes_ >= options_.parked_bytes_limit;
  if (is_full == (standstill_ == "full")) return is_full;
  standstill_ = is_full ? "full" : "";
  const std::string why = "its parked messages have " + std::to_string(parked_bytes_) +
                          " bytes, more than parked_bytes_limit; retry or discard some with "
                          "'stela inbox'";
  reader_.note_standstill(0, is_full ? why : std::string{});
  if (is_full) log(LogLevel::error, "consumer.stopped", why);
  return is_full;
}

void Consumer::Worker::report() {
  const bool is_news = tick_.broker != reported_.broker || tick_.reader != reported_.reader;
  if (tick_ == ConsumerTick{} && !is_news) return;
  reported_ = take_tick();
  if (listener_) listener_(reported_);
}

/// Keeps the state of the broker and the reader.
ConsumerTick Consumer::Worker::take_tick() {
  MetricSink& metrics = *store_.conventions().metrics;
  const auto count = [&](std::string_view name, std::int64_t by) {
    if (by > 0) metrics.count(name, by, {{"consumer", options_.name}});
  };
  count("stela_consumer_handled_total", tick_.handled);
  count("stela_consumer_failures_total", tick_.failed);
  count("stela_consumer_parked_total", tick_.parked);
  count("stela_consumer_gaps_total", tick_.gaps);
  metrics.gauge("stela_consumer_broker_up", tick_.broker.is_connected() ? 1 : 0,
                {{"consumer", options_.name}});
  metrics.gauge("stela_consumer_parked_bytes", static_cast<double>(parked_bytes_),
                {{"consumer", options_.name}});
  const ConsumerTick kept{.broker = tick_.broker, .reader = tick_.reader};
  return std::exchange(tick_, kept);
}

void Consumer::Worker::log(LogLevel level, std::string_view name, const Delivery& delivery,
                           const std::string& problem) const {
  const std::string what =
      delivery.event ? delivery.event->as_stored().describe() : std::string{delivery.subject()};
  const std::array fields{
      LogEntry::Field{"consumer", options_.name}, LogEntry::Field{"stream", options_.stream},
      LogEntry::Field{"broker_sequence", std::to_string(delivery.place.sequence)},
      LogEntry::Field{"event", what}, LogEntry::Field{"problem", problem}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = what + ": " + problem, .fields = fields});
}

void Consumer::Worker::log(LogLevel level, std::string_view name, std::string_view problem) const {
  const std::array fields{LogEntry::Field{"consumer", options_.name},
                          LogEntry::Field{"stream", options_.stream},
                          LogEntry::Field{"problem", std::string{problem}}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = problem, .fields = fields});
}

}  // namespace stela::nats
