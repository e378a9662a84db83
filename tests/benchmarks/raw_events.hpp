// Stela's own tables, written and read by bare statements: the baseline of most figures.
#pragma once

#include "measure.hpp"
#include "raw.hpp"
#include "shop.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

/// Notes everything in the outbox as published.
void mark_all_published(RawDatabase& database);

/// A tag of an event, as the tables have it.
struct RawTag {
  explicit RawTag(std::string name);

  std::string name;
  /// What the index knows it by.
  std::int64_t hash;
};

/// Appends to the baskets of a database that make_shop made: the same rows with the same bytes as
/// Stela writes, one transaction each, all that doesn't change bound once.
/// Threads: one at a time.
class RawAppender {
 public:
  RawAppender(const std::string& path, const RawOptions& options, std::size_t streams);

  /// Appends the events to stream `number` (from 0), with a pointer for each, and each of them with
  /// the tags.
  void append(std::size_t number, std::span<const NewEvent> events,
              std::span<const RawTag* const> tags = {});

 private:
  void insert_tags(std::span<const RawTag* const> tags, std::int64_t kind);

  struct Head {
    std::int64_t stream = 0;
    std::int64_t version = 0;
  };

  RawDatabase database_;
  RawStatement begin_;
  RawStatement event_;
  RawStatement message_;
  RawStatement event_tags_;
  RawStatement tag_;
  RawStatement commit_;
  std::vector<Head> heads_;
  std::vector<std::int64_t> kinds_;
  std::string correlation_;
  std::string metadata_;
  std::string joined_tags_;
  std::array<char, 16> event_id_{};
  Dice dice_{11};
  std::int64_t sequence_ = 0;
};

/// Reads the events of one stream, or all of them: the columns that a decoder needs.
/// Threads: one at a time.
class RawReader {
 public:
  explicit RawReader(const std::string& path);

  /// Calls `f(kind, payload)` for each event of the stream.
  template <class F>
  void read_stream(std::string_view name, F&& f) {
    stream_.bind_text(1, name);
    while (stream_.step()) f(stream_.integer(0), stream_.bytes(1));
    stream_.reset();
  }

  /// Calls `f(kind, payload)` for each event of the store.
  template <class F>
  void read_all(F&& f) {
    while (all_.step()) f(all_.integer(0), all_.bytes(1));
    all_.reset();
  }

  /// The number that LineAdded has as a kind.
  std::int64_t added_kind() const noexcept { return added_kind_; }

 private:
  RawDatabase database_;
  RawStatement stream_;
  RawStatement all_;
  std::int64_t added_kind_;
};

}  // namespace stela::bench
