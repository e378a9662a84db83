#include "event_lines.hpp"
#include "operations_sql/catalogue.hpp"
#include "store_core.hpp"
#include "succession.hpp"

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

namespace stela {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::string_view missing = "it's missing";

/// Reads events by their sequences: where that fails for many, it is tried for each.
class Salvage {
 public:
  Salvage(Store& store, std::ostream& out, FunctionRef<void(const UnreadableEvents&)> report,
          const SalvageOptions& options)
      : store_{store},
        out_{out},
        report_{report},
        options_{options},
        next_{std::max<std::int64_t>(options.from.value(), 1)},
        end_{last_of(store, options) + 1} {}

  SalvageResult run() {
    append_header(text_, header_of(store_.conventions().codec, find_tags()));
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
    finish_lines(out_, text_);
    return result_;
  }

 private:
  static constexpr std::int64_t step = 1024;

  static std::int64_t last_of(Store& store, const SalvageOptions& options) {
    // The largest sequence can't be one: nothing could be after it.
    const std::int64_t known =
        std::min(store_core(store).last_known_sequence(), GlobalSequence::max().value() - 1);
    return std::min(options.to.value(), known);
  }

  /// If it can't be read, events may have tags, and nothing is known of their types.
  TagCatalogue find_tags() {
    try {
      return store_.tag_catalogue();
    } catch (const Error& e) {
      if (e.is_retryable()) throw;
      return {.has_tags = true};
    }
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
    // A page in the place of another shows its events again.
    if (event.sequence.value() < next_) return;
    lose(event.sequence.value(), std::string{missing});
    const std::size_t before = text_.size();
    try {
      append_line(text_, event, store_.conventions().codec, embedding_);
    } catch (const CorruptEvent& e) {
      text_.resize(before);
      return lose(next_ + 1, e.what());
    }
    if (text_.size() > write_bytes) write_lines(out_, text_);
    ++result_.events;
    ++next_;
  }

  /// A damaged row may make the store seem to have far more events than it has.
  void pass_over_missing() {
    if (!lost_ || lost_->why != missing || lost_->last.value() != next_ - 1) return;
    std::int64_t found = next_;
    try {
      store_.database().read([&](Connection& connection) {
        auto row = connection.rows(sql::next_sequence{.from = next_, .to = end_ - 1});
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
  FunctionRef<void(const UnreadableEvents&)> report_;
  const SalvageOptions& options_;
  std::int64_t next_;
  const std::int64_t end_;
  Embedding embedding_;
  std::string text_;
  /// Not told of yet: more may follow.
  std::optional<UnreadableEvents> lost_;
  SalvageResult result_;
};

}  // namespace

SalvageResult salvage_events(Store& store, std::ostream& out,
                             FunctionRef<void(const UnreadableEvents&)> report,
                             const SalvageOptions& options) {
  return Salvage{store, out, report, options}.run();
}

}  // namespace stela
