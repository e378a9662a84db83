#include "tables/pending_batch.hpp"

#include "outbox_sql/partitions.hpp"
#include "outbox_sql/pending.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace stela::outbox {

using database::Connection;
using relay::PendingMessage;

namespace {

/// Reads a row with the columns of a pending message.
template <class Row>
PendingMessage read_message(const Row& row) {
  return {.sequence = GlobalSequence{row.sequence()},
          .stream = row.stream(),
          .attempts = static_cast<int>(row.attempts())};
}

}  // namespace

void StoredBatch::read(Connection& connection, PartitionId partition, const relay::Cursor& cursor,
                       std::int64_t end, const relay::BatchLimit& limit) {
  {
    auto parked = connection.rows(sql::has_parked{});
    parked.step();
    anything_parked_ = parked.is_there();
  }
  bytes_left_ = limit.bytes;
  read_redeliveries(connection, partition, cursor.redelivery, limit.messages);
  const std::size_t again = messages.size();
  const int left = limit.messages - static_cast<int>(again);
  if (left > 0) read_messages(connection, partition, cursor.sequence.value(), end, left);
  rehydrate(connection, again);
}

void StoredBatch::name_generations(std::span<const Generation> all) {
  for (PendingMessage& message : messages) {
    const std::int64_t number = message.generation.number;
    for (const Generation& generation : all) {
      const bool is_later = message.redelivery > 0
                                ? generation.number > number
                                : generation.first_sequence > message.sequence.value();
      if (is_later) break;
      message.generation = {generation.number, GlobalSequence{generation.first_sequence}};
    }
  }
}

void StoredBatch::rehydrate(Connection& connection, std::size_t again) {
  {
    auto first = connection.rows(sql::first_published{});
    first.step();
    first_published_ = first.sequence();
  }
  const std::span all{messages};
  kept_.reserve(all.size());
  for (PendingMessage& message : all.first(again)) read_events(connection, {&message, 1});
  read_events(connection, all.subspan(again));
  if (cut_ != nullptr) messages.erase(messages.begin() + (cut_ - messages.data()), messages.end());
  // A page's events move while it grows, so pointers are taken only now.
  for (const Kept& kept : kept_) kept.message->event = &pages_[kept.page]->events()[kept.index];
  for (PendingMessage& message : messages) {
    if (message.event != nullptr || !message.problem.empty()) continue;
    message.problem = "event " + std::to_string(message.sequence.value()) + " doesn't exist";
  }
}

void StoredBatch::read_redeliveries(Connection& connection, PartitionId partition,
                                    std::int64_t behind, int limit) {
  auto row = connection.rows(
      sql::next_redeliveries{.partition = partition.number, .after = behind, .limit = limit});
  while (row.step()) {
    messages.push_back({.sequence = GlobalSequence{row.sequence()},
                        .stream = row.stream(),
                        .redelivery = row.redelivery(),
                        .generation = {.number = row.generation()},
                        .attempts = static_cast<int>(row.attempts()),
                        .is_behind_parked = row.is_behind_parked(),
                        .is_republished = row.kind() == "republish",
                        .was_lost = row.was_lost()});
  }
}

void StoredBatch::read_messages(Connection& connection, PartitionId partition, std::int64_t behind,
                                std::int64_t end, int limit) {
  messages.reserve(messages.size() + static_cast<std::size_t>(limit));
  if (!anything_parked_) {
    auto row = connection.rows(sql::next_messages{
        .partition = partition.number, .after = behind, .before = end, .limit = limit});
    while (row.step()) messages.push_back(read_message(row));
    return;
  }
  auto row = connection.rows(sql::next_messages_beside_parked{
      .partition = partition.number, .after = behind, .before = end, .limit = limit});
  while (row.step()) {
    messages.push_back(read_message(row));
    messages.back().is_behind_parked = row.is_behind_parked();
  }
}

void StoredBatch::read_events(Connection& connection, std::span<PendingMessage> wanted) {
  const std::int64_t widest_gap = memory_->reader->widest_gap();
  while (!wanted.empty() && cut_ == nullptr) {
    std::size_t count = 1;
    while (count < wanted.size() &&
           wanted[count].sequence.value() - wanted[count - 1].sequence.value() <= widest_gap) {
      ++count;
    }
    read_run(connection, wanted.first(count));
    wanted = wanted.subspan(count);
  }
}

void StoredBatch::read_run(Connection& connection, std::span<PendingMessage> run) {
  std::vector<std::int64_t>& sequences = memory_->sequences;
  sequences.clear();
  for (const PendingMessage& message : run) sequences.push_back(message.sequence.value());
  PendingMessage* next = run.data();
  memory_->reader->read(connection, sequences, [&](const database::EventRow& row) {
    while (next->sequence.value() < row.sequence) ++next;
    if (take_row(connection, *next, row)) return true;
    cut_ = next;
    return false;
  });
}

bool StoredBatch::take_row(Connection& connection, PendingMessage& message,
                           const database::EventRow& row) {
  if (row.event == nullptr) {
    message.problem = row.problem;
    return true;
  }
  StoredEvent event = *row.event;
  if (!was_published(connection, row.stream, event.published_before)) event.published_before = {};
  return keep(message, event);
}

bool StoredBatch::was_published(Connection& connection, std::int64_t stream,
                                StreamVersion version) const {
  if (first_published_ <= 1 || version.value() == 0) return true;
  auto row = connection.rows(sql::is_published{
      .stream = stream, .version = version.value(), .first_published = first_published_});
  row.step();
  return row.is_published();
}

bool StoredBatch::keep(PendingMessage& message, const StoredEvent& event) {
  bytes_left_ -= static_cast<std::int64_t>(event.payload.size());
  if (bytes_left_ < 0 && !kept_.empty()) return false;
  if (pages_.empty()) add_page();
  if (!pages_.back()->add(event)) add_page().add(event);
  kept_.push_back({&message, pages_.size() - 1, pages_.back()->events().size() - 1});
  return true;
}

EventPage& StoredBatch::add_page() {
  if (memory_->pages.empty()) {
    pages_.push_back(std::make_unique<EventPage>());
    pages_.back()->grow();
  } else {
    pages_.push_back(std::move(memory_->pages.back()));
    memory_->pages.pop_back();
  }
  return *pages_.back();
}

StoredBatch::~StoredBatch() {
  for (auto& page : pages_) {
    if (memory_->pages.size() == BatchMemory::max_pages) return;
    page->clear();
    memory_->pages.push_back(std::move(page));
  }
}

}  // namespace stela::outbox
