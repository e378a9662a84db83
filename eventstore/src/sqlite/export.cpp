#include "event_lines.hpp"
#include "sqlite/core.hpp"
#include "sqlite/event_rows.hpp"
#include "sqlite/kind_blocks.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::sqlite {
namespace {

constexpr std::size_t write_bytes = std::size_t{256} * 1024;

void check(const std::ostream& out) {
  if (!out) throw StoreFailed{"writing the export failed: is there space, and may it be written?"};
}

void write(std::ostream& out, std::string& text) {
  check(out.write(text.data(), static_cast<std::streamsize>(text.size())));
  text.clear();
}

constexpr std::string_view missing = "it's missing";

/// Of those that the blocks of kinds reach to, which is at most a block further than the events.
std::int64_t last_sequence_of_blocks(Connection& connection) {
  const std::int64_t block = connection.integer("SELECT max(block) FROM kind_blocks").value_or(-1);
  return (block + 1) * block_size - 1;
}

/// Reads events by their sequences: where that fails for many, it is tried for each.
class Salvage {
 public:
  Salvage(Store& store, std::ostream& out, FunctionRef<void(const Unreadable&)> report,
          const SalvageOptions& options)
      : store_{store},
        out_{out},
        report_{report},
        options_{options},
        next_{std::max<std::int64_t>(options.from.value(), 1)},
        end_{std::min(options.to.value(), find_last()) + 1} {}

  SalvageResult run() {
    append_header(text_, store_.conventions().codec);
    while (next_ < end_) {
      if (options_.stop.stop_requested()) {
        result_.finished = false;
        break;
      }
      read(std::min(next_ + step, end_));
      pass_over_missing();
      if (options_.progress) options_.progress({"export", next_ - 1, end_ - 1});
    }
    tell();
    write(out_, text_);
    check(out_.flush());
    return result_;
  }

 private:
  static constexpr std::int64_t step = 1024;

  /// The last event that the table or its index knows of, or nearly, if neither can be read.
  std::int64_t find_last() {
    std::int64_t last = -1;
    const auto look = [&](std::int64_t (*find)(Connection&)) {
      try {
        core_of(store_).reading().read([&](Connection& connection) {
          // The largest sequence can't be one: nothing could be after it.
          last = std::max(last, std::min(find(connection), GlobalSequence::max().value() - 1));
        });
      } catch (const Error& e) {
        if (e.is_retryable()) throw;
      }
    };
    look(last_sequence);
    look(last_indexed_sequence);
    if (last < 0) look(last_sequence_of_blocks);
    return last;
  }

  /// All before `end`.
  void read(std::int64_t end) {
    const auto error = read_pages(end);
    if (!error) return lose(end, std::string{missing});
    if (end == next_ + 1) return lose(end, *error);
    while (next_ < end) read(next_ + 1);
  }

  /// As far as it goes, and why it goes no further.
  std::optional<std::string> read_pages(std::int64_t end) {
    std::vector<GlobalSequence> wanted;
    for (std::int64_t i = next_; i < end; ++i) wanted.emplace_back(i);
    EventRange range = store_.read_at(wanted);
    for (;;) {
      std::span<const StoredEvent> page;
      try {
        page = range.next_page();
      } catch (const CorruptRow& e) {
        return e.problem();
      } catch (const Error& e) {
        if (e.is_retryable()) throw;
        return e.what();
      }
      if (page.empty()) return std::nullopt;
      for (const StoredEvent& event : page) take(event);
    }
  }

  void take(const StoredEvent& event) {
    lose(event.sequence.value(), std::string{missing});
    const std::size_t before = text_.size();
    try {
      append_line(text_, event, store_.conventions().codec, embedding_);
    } catch (const CorruptEvent& e) {
      text_.resize(before);
      return lose(next_ + 1, e.what());
    }
    if (text_.size() > write_bytes) write(out_, text_);
    ++result_.events;
    ++next_;
  }

  /// A damaged row may make the store seem to have far more events than it has.
  void pass_over_missing() {
    if (!lost_ || lost_->why != missing || lost_->last.value() != next_ - 1) return;
    std::int64_t found = next_;
    try {
      core_of(store_).reading().read([&](Connection& connection) {
        auto row = connection.rows(sql::read_all{.from = next_, .to = end_ - 1, .limit = 1});
        found = row.step() ? row.sequence() : end_;
      });
    } catch (const Error& e) {
      if (e.is_retryable()) throw;
    }
    lose(found, std::string{missing});
  }

  void lose(std::int64_t end, std::string why) {
    if (end <= next_) return;
    const bool continues = lost_ && lost_->last.value() == next_ - 1 && lost_->why == why;
    if (!continues) {
      tell();
      lost_ = {.first = GlobalSequence{next_}, .why = std::move(why)};
    }
    lost_->last = GlobalSequence{end - 1};
    result_.lost += end - next_;
    next_ = end;
  }

  void tell() {
    if (lost_) report_(*lost_);
    lost_.reset();
  }

  Store& store_;
  std::ostream& out_;
  FunctionRef<void(const Unreadable&)> report_;
  const SalvageOptions& options_;
  std::int64_t next_;
  const std::int64_t end_;
  Embedding embedding_;
  std::string text_;
  /// Not told of yet: more may follow.
  std::optional<Unreadable> lost_;
  SalvageResult result_;
};

}  // namespace

SalvageResult salvage_events(Store& store, std::ostream& out,
                             FunctionRef<void(const Unreadable&)> report,
                             const SalvageOptions& options) {
  return Salvage{store, out, report, options}.run();
}

ExportResult export_events(EventStore& store, std::ostream& out, const AllQuery& which,
                           const TransferOptions& options) {
  if (which.direction != Direction::forward) {
    throw UsageError{"an export is in the order of the store; its direction can't be backward"};
  }
  const Codec codec = store.conventions().codec;
  const std::int64_t total = store.last_sequence().value();
  ExportResult result;
  Embedding embedding;
  std::string text;
  append_header(text, codec);
  EventRange range = store.read_all(which);
  const auto next_page = [&] {
    // Whatever reading may throw, the lines of the events before it are out.
    write(out, text);
    return range.next_page();
  };
  for (auto page = next_page(); !page.empty(); page = next_page()) {
    if (options.stop.stop_requested()) {
      result.finished = false;
      break;
    }
    for (const StoredEvent& event : page) {
      append_line(text, event, codec, embedding);
      if (text.size() > write_bytes) write(out, text);
    }
    result.events += static_cast<std::int64_t>(page.size());
    if (options.progress) {
      options.progress({"export", page.back().sequence.value(), total});
    }
  }
  check(out.flush());
  return result;
}

}  // namespace stela::sqlite
