#include "simulation/consumers/director.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/inbox.hpp>

#include <iterator>

namespace stela::sim {
namespace {

constexpr Time faulty_time = 4 * minute;
/// Without a position that moves.
constexpr Time longest_rest = 10 * minute;

Store open_store(const Town& town) {
  return sqlite::open(town.file(),
                      {.durability = sqlite::Durability::relaxed, .clock = &town.clock});
}

void retry(nats::InboxOperations& inbox, std::int64_t parked) try {
  inbox.retry(parked);
} catch (const UsageError&) {
  // It waits behind another one.
}

}  // namespace

// --- who writes

void Author::live() {
  while (!town_.is_over) {
    if (!town_.is_healed) write();
    for (auto left = town_.chance.between(1, 6); left > 0; --left) writer_.publish_one();
    town_.stage.wait(town_.chance.below(town_.is_healed ? 300 * ms : 2 * second));
  }
}

void Author::write() {
  Chance& chance = town_.chance;
  for (auto left = chance.between(0, 4); left > 0; --left) {
    const bool is_new = town_.newest_schema > 1 && chance.happens(0.1);
    writer_.append(static_cast<int>(chance.below(writer_.streams())), is_new ? 2 : 1);
    give_mood(town_.events.back());
  }
}

void Author::give_mood(const WrittenEvent& event) {
  Chance& chance = town_.chance;
  if (!chance.happens(town_.trouble)) return;
  Mood& mood = town_.moods[event.id.to_string()];
  switch (chance.below(6)) {
    case 0:
      mood.failures = 1'000'000;
      return;
    case 1:
      mood.is_permanent = true;
      return;
    case 2:
      mood.deaths = static_cast<int>(chance.between(1, 2 * max_attempts + 1));
      return;
    case 3:
      mood.shortages = static_cast<int>(chance.between(1, 2 * max_attempts));
      return;
    default:
      mood.failures = static_cast<int>(chance.between(1, 3));
  }
}

// --- who operates

void Clerk::live() {
  while (!town_.is_healed && !town_.is_over) {
    town_.stage.wait(town_.chance.between(second, 20 * second));
    if (town_.is_healed || town_.is_over) return;
    try {
      work();
    } catch (const UsageError&) {
      // It waits behind another one, or is done meanwhile.
    }
  }
}

void Clerk::work() {
  Chance& chance = town_.chance;
  const auto what = chance.below(6);
  if (what == 0) return move_back();
  if (what > 1) return answer_parked();
  Store store = open_store(town_);
  nats::InboxOperations inbox{store};
  town_.meet("consumers that are paused");
  inbox.pause(consumer_name);
  town_.note("the consumer is paused");
  town_.stage.wait(chance.below(30 * second));
  inbox.resume(consumer_name);
}

void Clerk::answer_parked() {
  Store store = open_store(town_);
  nats::InboxOperations inbox{store};
  const auto parked = inbox.parked();
  if (parked.empty()) return;
  const auto which = town_.chance.below(std::ssize(parked));
  const nats::ParkedMessage& message = parked[static_cast<std::size_t>(which)];
  const std::string number = std::to_string(message.number);
  if (!town_.chance.happens(0.3)) {
    town_.note("an operator retries parked message " + number);
    town_.audit->note_retry(message.number);
    return inbox.retry(message.number);
  }
  town_.note("an operator discards parked message " + number);
  town_.audit->note_retry(message.number);
  town_.audit->note_discard(message.number);
  inbox.discard(message.number);
}

void Clerk::move_back() {
  Store store = open_store(town_);
  nats::InboxOperations inbox{store};
  for (const nats::ConsumerStatus& consumer : inbox.status()) {
    for (const nats::ReaderStatus& reader : consumer.readers) {
      if (reader.position == 0 || town_.start == nats::ConsumerStart::now) continue;
      // Positions of a stream that is gone say nothing.
      if (!town_.audit->knows_stream(reader.broker_stream)) continue;
      const auto to = town_.chance.below(static_cast<std::int64_t>(reader.position) + 1);
      town_.meet("readers that are moved back");
      town_.note("an operator moves " + reader.broker_stream + " to " + std::to_string(to));
      town_.audit->note_move();
      return inbox.move(consumer_name, reader.broker_stream, static_cast<std::uint64_t>(to));
    }
  }
}

// --- what goes wrong

void Director::live() {
  town_.stage.wait(town_.opens_at + 5 * second);
  while (town_.stage.now() < faulty_time && town_.audit->contradiction().empty()) {
    town_.stage.wait(town_.chance.between(second, 10 * second));
    undo_what_is_due();
    strike();
  }
  heal();
  if (town_.audit->contradiction().empty()) end();
  town_.is_over = true;
  for (auto& process : processes_) process->ask_to_leave();
}

void Director::strike() {
  switch (town_.chance.below(6)) {
    case 0:
      return leave();
    case 1:
      if (town_.chance.happens(0.3)) town_.newest_schema = 2;
      return;
    case 2:
      if (town_.cuts_lines) strike_line();
      return;
    case 3:
      if (town_.breaks_streams) strike_stream();
      return;
    case 4:
      if (town_.has_relay_trouble) strike_relay();
      return;
    default:
      strike_store();
  }
}

void Director::leave() {
  town_.meet("processes that are asked to leave");
  const auto which = town_.chance.below(std::ssize(processes_));
  processes_[static_cast<std::size_t>(which)]->ask_to_leave();
}

void Director::strike_line() {
  Chance& chance = town_.chance;
  BrokerFaults& faults = town_.broker.faults;
  const Time length = chance.below(30 * second);
  town_.note("the line is bad");
  switch (chance.below(7)) {
    case 0:
      faults.is_down = true;
      return later(length, [&faults] { faults.is_down = false; });
    case 1:
      faults.silence = 0.1;
      return later(length, [&faults] { faults.silence = 0; });
    case 2:
      faults.break_off = 0.2;
      return later(length, [&faults] { faults.break_off = 0; });
    case 3:
      faults.hole = 0.1;
      return later(length, [&faults] { faults.hole = 0; });
    case 4:
      faults.forget = 0.2;
      return later(length, [&faults] { faults.forget = 0; });
    case 5:
      faults.round_trip = 3 * second;
      return later(length, [&faults] { faults.round_trip = ms; });
    default:
      town_.broker.restart();
  }
}

void Director::strike_stream() {
  Chance& chance = town_.chance;
  std::vector<std::string> names;
  for (const auto& [name, stream] : town_.broker.streams()) names.push_back(name);
  if (names.empty()) return;
  const std::string& name = names[static_cast<std::size_t>(chance.below(std::ssize(names)))];
  BrokerStream& stream = *town_.broker.find(name);
  if (stream.messages.empty()) return;
  const std::uint64_t last = stream.last();
  const auto count = static_cast<std::uint64_t>(std::ssize(stream.messages));
  const auto near_end = last - static_cast<std::uint64_t>(chance.below(
                                   static_cast<std::int64_t>(std::min<std::uint64_t>(count, 20))));
  const auto tell = [&](std::string_view what) {
    town_.meet(what);
    town_.note(name + ": " + std::string{what});
  };
  switch (chance.below(5)) {
    case 0:
      tell("streams that are emptied");
      return town_.broker.purge(stream, last + 1);
    case 1:
      tell("streams that are purged at the front");
      return town_.broker.purge(stream, near_end);
    case 2:
      tell("messages that are deleted");
      return town_.broker.erase(stream, near_end);
    case 3:
      tell("streams that are made again");
      return town_.broker.make_again(stream);
    default:
      tell("streams that lose their end");
      town_.broker.lose_tail(stream, static_cast<std::size_t>(chance.between(1, 5)));
  }
}

void Director::strike_relay() {
  Chance& chance = town_.chance;
  Writer& writer = any_writer();
  const int stream = static_cast<int>(chance.below(writer.streams()));
  switch (chance.below(5)) {
    case 0:
      town_.meet("messages that a relay parks");
      writer.park(stream);
      return later(chance.below(30 * second), [&writer, stream] { writer.retry(stream); });
    case 1:
      return writer.discard_first(stream);
    case 2:
      town_.meet("copies that a relay was asked for");
      return writer.republish(
          static_cast<std::size_t>(chance.below(static_cast<std::int64_t>(writer.published()))),
          static_cast<std::size_t>(chance.between(1, 10)));
    case 3:
      return writer.republish_lost(town_.audit->lost());
    default:
      if (writer.is_fenced()) return;
      town_.meet("copies of a relay without a fence");
      writer.repeat(static_cast<std::size_t>(chance.between(1, 5)));
  }
}

void Director::strike_store() {
  Chance& chance = town_.chance;
  Writer& writer = any_writer();
  if (town_.resizes) {
    town_.meet("resizes");
    town_.note("a resize");
    return writer.resize(chance.happens(0.5) ? 2 : 1);
  }
  if (town_.restores && writer.is_fenced()) {
    if (writer.has_backup() && chance.happens(0.5)) {
      town_.meet("stores that are restored");
      town_.note("a store is restored");
      town_.audit->note_restore();
      return writer.restore();
    }
    if (!writer.has_backup() && !writer.has_pending() && !writer.has_parked()) {
      return writer.back_up();
    }
  }
  const auto& streams = town_.broker.streams();
  if (!streams.empty() && chance.happens(0.3)) {
    town_.broker.publish(streams.begin()->first, {.subject = "things.foreign", .payload = "{}"});
  }
}

Writer& Director::any_writer() {
  const auto which = town_.chance.below(std::ssize(town_.writers));
  return *town_.writers[static_cast<std::size_t>(which)];
}

void Director::later(Time delay, std::function<void()> undo) {
  undo_.emplace_back(town_.stage.now() + delay, std::move(undo));
}

void Director::undo_what_is_due() {
  for (auto& [time, undo] : undo_) {
    if (time <= town_.stage.now()) std::exchange(undo, [] {})();
  }
}

// --- the end

void Director::heal() {
  town_.note("everything heals");
  town_.is_healed = true;
  town_.kill = town_.pause = town_.trouble = town_.busy = 0;
  town_.broker.faults = {};
  for (auto& writer : town_.writers) {
    for (int stream = 0; stream < writer->streams(); ++stream) writer->retry(stream);
  }
}

void Director::end() {
  if (!rest()) return;
  // Nothing fails any more, and every program knows every version.
  town_.moods.clear();
  town_.newest_schema = 2;
  for (auto& process : processes_) process->ask_to_leave();
  // What is missing is seen by what comes behind it.
  for (auto& writer : town_.writers) {
    for (int stream = 0; stream < writer->streams(); ++stream) writer->append(stream, 1);
  }
  if (!rest() || !retry_all()) return;
  town_.audit->judge();
}

bool Director::is_at_rest() const {
  for (const auto& writer : town_.writers) {
    if (writer->has_pending()) return false;
  }
  return town_.audit->is_done();
}

bool Director::rest() {
  std::int64_t moves = -1;
  Time until = 0;
  while (!is_at_rest()) {
    if (std::exchange(moves, town_.audit->moves()) != town_.audit->moves()) {
      until = town_.stage.now() + longest_rest;
    }
    if (town_.stage.now() > until) {
      town_.audit->contradict("it comes to no rest, though nothing goes wrong any more");
    }
    if (!town_.audit->contradiction().empty()) return false;
    town_.stage.wait(2 * second);
  }
  return true;
}

bool Director::retry_all() {
  Store store = open_store(town_);
  nats::InboxOperations inbox{store};
  const Time until = town_.stage.now() + longest_rest;
  while (town_.audit->parked() > 0) {
    if (town_.stage.now() > until) {
      town_.audit->contradict("a parked message isn't handled, though an operator retries it");
    }
    if (!town_.audit->contradiction().empty()) return false;
    for (const nats::ParkedMessage& parked : inbox.parked({.limit = 1'000})) {
      if (town_.audit->is_foreign(parked.number))
        inbox.discard(parked.number);
      else if (!parked.is_to_retry)
        retry(inbox, parked.number);
    }
    town_.stage.wait(5 * second);
  }
  return true;
}

}  // namespace stela::sim
