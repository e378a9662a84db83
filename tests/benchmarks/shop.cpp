#include "shop.hpp"

#include "raw.hpp"
#include "raw_events.hpp"

#include <stela/outbox.hpp>

#include <algorithm>
#include <optional>
#include <span>

namespace stela::bench {
namespace {

constexpr std::size_t sample_count = 1024;

std::string text_of(Dice& dice, std::size_t size) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz 0123456789";
  std::string text;
  while (text.size() < size) text += letters[dice.below(letters.size())];
  return text;
}

std::string uuid_of(Dice& dice) {
  std::string text = text_of(dice, 36);
  for (char& c : text) c = "0123456789abcdef"[static_cast<unsigned char>(c) % 16];
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text[dash] = '-';
  return text;
}

}  // namespace

Samples::Samples(Codec codec) {
  Dice dice{7};
  for (std::size_t i = 0; i < sample_count; ++i) {
    const auto quantity = static_cast<std::int64_t>(1 + dice.below(9));
    const auto cents = static_cast<std::int64_t>(100 + dice.below(100'000));
    std::string bytes;
    if (drops(i)) {
      dropped_.push_back(
          {uuid_of(dice), text_of(dice, 12), quantity, cents, "EUR", text_of(dice, 50)});
      codec::encode(codec, dropped_.back(), bytes);
    } else {
      const bool gift = dice.below(8) == 0;
      added_.push_back(
          {uuid_of(dice), text_of(dice, 12), quantity, cents, "EUR", gift, text_of(dice, 50)});
      codec::encode(codec, added_.back(), bytes);
    }
    encoded_.push_back(std::move(bytes));
  }
  for (std::size_t i = 0; i < sample_count; ++i) {
    const EventType& type = drops(i) ? LineDropped::event_type : LineAdded::event_type;
    events_.push_back({type.name, type.version, true, encoded_[i]});
  }
}

void Samples::record(std::size_t i, Basket& basket) const {
  // Of each four, three were added.
  if (drops(i)) {
    basket.drop(dropped_[i / 4]);
  } else {
    basket.add(added_[i - i / 4]);
  }
}

Context sample_context() {
  return {.correlation_id = "0190c5e2-7a1b-7c3d-8e4f-5a6b7c8d9e0f",
          .actor = "web",
          .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
          .headers = {{"tenant", "north"}}};
}

Id<Basket> basket_id(std::size_t number) {
  // As long as a UUID, and the same in every run.
  Dice dice{number};
  return Id<Basket>::from(uuid_of(dice));
}

namespace {

/// Appends `options.events_each` events to each stream, many streams at once.
void fill(EventStore& store, const ShopOptions& options) {
  constexpr std::size_t streams_at_once = 500;
  const Samples samples{options.codec};
  const std::size_t turns = options.interleaved ? options.events_each : 1;
  const std::size_t events_at_once = options.events_each / turns;
  std::vector<StreamId> streams;
  for (std::size_t i = 0; i < options.streams; ++i) streams.push_back(basket_id(i).stream());

  std::vector<StreamAppend> appends;
  std::size_t next = 0;
  const auto flush = [&] {
    store.append({.streams = appends});
    appends.clear();
  };
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (const StreamId& stream : streams) {
      appends.push_back({stream, ExpectedVersion::any(), samples.some(next, events_at_once)});
      next += events_at_once;
      if (appends.size() == streams_at_once) flush();
    }
    flush();
  }
}

}  // namespace

void make_shop(const std::string& path, const ShopOptions& options) {
  {
    auto store = sqlite::open(path, {.durability = options.durability, .codec = options.codec});
    std::optional<Outbox> outbox;
    if (options.outbox)
      outbox.emplace(store,
                     OutboxOptions{.partition_count = options.partitions, .fence = options.fence});
    const ContextScope scope{sample_context()};
    fill(store, options);
  }
  RawDatabase database{path, {}};
  if (options.outbox && options.published) mark_all_published(database);
  database.truncate_log();
}

}  // namespace stela::bench
