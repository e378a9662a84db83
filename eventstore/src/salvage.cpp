#include "care/event_walk.hpp"
#include "event_lines.hpp"
#include "store_core.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

namespace stela {
namespace {

class Salvage : private care::EventWalk {
 public:
  Salvage(Store& store, std::ostream& out, FunctionRef<void(const UnreadableEvents&)> report,
          const SalvageOptions& options)
      : EventWalk{store.database().make_event_reader()},
        store_{store},
        out_{out},
        report_{report},
        options_{options},
        last_{last_of(store, options)} {}

  SalvageResult run() {
    const ExportHeader header = header_of(store_.conventions().codec, find_tags());
    append_header(text_, header);
    set_range(std::max<std::int64_t>(options_.from.value(), 1), last_, header.has_tags);
    result_.finished = !options_.stop.stop_requested();
    while (result_.finished && step()) {
      if (text_.size() > write_bytes) write_lines(out_, text_);
      if (options_.progress) options_.progress({"export", next() - 1, last_});
      result_.finished = !options_.stop.stop_requested();
    }
    tell_of_gap();
    finish_lines(out_, text_);
    return result_;
  }

 private:
  static std::int64_t last_of(Store& store, const SalvageOptions& options) {
    // The largest number isn't a sequence: nothing could follow it.
    const std::int64_t known =
        std::min(store_core(store).last_known_sequence(), GlobalSequence::max().value() - 1);
    return std::min(options.to.value(), known);
  }

  /// If the catalogue is unreadable, assumes that events may have tags, of unknown types.
  TagCatalogue find_tags() {
    try {
      return store_.tag_catalogue();
    } catch (const Error& e) {
      if (e.is_retryable()) throw;
      return {.has_tags = true};
    }
  }

  std::optional<std::string> try_read(database::Database::Work work) override {
    try {
      store_.database().read(work);
      return std::nullopt;
    } catch (const Error& e) {
      if (e.is_retryable()) throw;
      return e.what();
    }
  }

  void take(database::Connection&, const database::EventRow& row) override {
    if (row.event == nullptr) return lose(row.sequence, row.fault);
    const std::size_t before = text_.size();
    try {
      append_line(text_, *row.event, store_.conventions().codec, embedding_);
      ++result_.events;
    } catch (const CorruptEvent& e) {
      text_.resize(before);
      lose(row.sequence, e.what());
    }
  }

  void meet_again(std::int64_t) override {}

  void tell(const Gap& gap) override {
    result_.lost += gap.last - gap.first + 1;
    report_({.first = GlobalSequence{gap.first},
             .last = GlobalSequence{gap.last},
             .why = gap.why.empty() ? "it's missing" : gap.why});
  }

  Store& store_;
  std::ostream& out_;
  FunctionRef<void(const UnreadableEvents&)> report_;
  const SalvageOptions& options_;
  const std::int64_t last_;
  Embedding embedding_;
  std::string text_;
  SalvageResult result_;
};

}  // namespace

SalvageResult salvage_events(Store& store, std::ostream& out,
                             FunctionRef<void(const UnreadableEvents&)> report,
                             const SalvageOptions& options) {
  return Salvage{store, out, report, options}.run();
}

}  // namespace stela
