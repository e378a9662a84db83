// Reads pending messages with their events.
#pragma once

#include "database/connection.hpp"
#include "database/event_page.hpp"
#include "database/event_reader.hpp"
#include "relay/outbox_port.hpp"
#include "tables/generations.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace stela::outbox {

/// The resources that a batch passes on to the next one: a reader with the names of streams, and
/// memory for events.
struct BatchMemory {
  static constexpr std::size_t max_pages = 8;

  std::unique_ptr<database::EventReader> reader;
  std::vector<std::int64_t> sequences;
  std::vector<std::unique_ptr<EventPage>> pages;
};

/// Messages with the events that they point to, which the batch owns.
class StoredBatch final : public relay::PendingBatch {
 public:
  explicit StoredBatch(std::shared_ptr<BatchMemory> memory) noexcept : memory_{std::move(memory)} {}
  ~StoredBatch() override;
  StoredBatch(const StoredBatch&) = delete;
  StoredBatch& operator=(const StoredBatch&) = delete;

  /// Adds the messages after `cursor` and before `end`, as many as `limit` allows.
  void read(database::Connection& connection, PartitionId partition, const relay::Cursor& cursor,
            std::int64_t end, const relay::BatchLimit& limit);
  /// Sets the generation that each message is published under. `all` are in order.
  void name_generations(std::span<const Generation> all);

 private:
  void rehydrate(database::Connection& connection, std::size_t again);
  void read_redeliveries(database::Connection& connection, PartitionId partition,
                         std::int64_t behind, int limit);
  void read_messages(database::Connection& connection, PartitionId partition, std::int64_t behind,
                     std::int64_t end, int limit);
  void read_events(database::Connection& connection, std::span<relay::PendingMessage> messages);
  void read_run(database::Connection& connection, std::span<relay::PendingMessage> run);
  /// False if there is no room for the event.
  bool take_row(database::Connection& connection, relay::PendingMessage& message,
                const database::EventRow& row);
  bool was_published(database::Connection& connection, std::int64_t stream,
                     StreamVersion version) const;
  /// False if it would exceed the limit together with the kept ones.
  bool keep(relay::PendingMessage& message, const StoredEvent& event);
  EventPage& add_page();

  struct Kept {
    relay::PendingMessage* message;
    std::size_t page;
    std::size_t index;
  };

  std::vector<std::unique_ptr<EventPage>> pages_;
  std::vector<Kept> kept_;
  std::shared_ptr<BatchMemory> memory_;
  bool anything_parked_ = false;
  /// Older events precede the outbox, and remained unpublished.
  std::int64_t first_published_ = 1;
  std::int64_t bytes_left_ = INT64_MAX;
  /// The first message over the limit.
  const relay::PendingMessage* cut_ = nullptr;
};

}  // namespace stela::outbox
