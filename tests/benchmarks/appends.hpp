// The ways of appending that several groups of figures compare.
#pragma once

#include "measure.hpp"
#include "raw_events.hpp"
#include "shop.hpp"

#include <stela/outbox.hpp>

#include <string>
#include <vector>

namespace stela::bench {

/// An open store of baskets with its outbox.
struct Shop {
  explicit Shop(const std::string& path, sqlite::Durability durability)
      : store{sqlite::open(path, {.durability = durability})}, outbox{store} {}

  Store store;
  Outbox outbox;
};

/// What is appended at a time, and to which streams.
struct Load {
  const Samples& samples;
  std::size_t streams = 10'000;
  std::size_t events = 1;
  /// The streams begin at this number: threads that append side by side have streams of their own.
  std::size_t first_stream = 0;
};

/// Which stream, and which samples, come next: the same for every subject of one load.
class Picks {
 public:
  explicit Picks(const Load& load) noexcept
      : streams_{load.streams}, dice_{load.first_stream + 1} {}

  std::size_t stream() noexcept { return dice_.below(streams_); }
  std::size_t sample() noexcept { return dice_.next() >> 8; }

 private:
  std::size_t streams_;
  Dice dice_;
};

/// What a user does: a typed aggregate that has recorded events is saved.
class SaveBasket final : public Subject {
 public:
  SaveBasket(EventStore& store, const Load& load)
      : repository_{store}, samples_{load.samples}, events_{load.events}, picks_{load} {
    for (std::size_t i = 0; i < load.streams; ++i) {
      baskets_.push_back(repository_.load(basket_id(load.first_stream + i)));
    }
  }

  void prepare() override {
    basket_ = &baskets_[picks_.stream()];
    const std::size_t first = picks_.sample();
    for (std::size_t i = 0; i < events_; ++i) {
      samples_.record((first + i) % samples_.size(), *basket_);
    }
  }
  void run() override { repository_.save(*basket_); }

 private:
  Repository<Basket> repository_;
  const Samples& samples_;
  std::size_t events_;
  Picks picks_;
  std::vector<Basket> baskets_;
  Basket* basket_ = nullptr;
};

/// What the store takes: encoded events, with the version that their stream is expected at.
class StoreAppend final : public Subject {
 public:
  StoreAppend(EventStore& store, const Load& load)
      : store_{store}, samples_{load.samples}, events_{load.events}, picks_{load} {
    for (std::size_t i = 0; i < load.streams; ++i) {
      streams_.push_back(basket_id(load.first_stream + i).stream());
      StreamVersion version;
      for (const StoredEvent& event :
           store.read_stream(streams_.back(), {.direction = Direction::backward, .limit = 1})) {
        version = event.version;
      }
      versions_.push_back(version);
    }
  }

  void prepare() override {
    stream_ = picks_.stream();
    chosen_ = samples_.some(picks_.sample(), events_);
  }
  void run() override {
    const StreamAppend append{streams_[stream_], ExpectedVersion::exactly(versions_[stream_]),
                              chosen_};
    versions_[stream_] = store_.append({.streams = {&append, 1}}).versions.front();
  }

 private:
  EventStore& store_;
  const Samples& samples_;
  std::size_t events_;
  Picks picks_;
  std::vector<StreamId> streams_;
  std::vector<StreamVersion> versions_;
  std::size_t stream_ = 0;
  std::span<const NewEvent> chosen_;
};

/// The same by bare statements.
class RawAppend final : public Subject {
 public:
  RawAppend(RawAppender& appender, const Load& load)
      : appender_{appender},
        samples_{load.samples},
        events_{load.events},
        first_stream_{load.first_stream},
        picks_{load} {}

  void prepare() override {
    stream_ = first_stream_ + picks_.stream();
    chosen_ = samples_.some(picks_.sample(), events_);
  }
  void run() override { appender_.append(stream_, chosen_); }

 private:
  RawAppender& appender_;
  const Samples& samples_;
  std::size_t events_;
  std::size_t first_stream_;
  Picks picks_;
  std::size_t stream_ = 0;
  std::span<const NewEvent> chosen_;
};

}  // namespace stela::bench
