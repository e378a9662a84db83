// The tables of the documents that Stela descends from: a stream key of text, AUTOINCREMENT, an
// outbox row of seven columns that stays when it is published, under an index.
#pragma once

#include "measure.hpp"
#include "raw.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stela::bench {

/// Which index the outbox has: of what waits only, or of everything.
enum class SeedsIndex : unsigned char { waiting, full };

/// Appends to those tables, one transaction each; 200 bytes of payload, 100 of metadata.
/// Threads: one at a time.
class SeedsAppender {
 public:
  struct Options {
    RawOptions raw = {.checkpoint_pages = 1000};
    SeedsIndex index = SeedsIndex::waiting;
    std::size_t streams = 10'000;
  };

  /// Makes the database.
  SeedsAppender(const std::string& path, const Options& options);

  void append(std::size_t stream, std::size_t events);
  RawDatabase& database() noexcept { return database_; }

 private:
  static RawDatabase make(const std::string& path, const Options& options);

  RawDatabase database_;
  RawStatement begin_;
  RawStatement event_;
  RawStatement message_;
  RawStatement commit_;
  std::vector<std::string> streams_;
  std::vector<std::int64_t> versions_;
  std::string payload_ = std::string(200, 'p');
  std::string metadata_ = std::string(100, 'm');
  std::int64_t now_ = 1'795'000'000'000'000;
};

/// One operation: `events` to a stream at random.
class SeedsAppend final : public Subject {
 public:
  SeedsAppend(const std::string& path, const SeedsAppender::Options& options, std::size_t events)
      : appender_{path, options}, streams_{options.streams}, events_{events} {}

  void run() override { appender_.append(dice_.below(streams_), events_); }

 private:
  SeedsAppender appender_;
  std::size_t streams_;
  std::size_t events_;
  Dice dice_{3};
};

}  // namespace stela::bench
