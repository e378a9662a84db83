#include "simulation/consumers/broker.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::sim {

using nats::Delivery;

bool lets_through(const std::string& filter, const StoredMessage& message) noexcept {
  return filter.empty() || message.sent.subject == filter;
}

std::optional<std::uint64_t> BrokerStream::find_last(const std::string& filter) const {
  for (auto at = messages.rbegin(); at != messages.rend(); ++at) {
    if (lets_through(filter, at->second)) return at->first;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> BrokerStream::find_next(const std::string& filter,
                                                     std::uint64_t position) const {
  for (auto at = messages.upper_bound(position); at != messages.end(); ++at) {
    if (lets_through(filter, at->second)) return at->first;
  }
  return std::nullopt;
}

Broker::Broker(Stage& stage) : stage_{stage} {
  // Its messages need it.
  nats::check(nats_Open(-1), "opening nats.c");
}

BrokerStream* Broker::find(const std::string& name) {
  const auto at = streams_.find(name);
  return at == streams_.end() ? nullptr : &at->second;
}

/// No two messages have the same.
std::int64_t Broker::time() noexcept {
  last_time_ = std::max(last_time_ + 1, (SimClock::start_of_wall + stage_.now()) * 1'000);
  return last_time_;
}

void Broker::publish(const std::string& name, SentMessage message) {
  const auto [at, is_new] = streams_.try_emplace(name);
  BrokerStream& stream = at->second;
  if (is_new) stream.made_at = time();
  const std::uint64_t sequence = stream.end++;
  stream.messages.emplace(
      sequence, StoredMessage{.sequence = sequence, .time = time(), .sent = std::move(message)});
}

void Broker::purge(BrokerStream& stream, std::uint64_t sequence) {
  stream.messages.erase(stream.messages.begin(), stream.messages.lower_bound(sequence));
  stream.first = std::max(stream.first, std::min(sequence, stream.end));
}

void Broker::erase(BrokerStream& stream, std::uint64_t sequence) {
  stream.messages.erase(sequence);
  if (sequence != stream.first) return;
  stream.first = stream.messages.empty() ? stream.end : stream.messages.begin()->first;
}

void Broker::lose_tail(BrokerStream& stream, std::size_t count) {
  for (; count > 0 && stream.end > stream.first; --count) {
    stream.messages.erase(--stream.end);
  }
  restart();
}

namespace {

constexpr Time silence = 2 * second;

class SimSource final : public nats::MessageSource {
 public:
  SimSource(Broker& broker, Chance& chance, Waiter& waiter, const nats::ConsumerOptions& options)
      : broker_{broker},
        chance_{chance},
        waiter_{waiter},
        options_{options},
        incarnation_{broker.incarnation} {
    look();
  }

  nats::StreamEnds look() override {
    ask();
    const BrokerStream& stream = require_stream();
    return {.made_at = stream.made_at, .first = stream.first, .last = stream.last()};
  }

  std::optional<std::int64_t> time_of(std::uint64_t sequence) override {
    ask();
    const BrokerStream& stream = require_stream();
    const auto at = stream.messages.find(sequence);
    if (at == stream.messages.end()) return std::nullopt;
    return at->second.time;
  }

  std::uint64_t last_of(const std::string& name) override {
    ask();
    const BrokerStream* const stream = broker_.find(name);
    return stream == nullptr ? 0 : stream->last();
  }

  std::optional<std::uint64_t> next_after(const std::string& name, const std::string& filter,
                                          std::uint64_t position) override {
    ask();
    const BrokerStream* const stream = broker_.find(name);
    return stream == nullptr ? std::nullopt : stream->find_next(filter, position);
  }

  void stand_at(std::uint64_t position) override {
    // Whether the stream is still that one is seen when it is asked.
    if (reads_ != 0 && position_ == position) return;
    ask();
    reads_ = require_stream().made_at;
    position_ = position;
  }

  std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait) override {
    ask();
    if (reads_ != require_stream().made_at || chance_.happens(broker_.faults.forget)) {
      reads_ = 0;
      throw nats::SourceForgotten{};
    }
    if (!has_next()) waiter_.wait(micros(wait));
    fail_if_cut();
    std::vector<Delivery> found = take(limit);
    if (!found.empty() && chance_.happens(broker_.faults.break_off)) cut();
    return found;
  }

  void fail_if_denied() const override {}

 private:
  bool has_next() {
    const auto last = require_stream().find_last(options_.filter_subject);
    return last && *last > position_;
  }

  std::vector<Delivery> take(int limit) {
    const BrokerStream& stream = require_stream();
    std::vector<Delivery> found;
    if (reads_ != stream.made_at) return found;
    const auto most = chance_.between(1, limit);
    for (auto at = stream.messages.upper_bound(position_);
         at != stream.messages.end() && std::ssize(found) < most; ++at) {
      if (!lets_through(options_.filter_subject, at->second)) continue;
      if (chance_.happens(broker_.faults.hole)) {
        is_cut_ = true;
        // What came before the hole is there.
        if (!found.empty()) return found;
        throw BrokerFailed{"a message got lost on its way"};
      }
      found.push_back(deliver(at->second));
      position_ = at->first;
    }
    return found;
  }

  Delivery deliver(const StoredMessage& stored) const {
    natsMsg* raw = nullptr;
    nats::check(
        natsMsg_Create(&raw, stored.sent.subject.c_str(), nullptr, stored.sent.payload.data(),
                       static_cast<int>(stored.sent.payload.size())),
        "making a message");
    nats::MessageHandle message{raw};
    for (const auto& [name, value] : stored.sent.headers) {
      nats::check(natsMsgHeader_Set(raw, name.c_str(), value.c_str()), "setting a header");
    }
    return nats::deliver(
        std::move(message),
        {.stream = options_.stream, .sequence = stored.sequence, .time = stored.time});
  }

  /// What every question takes.
  void ask() {
    fail_if_cut();
    waiter_.wait(chance_.between(0, broker_.faults.round_trip));
    fail_if_cut();
    if (!chance_.happens(broker_.faults.silence)) return;
    waiter_.wait(silence);
    throw nats::BrokerSilent{"the broker says nothing"};
  }

  void cut() { is_cut_ = true; }
  void fail_if_cut() {
    const bool is_over = is_cut_ || broker_.faults.is_down || incarnation_ != broker_.incarnation;
    if (is_over) throw BrokerFailed{"the connection is closed"};
  }

  BrokerStream& require_stream() {
    BrokerStream* const stream = broker_.find(options_.stream);
    if (stream == nullptr) throw BrokerFailed{"there is no stream '" + options_.stream + "'"};
    return *stream;
  }

  Broker& broker_;
  Chance& chance_;
  Waiter& waiter_;
  const nats::ConsumerOptions options_;
  const std::uint64_t incarnation_;
  bool is_cut_ = false;
  /// The stream that it reads, by the time of its making.
  std::int64_t reads_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<nats::MessageSource> connect(Broker& broker, Chance& chance, Waiter& waiter,
                                             const nats::ConsumerOptions& options) {
  return std::make_unique<SimSource>(broker, chance, waiter, options);
}

}  // namespace stela::sim
